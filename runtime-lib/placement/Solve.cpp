// Two devices and additive costs are a least cut. The source's side is the CPU, the sink's the GPU:
//   unit u          source -> u: its cost on the GPU; u -> sink: its cost on the CPU; infinite where it may not be
//   weight w        source -> w: its upload; w -> user infinite (a user on the GPU needs it there)
//                   with a cost of being on both: a second node that is on the GPU where all users are
//   tensor          producer -> copy: the copy to the GPU; copy -> each consumer infinite; and the same backwards
// A weight of one unit is part of that unit's cost, a copy for one consumer is a plain edge.
//
// Under a memory cap a byte gets a price, added to the GPU side's capacities: the cut less price * cap is a lower
// bound for every plan that fits. The bound is concave in the price; its peak is found by intersecting the lines of
// a plan that fits and of one that does not, until no better line is found between them. Prices only grow from the
// last plan that does not fit, so the flow found there is kept. What the peak's plans leave of the memory, the local
// search of Improve.cpp fills.
//
// Capacities are integers: costs scaled so that their sum is 2^52, and the bound is lowered by the rounding.
#include "runtime-lib/placement/Solve.h"

#include "runtime-lib/placement/Improve.h"
#include "runtime-lib/placement/MinCut.h"
#include "runtime-lib/src/Text.h"

#include <algorithm>
#include <cmath>

namespace mcc::placement {

using runtime::concat;

namespace {

/// The cut problem of a placement problem.
class Network {
public:
  Network(const Problem &problem, const Units &units);

  /// Returns the placement of the least cut at `price` ns a byte, no lower than that of any keep(), and its value
  /// in ns without rounding's share (so never above the true least value).
  std::pair<std::vector<Device>, double> cutAt(double price);
  /// Makes the last cutAt's flow the start of the following ones.
  void keep() { base = last, basePrice = lastPrice; }

private:
  void addUnits(MinCut &cut);
  void addStore(MinCut &cut, const Store &store);
  void addTensor(MinCut &cut, const Tensor &tensor);
  uint32_t addNode() { return nodes++; }
  uint32_t unitNode(uint32_t op) const { return 2 + units.ofOp[op]; }
  std::vector<uint32_t> unitNodes(const std::vector<uint32_t> &ops) const;
  int64_t scaled(double ns) const { return static_cast<int64_t>(std::llround(std::min(ns, total) * scale)); }
  void addFinite(MinCut &cut, uint32_t from, uint32_t to, double ns);
  int64_t priceOf(uint64_t bytes, double price) const { return scaled(static_cast<double>(bytes) * price); }

