// One walk over the launches in their order. Of each region of the arena the walk knows the launch that wrote it last:
// its value, a tensor as soon as something reads it. A write makes a new value. Launches that are equal but for their
// addresses, the same op in other layers, are costed once.
#include "runtime-lib/placement/ProgramGraph.h"

#include "kernels/KernelTable.h"
#include "runtime-lib/src/Text.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace mcc::placement {

using runtime::concat;

namespace {

class Builder {
public:
  Builder(const MccProgram &program, const CostModel *costs, const Workload &workload)
      : program(program), costs(costs), workload(workload), values(program.regionCount),
        storeOf(program.regionCount, none) {}
  Result<Problem> run();

private:
  static constexpr size_t none = ~size_t(0);
  /// What a region of the arena holds at this point of the walk.
  struct Value {
    bool written = false;
    uint32_t producer = 0;
    size_t tensor = none; ///< index, once it has a reader
  };

  Status check(const MccLaunch &launch) const;
  Result<std::array<PhaseNs, 2>> costOf(const MccLaunch &launch, const KernelInfo &kernel);
  Status addOp(const MccLaunch &launch, const KernelInfo &kernel);
  void addUses(uint32_t op, const MccLaunch &launch, const KernelInfo &kernel);
  void useStore(uint32_t op, uint32_t region, Store::Kind kind);
  void readValue(uint32_t op, uint32_t region);
  PhaseNs copyNs(Device to, const MccRegion &region) const;

  const MccProgram &program;
  const CostModel *costs;
  const Workload &workload;
  Problem problem;
  std::vector<Value> values;   ///< by region
  std::vector<size_t> storeOf; ///< by region
  std::map<std::tuple<uint32_t, int32_t, std::vector<int64_t>>, std::array<PhaseNs, 2>> costsOf;
};

/// Adds an index once.
void addOnce(std::vector<uint32_t> &indices, uint32_t index) {
  if (indices.empty() || indices.back() != index)
    indices.push_back(index);
}

int64_t stepsOf(const Workload &workload) { return (workload.prompt + workload.chunk - 1) / workload.chunk; }

} // namespace

Status Builder::check(const MccLaunch &launch) const {
  if (launch.kernel >= kernels().size())
    return Failure{
        concat("launch '", launch.name, "' is of kernel ", launch.kernel, "; the table has ", kernels().size())};
  const size_t buffers = kernels()[launch.kernel].buffers.size();
  for (size_t i = 0; i < buffers; ++i)
    if (const uint32_t region = launch.buffers[i].region; region != MCC_NO_REGION && region >= program.regionCount)
      return Failure{
          concat("launch '", launch.name, "' names region ", region, "; the program has ", program.regionCount)};
  return {};
}

/// Returns what a launch costs on both devices.
Result<std::array<PhaseNs, 2>> Builder::costOf(const MccLaunch &launch, const KernelInfo &kernel) {
  const std::span ints(launch.ints, kernel.ints.size());
  std::tuple key(launch.kernel, launch.format, std::vector<int64_t>(ints.begin(), ints.end()));
  if (const auto known = costsOf.find(key); known != costsOf.end())
    return known->second;
  std::array<PhaseNs, 2> result;
  const Format format = launch.format < 0 ? Format::F32 : static_cast<Format>(launch.format);
  for (const Device device : {Device::Cpu, Device::Gpu}) {
    if (!costs->has(device))
      continue;
    Result<PhaseNs> ns = costs->costOf(device, {kernel.name, format, ints}, workload);
    if (!ns.ok())
      return ns.failure();
    result[index(device)] = ns.value();
  }
  // The host reads each token that argmax chooses.
  if (const double fetch = costs->copyNs(Device::Cpu, sizeof(int32_t)); kernel.name == "argmax") {
    result[index(Device::Gpu)].prefill += fetch;
    result[index(Device::Gpu)].decode += fetch;
  }
  return costsOf[std::move(key)] = result;
}

Status Builder::addOp(const MccLaunch &launch, const KernelInfo &kernel) {
  Op op;
  op.name = launch.name;
  op.allowed = {true, hasCudaLauncher(kernel.name) && (!costs || costs->has(Device::Gpu))};
  if (costs) {
    Result<std::array<PhaseNs, 2>> cost = costOf(launch, kernel);
    if (!cost.ok())
      return cost.failure();
    op.cost = cost.value();
  }
  problem.ops.push_back(std::move(op));
  return {};
}

