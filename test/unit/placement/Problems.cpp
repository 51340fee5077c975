// Random problems have small integer costs, so that ties are common: a solver that mishandles them is caught.
#include "test/unit/placement/Problems.h"

#include <algorithm>

namespace mcc::placement::test {

/// Returns the placement's cost, or nullopt where it is not permitted.
static std::optional<double> costOf(const Problem &problem, const std::vector<Device> &devices) {
  double cost = 0;
  uint64_t bytes = 0;
  const auto total = [&](PhaseNs ns) { return ns.prefill + problem.decodeSteps * ns.decode; };
  for (size_t i = 0; i < devices.size(); ++i) {
    const Op &op = problem.ops[i];
    const size_t device = devices[i] == Device::Gpu ? 1 : 0;
    if (!op.allowed[device] || (op.forced && *op.forced != devices[i]))
      return std::nullopt;
    cost += total(op.cost[device]);
  }
  for (const Store &store : problem.stores) {
    int onGpu = 0, onCpu = 0;
    for (const uint32_t user : store.users)
      ++(devices[user] == Device::Gpu ? onGpu : onCpu);
    if (store.kind == Store::Kind::State && onGpu && onCpu)
      return std::nullopt;
    if (onGpu) {
      cost += store.uploadNs;
      bytes += store.bytes;
    }
    if (onGpu && onCpu)
      cost += store.duplicateNs;
  }
  for (const Tensor &tensor : problem.tensors) {
    bool crosses = false;
    for (const uint32_t consumer : tensor.consumers)
      crosses |= devices[consumer] != devices[tensor.producer];
    if (crosses)
      cost += total(tensor.copyTo[devices[tensor.producer] == Device::Gpu ? 0 : 1]);
  }
  if (problem.gpuMemory && bytes > *problem.gpuMemory)
    return std::nullopt;
  return cost;
}

std::optional<Optimum> bruteForce(const Problem &problem) {
  std::optional<Optimum> best;
  const size_t count = problem.ops.size();
  for (uint32_t bits = 0; bits < uint32_t(1) << count; ++bits) {
    std::vector<Device> devices(count);
    for (size_t i = 0; i < count; ++i)
      devices[i] = bits >> i & 1 ? Device::Gpu : Device::Cpu;
    const std::optional<double> cost = costOf(problem, devices);
    if (cost && (!best || *cost < best->costNs))
      best = Optimum{*cost, devices};
  }
  return best;
}

namespace {

/// Draws the parts of a random problem.
struct Dice {
  std::mt19937 &random;
  uint32_t below(uint32_t count) { return static_cast<uint32_t>(random() % count); }
  bool oneIn(uint32_t count) { return below(count) == 0; }
  double ns(uint32_t most) { return below(most + 1); }
  PhaseNs phase(uint32_t most) { return {ns(most), ns(most)}; }
};

} // namespace

static void addRandomOp(Problem &problem, Dice &dice) {
  const size_t number = problem.ops.size();
  Op op{"op" + std::to_string(number), {dice.phase(30), dice.phase(30)}};
  if (dice.oneIn(8))
    op.allowed[dice.below(2)] = false;
  if (dice.oneIn(8)) {
    const Device device = dice.oneIn(2) ? Device::Gpu : Device::Cpu;
    if (op.allowed[index(device)]) {
      op.forced = device;
      op.rule = "rules:" + std::to_string(number);
    }
  }
  problem.ops.push_back(op);
}

static std::vector<uint32_t> randomUsers(Dice &dice, uint32_t ops, uint32_t most) {
  std::vector<uint32_t> users;
  for (uint32_t i = 1 + dice.below(most); i > 0; --i)
    users.push_back(dice.below(ops)); // now and then one twice
  return users;
}

Problem randomProblem(std::mt19937 &random, uint32_t ops, bool memory) {
  Dice dice{random};
  Problem problem;
  problem.decodeSteps = dice.below(4);
  for (uint32_t i = 0; i < ops; ++i)
    addRandomOp(problem, dice);
  uint64_t bytes = 0;
  for (uint32_t i = dice.below(ops + 2); i > 0; --i) {
    Store store{"store" + std::to_string(i)};
    store.kind = dice.oneIn(5) ? Store::Kind::State : Store::Kind::Weight;
    store.bytes = dice.below(40);
    store.uploadNs = dice.oneIn(2) ? dice.ns(20) : 0;
    store.duplicateNs = dice.oneIn(3) ? dice.ns(20) : 0;
    store.users = randomUsers(dice, ops, dice.oneIn(2) ? 1 : 3);
    bytes += store.bytes;
    problem.stores.push_back(store);
  }
  for (uint32_t i = 0; i < ops; ++i) {
    if (dice.oneIn(6))
      continue;
    Tensor tensor{"tensor" + std::to_string(i), i};
    tensor.consumers = randomUsers(dice, ops, 3);
    if (i + 1 < ops && !dice.oneIn(3))
      tensor.consumers.front() = i + 1;
    tensor.copyTo = {dice.phase(12), dice.phase(12)};
    problem.tensors.push_back(tensor);
  }
  if (memory)
    problem.gpuMemory = bytes * dice.below(10) / 10;
  return problem;
}

namespace {

/// Appends the ops of a decoder.
struct Decoder {
  Problem problem;
  double width;