  /// A capacity that grows with the price of a byte.
  struct Priced {
    uint32_t edge;
    uint64_t bytes;
  };
  const Problem &problem;
  const Units &units;
  uint32_t nodes;
  double total = 0, scale = 1;
  double constant = 0;              ///< cost that every placement has
  size_t rounded = 0;               ///< capacities that were rounded
  std::vector<double> gpuNs, cpuNs; ///< by unit
  std::vector<uint64_t> ownBytes;   ///< by unit: stores of this unit alone
  std::vector<Priced> priced;
  MinCut base{0}, last{0};
  double basePrice = 0, lastPrice = 0;
};

} // namespace

/// Returns an upper bound of the cost of every placement.
static double totalCost(const Problem &problem) {
  double total = 0;
  for (const Op &op : problem.ops)
    for (const Device device : {Device::Cpu, Device::Gpu})
      if (op.allowed[index(device)])
        total += problem.weighted(op.cost[index(device)]);
  for (const Store &store : problem.stores)
    total += store.uploadNs + store.duplicateNs;
  for (const Tensor &tensor : problem.tensors)
    total += problem.weighted(tensor.copyTo[0]) + problem.weighted(tensor.copyTo[1]);
  return total;
}

/// Returns an upper bound of the number of nodes.
static uint32_t nodeLimit(const Problem &problem, const Units &units) {
  return static_cast<uint32_t>(2 + units.ops.size() + 2 * problem.stores.size() + 2 * problem.tensors.size());
}

Network::Network(const Problem &problem, const Units &units)
    : problem(problem), units(units), nodes(static_cast<uint32_t>(2 + units.ops.size())), total(totalCost(problem)),
      gpuNs(units.ops.size()), cpuNs(units.ops.size()), ownBytes(units.ops.size()) {
  if (total > 0)
    scale = 0x1p52 / total;
  MinCut cut(nodeLimit(problem, units));
  for (const Store &store : problem.stores)
    addStore(cut, store);
  for (const Tensor &tensor : problem.tensors)
    addTensor(cut, tensor);
  addUnits(cut);
  base = last = std::move(cut);
}

std::vector<uint32_t> Network::unitNodes(const std::vector<uint32_t> &ops) const {
  std::vector<uint32_t> result;
  for (const uint32_t op : ops)
    result.push_back(unitNode(op));
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

void Network::addFinite(MinCut &cut, uint32_t from, uint32_t to, double ns) {
  if (ns <= 0)
    return;
  cut.addEdge(from, to, scaled(ns));
  ++rounded;
}

void Network::addUnits(MinCut &cut) {
  for (uint32_t unit = 0; unit < units.ops.size(); ++unit) {
    const std::optional<Device> fixed = units.fixed[unit];
    for (const uint32_t op : units.ops[unit]) {
      const Op &facts = problem.ops[op];
      gpuNs[unit] += facts.allowed[1] ? problem.weighted(facts.cost[1]) : 0;
      cpuNs[unit] += facts.allowed[0] ? problem.weighted(facts.cost[0]) : 0;
    }
    const uint32_t node = 2 + unit;
    const double common = fixed ? (*fixed == Device::Gpu ? gpuNs : cpuNs)[unit] : std::min(gpuNs[unit], cpuNs[unit]);
    constant += common;
    if (fixed) {
      if (*fixed == Device::Gpu)
        cut.addEdge(node, MinCut::sink, MinCut::infinite);
      else
        cut.addEdge(MinCut::source, node, MinCut::infinite);
      // What a unit on the GPU takes of the memory is no choice, and taken off the cap.
      continue;
    }
    addFinite(cut, node, MinCut::sink, cpuNs[unit] - common);
    const uint32_t edge = cut.addEdge(MinCut::source, node, scaled(gpuNs[unit] - common));
    priced.push_back({edge, ownBytes[unit]});
    ++rounded;
  }
}

void Network::addStore(MinCut &cut, const Store &store) {
  const std::vector<uint32_t> users = unitNodes(store.users);
  if (users.empty())
    return;
  if (users.size() == 1) {
    // Within one unit all users are on one device.
    gpuNs[users.front() - 2] += store.uploadNs;
    ownBytes[users.front() - 2] += store.bytes;
    return;
  }
  const bool needed =
      std::any_of(users.begin(), users.end(), [&](uint32_t n) { return units.fixed[n - 2] == Device::Gpu; });
  const uint32_t node = addNode();
  for (const uint32_t user : users)
    cut.addEdge(node, user, MinCut::infinite);
  if (needed)
    constant += store.uploadNs;
  else
    priced.push_back({cut.addEdge(MinCut::source, node, scaled(store.uploadNs)), store.bytes}), ++rounded;
  if (store.duplicateNs > 0) {
    const uint32_t everyUser = addNode();
    for (const uint32_t user : users)
      cut.addEdge(user, everyUser, MinCut::infinite);
    addFinite(cut, everyUser, node, store.duplicateNs);
  }
}

void Network::addTensor(MinCut &cut, const Tensor &tensor) {
  const uint32_t producer = unitNode(tensor.producer);
  std::vector<uint32_t> consumers = unitNodes(tensor.consumers);
  std::erase(consumers, producer);
  if (consumers.empty())
    return;
  const double toGpu = problem.weighted(tensor.copyTo[1]), toCpu = problem.weighted(tensor.copyTo[0]);
  if (consumers.size() == 1) {
    addFinite(cut, producer, consumers.front(), toGpu);
    addFinite(cut, consumers.front(), producer, toCpu);
    return;
  }
  const uint32_t onGpu = addNode(), onCpu = addNode();
  for (const uint32_t consumer : consumers) {
    cut.addEdge(onGpu, consumer, MinCut::infinite);
    cut.addEdge(consumer, onCpu, MinCut::infinite);
  }
  addFinite(cut, producer, onGpu, toGpu);
  addFinite(cut, onCpu, producer, toCpu);
}

std::pair<std::vector<Device>, double> Network::cutAt(double price) {
  last = base;
  lastPrice = price;
  for (const Priced &capacity : priced)
    last.grow(capacity.edge, priceOf(capacity.bytes, price) - priceOf(capacity.bytes, basePrice));
  const int64_t value = last.run();
  std::vector<Device> devices(problem.ops.size());
  for (uint32_t op = 0; op < devices.size(); ++op)
    devices[op] = last.onSinkSide(unitNode(op)) ? Device::Gpu : Device::Cpu;
  const double roundingNs = static_cast<double>(rounded + priced.size()) / scale;
  return {std::move(devices), static_cast<double>(value) / scale + constant - roundingNs};
}

namespace {

/// A placement as a line over the price of a byte.
struct Line {
  std::vector<Device> devices;
  double cost = 0;
  uint64_t bytes = 0;
};

} // namespace

static Line lineOf(const Problem &problem, std::vector<Device> devices) {
  const Evaluation evaluation = evaluate(problem, devices);
  return {std::move(devices), evaluation.totalNs(), evaluation.gpuBytes};
}

/// Returns the placement with the fewest bytes on the GPU: only what must be there.
static Line leanest(const Problem &problem, const Units &units) {
  std::vector<Device> devices(problem.ops.size());
  for (size_t op = 0; op < devices.size(); ++op)
    devices[op] = units.fixed[units.ofOp[op]].value_or(Device::Cpu);
  return lineOf(problem, std::move(devices));
}

static Plan makePlan(const Problem &problem, std::vector<Device> devices, double bound, double price) {
  Plan plan{std::move(devices), {}, 0, price};
  plan.cost = evaluate(problem, plan.devices);
  plan.boundNs = std::clamp(bound, 0.0, plan.cost.totalNs());
  return plan;
}

/// Searches the price of a byte. `above` does not fit; `forced` bytes are on the GPU in every placement.
static Result<Plan> solveUnderCap(const Problem &problem, const Units &units, Network &network, Line above,
                                  double bound, const SolveOptions &options) {
  const uint64_t cap = *problem.gpuMemory;
  Line below = leanest(problem, units);
  const uint64_t forced = below.bytes;
  if (forced > cap)
    return Failure{concat("ops that are placed on the gpu need ", forced, " bytes of its memory; the limit is ", cap)};
  double bestPrice = 0;
  constexpr int mostPrices = 60; // a handful is usual; each halves nothing but meets one of finitely many lines
  for (int round = 0; round < mostPrices; ++round) {
    // Rounding or equal lines: no price separates the two.
    if (below.bytes >= above.bytes || below.cost <= above.cost)
      break;
    const double price = (below.cost - above.cost) / static_cast<double>(above.bytes - below.bytes);
    auto [devices, value] = network.cutAt(price);
    const double lower = value - price * static_cast<double>(cap - forced);
    if (lower > bound)
      bound = lower, bestPrice = price;
    Line line = lineOf(problem, std::move(devices));
    const double known = below.cost + price * static_cast<double>(below.bytes);
    if (line.cost + price * static_cast<double>(line.bytes) >= known * (1 - 1e-12))
      break; // no line passes below the intersection: this is the peak
    if (line.bytes > cap) {
      above = std::move(line);
      network.keep();
    } else {
      below = std::move(line);
    }
  }
  std::vector<Device> best = improve(problem, units, cap, std::move(below.devices), above.devices, options.searchFlips,
                                     bound * (1 + options.closeEnough));
  return makePlan(problem, std::move(best), bound, bestPrice);
}

Result<Plan> solve(const Problem &problem, const SolveOptions &options) {
  if (Status status = validate(problem); !status.ok())
    return Failure{status.message()};
  Result<Units> units = makeUnits(problem);
  if (!units.ok())
    return units.failure();
  Network network(problem, units.value());
  auto [devices, value] = network.cutAt(0);
  Line best = lineOf(problem, std::move(devices));
  if (!problem.gpuMemory || best.bytes <= *problem.gpuMemory)
    return makePlan(problem, std::move(best.devices), value, 0);
  network.keep();
  return solveUnderCap(problem, units.value(), network, std::move(best), value, options);
}

} // namespace mcc::placement