void Builder::useStore(uint32_t op, uint32_t region, Store::Kind kind) {
  if (storeOf[region] == none) {
    const MccRegion &memory = program.regions[region];
    storeOf[region] = problem.stores.size();
    Store store{concat(kind == Store::Kind::Weight ? "weight of " : "state of ", problem.ops[op].name), kind};
    // Within the arena it has its place already.
    store.bytes = memory.space == MCC_ARENA ? 0 : memory.bytes;
    if (kind == Store::Kind::Weight && costs)
      store.uploadNs = costs->copyNs(Device::Gpu, static_cast<double>(memory.bytes));
    problem.stores.push_back(std::move(store));
  }
  addOnce(problem.stores[storeOf[region]].users, op);
}

/// Returns what copying a region's value to a device costs.
PhaseNs Builder::copyNs(Device to, const MccRegion &region) const {
  if (!costs)
    return {};
  if (region.rowBytes > 0)
    return costs->copyNs(to, static_cast<double>(region.rowBytes), workload);
  const double ns = costs->copyNs(to, static_cast<double>(region.bytes));
  return {static_cast<double>(stepsOf(workload)) * ns, ns};
}

void Builder::readValue(uint32_t op, uint32_t region) {
  Value &value = values[region];
  if (!value.written || value.producer == op)
    return;
  if (value.tensor == none) {
    const MccRegion &memory = program.regions[region];
    value.tensor = problem.tensors.size();
    Tensor tensor{concat("output of ", problem.ops[value.producer].name), value.producer};
    const bool byRows = memory.rowBytes > 0;
    tensor.prefillBytes = byRows ? memory.rowBytes * static_cast<uint64_t>(workload.prompt)
                                 : memory.bytes * static_cast<uint64_t>(stepsOf(workload));
    tensor.decodeBytes = byRows ? memory.rowBytes : memory.bytes;
    tensor.copyTo = {copyNs(Device::Cpu, memory), copyNs(Device::Gpu, memory)};
    problem.tensors.push_back(std::move(tensor));
  }
  addOnce(problem.tensors[value.tensor].consumers, op);
}

void Builder::addUses(uint32_t op, const MccLaunch &launch, const KernelInfo &kernel) {
  std::vector<uint32_t> writes;
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const MccArgument &argument = launch.buffers[i];
    if (argument.region == MCC_NO_REGION)
      continue;
    const uint32_t space = program.regions[argument.region].space;
    if (space == MCC_WEIGHTS) {
      useStore(op, argument.region, Store::Kind::Weight);
    } else if (space == MCC_CACHE || kernel.buffers[i].name == "partials") {
      // What `logits` leaves to `argmax` has another form on each device.
      useStore(op, argument.region, Store::Kind::State);
    } else if (kernel.buffers[i].name != "normed") { // which no other launch reads
      readValue(op, argument.region);
      if (argument.written)
        writes.push_back(argument.region);
    }
  }
  for (const uint32_t region : writes)
    values[region] = {true, op, none};
}

Result<Problem> Builder::run() {
  problem.decodeSteps = static_cast<double>(std::max<int64_t>(workload.newTokens - 1, 0));
  for (uint32_t i = 0; i < program.launchCount; ++i) {
    const MccLaunch &launch = program.launches[i];
    if (Status status = check(launch); !status.ok())
      return Failure{status.message()};
    const KernelInfo &kernel = kernels()[launch.kernel];
    if (Status status = addOp(launch, kernel); !status.ok())
      return Failure{status.message()};
    addUses(i, launch, kernel);
  }
  return std::move(problem);
}

Result<Problem> problemOf(const MccProgram &program, const CostModel *costs, const Workload &workload) {
  if (workload.prompt < 1 || workload.newTokens < 0 || workload.chunk < 1)
    return Failure{concat("a workload of ", workload.prompt, " prompt tokens in steps of ", workload.chunk, " and ",
                          workload.newTokens, " new ones; at least 1, 1 and 0 are needed")};
  return Builder(program, costs, workload).run();
}