  /// Adds an op with a bf16 weight of `weightBytes` that reads `inputs`; returns its number.
  uint32_t add(const std::string &name, double weightBytes, std::vector<uint32_t> inputs) {
    const uint32_t op = static_cast<uint32_t>(problem.ops.size());
    // Per step: 20 GB/s and 4 TB/s; prefill of 128 tokens at 100 GFLOP/s and 100 TFLOP/s; 1 and 2 us a launch.
    const double flops = weightBytes * 128;
    Op facts{
        name,
        {PhaseNs{1000 + flops / 100, 1000 + weightBytes / 20}, PhaseNs{2000 + flops / 1e5, 2000 + weightBytes / 4000}}};
    problem.ops.push_back(facts);
    if (weightBytes > 0) {
      Store weight{name + ".weight"};
      weight.bytes = static_cast<uint64_t>(weightBytes);
      weight.uploadNs = weightBytes / 20;
      weight.users = {op};
      problem.stores.push_back(weight);
    }
    for (const uint32_t input : inputs)
      tensorOf(input).consumers.push_back(op);
    return op;
  }

  Tensor &tensorOf(uint32_t producer) {
    for (size_t i = problem.tensors.size(); i-- > 0;)
      if (problem.tensors[i].producer == producer)
        return problem.tensors[i];
    const PhaseNs copy = {10000 + width * 4 * 128 / 50, 10000 + width * 4 / 50};
    problem.tensors.push_back({"x" + std::to_string(producer), producer, {}, 0, 0, {copy, copy}});
    return problem.tensors.back();
  }

  void state(const std::string &name, std::vector<uint32_t> users) {
    Store cache{name, Store::Kind::State};
    cache.bytes = 4 << 20;
    cache.users = std::move(users);
    problem.stores.push_back(cache);
  }
};

} // namespace

Problem llama(uint32_t layers, double width, double decodeSteps) {
  Decoder model{{}, width};
  model.problem.decodeSteps = decodeSteps;
  const double square = width * width * 2;
  uint32_t x = model.add("embed", square * 8, {});
  model.problem.ops[x].allowed[index(Device::Gpu)] = false;
  const uint32_t rotary = model.add("rotary", 0, {});
  for (uint32_t i = 0; i < layers; ++i) {
    const std::string layer = "layers." + std::to_string(i) + ".";
    const uint32_t norm = model.add(layer + "attn.norm", width * 4, {x});
    const uint32_t q = model.add(layer + "attn.q", square, {norm});
    const uint32_t k = model.add(layer + "attn.k", square / 4, {norm});
    const uint32_t v = model.add(layer + "attn.v", square / 4, {norm});
    const uint32_t rope = model.add(layer + "attn.rope_cache", 0, {q, k, v, rotary});
    const uint32_t attention = model.add(layer + "attn.attention", 0, {rope});
    model.state(layer + "cache", {rope, attention});
    const uint32_t o = model.add(layer + "attn.o", square, {attention});
    const uint32_t sum = model.add(layer + "attn.add", 0, {x, o});
    const uint32_t norm2 = model.add(layer + "mlp.norm", width * 4, {sum});
    const uint32_t gate = model.add(layer + "mlp.gate", square * 4, {norm2});
    const uint32_t up = model.add(layer + "mlp.up", square * 4, {norm2});
    const uint32_t product = model.add(layer + "mlp.product", 0, {gate, up});
    const uint32_t down = model.add(layer + "mlp.down", square * 4, {product});
    x = model.add(layer + "mlp.add", 0, {sum, down});
  }
  const uint32_t head = model.add("head", square * 8, {x});
  const uint32_t token = model.add("token", 0, {head});
  model.problem.ops[token].allowed[index(Device::Gpu)] = false;
  return model.problem;
}

} // namespace mcc::placement::test