uint64_t gpuActivationBytes(const MccProgram &program, int64_t chunk) {
  uint64_t arena = 0, linear = 0, attention = 0;
  for (uint32_t i = 0; i < program.regionCount; ++i)
    if (const MccRegion &region = program.regions[i]; region.space == MCC_ARENA)
      arena = std::max(arena, region.offset + region.bytes);
  for (uint32_t i = 0; i < program.launchCount; ++i) {
    const MccLaunch &launch = program.launches[i];
    const KernelInfo &kernel = kernels()[launch.kernel];
    const auto number = [&](const char *name) { return static_cast<uint64_t>(launch.ints[kernel.intIndex(name)]); };
    // Of each input element three bf16 parts, padded: of 16 tokens in the layout of the tensor cores, of a chunk in
    // tiles of 128 tokens; and weights unpacked to two parts, 64 MiB or 32 panels.
    if (kernel.name == "linear" || kernel.name == "logits") {
      const uint64_t cols = (number("cols") + 63) / 64 * 64, tokens = chunk <= 16 ? 16 : (static_cast<uint64_t>(chunk) + 127) / 128 * 128;
      linear = std::max(linear, cols * 6 * tokens + (chunk <= 16 ? 0 : std::max(uint64_t(64) << 20, cols * 64 * 32)));
    }
    // Of each head of 16 tokens up to 64 running sums, the heads of a kv head padded to eights; of a chunk the keys and
    // values of the context in two bf16 parts.
    if (kernel.name == "attention") {
      const uint64_t tiles = chunk <= 16 ? 0 : number("kv_heads") * ((number("context") + 127) / 128 * 128) * std::max<uint64_t>(64, number("head_dim") * 2) * 8;
      attention = std::max(attention, 16 * 64 * 4 * (number("heads") + 8 * number("kv_heads")) * (number("head_dim") + 32) + tiles);
    }
  }
  return arena + linear + attention;
}

/// Returns the first op that neither a rule nor a missing kernel decides; null where there is none.
static const Op *undecided(const Problem &problem) {
  const auto op = std::find_if(problem.ops.begin(), problem.ops.end(),
                               [](const Op &o) { return !o.forced && o.allowed[0] && o.allowed[1]; });
  return op == problem.ops.end() ? nullptr : &*op;
}

Result<Placed> placeProgram(const MccProgram &program, const PlacementRequest &request) {
  const bool asksGpu = std::any_of(request.rules.begin(), request.rules.end(),
                                   [](const Rule &rule) { return rule.device == Device::Gpu; });
  const bool useProfile = request.profile && (request.profile->gpu || !asksGpu);
  std::optional<CostModel> costs;
  if (useProfile)
    costs.emplace(*request.profile);
  Result<Problem> made = problemOf(program, costs ? &*costs : nullptr, request.workload);
  if (!made.ok())
    return made.failure();
  Placed placed{std::move(made.value()), {}, {}};
  Problem &problem = placed.problem;
  std::optional<uint64_t> memory = request.gpuMemory;
  if (!memory && useProfile && request.profile->machine.gpuBytes > 0)
    memory = request.profile->machine.gpuBytes / 16 * 15;
  if (memory) {
    const uint64_t activations = gpuActivationBytes(program, request.workload.chunk);
    if (activations > *memory) {
      if (asksGpu)
        return Failure{
            concat("activations and workspaces need ", activations, " bytes of GPU memory; ", *memory, " may be used")};
      for (Op &op : problem.ops)
        op.allowed[index(Device::Gpu)] = false;
    }
    problem.gpuMemory = *memory - std::min(activations, *memory);
  }
  Result<std::vector<std::string>> notes = applyRules(request.rules, problem);
  if (!notes.ok())
    return notes.failure();
  placed.notes = std::move(notes.value());
  if (const Op *op = undecided(problem); op && !useProfile)
    return Failure{concat("op '", op->name, "' is left to its cost, which takes a calibration of a machine",
                          request.profile ? " with a GPU" : "")};
  Result<Plan> plan = solve(problem);
  if (!plan.ok())
    return plan.failure();
  placed.plan = std::move(plan.value());
  return placed;
}

} // namespace mcc::placement
