// Units by union-find, and the incremental evaluation: each store and tensor counts its users on the GPU, so that a
// flip only looks at what the op touches. The cost is a running sum; whoever reports it evaluates it afresh.
#include "runtime-lib/placement/PlanState.h"

#include "runtime-lib/src/Text.h"

#include <algorithm>
#include <numeric>

namespace mcc::placement {

using runtime::concat;
using Pairs = std::vector<std::pair<uint32_t, uint32_t>>;

Lists::Lists(size_t count, std::span<const std::pair<uint32_t, uint32_t>> pairs)
    : begins(count + 1, 0), values(pairs.size()) {
  for (const auto &[list, value] : pairs)
    ++begins[list + 1];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<uint32_t> next(begins.begin(), begins.end() - 1);
  for (const auto &[list, value] : pairs)
    values[next[list]++] = value;
}

/// Returns the representative of `op`, shortening the way to it.
static uint32_t find(std::vector<uint32_t> &parent, uint32_t op) {
  while (parent[op] != op)
    op = parent[op] = parent[parent[op]];
  return op;
}

/// Says why an op is not on `device`.
static std::string whyNotOn(const Op &op, Device device) {
  if (!op.allowed[index(device)])
    return concat("'", op.name, "' has no ", deviceName(device), " kernel");
  return concat("'", op.name, "' is placed on the ", deviceName(*op.forced), " by ", op.rule);
}

/// Finds the devices that all ops of a unit may be on.
static Status fixUnit(const Problem &problem, std::span<const uint32_t> ops, std::optional<Device> &fixed) {
  std::array<const Op *, 2> against = {nullptr, nullptr};
  for (const uint32_t op : ops)
    for (const Device device : {Device::Cpu, Device::Gpu})
      if (!problem.mayBeOn(op, device) && !against[index(device)])
        against[index(device)] = &problem.ops[op];
  if (against[0] && against[1])
    return Failure{concat("ops that share a state need one device, but ", whyNotOn(*against[0], Device::Cpu), " and ",
                          whyNotOn(*against[1], Device::Gpu))};
  if (against[0])
    fixed = Device::Gpu;
  if (against[1])
    fixed = Device::Cpu;
  return {};
}

Result<Units> makeUnits(const Problem &problem) {
  const size_t count = problem.ops.size();
  std::vector<uint32_t> parent(count);
  std::iota(parent.begin(), parent.end(), 0);
  for (const Store &store : problem.stores)
    if (store.kind == Store::Kind::State)
      for (const uint32_t user : store.users) {
        const uint32_t a = find(parent, user), b = find(parent, store.users.front());
        parent[std::max(a, b)] = std::min(a, b); // the first op represents
      }
  Units units;
  Pairs pairs;
  uint32_t unitCount = 0;
  for (uint32_t op = 0; op < count; ++op) {
    const uint32_t root = find(parent, op);
    units.ofOp.push_back(root == op ? unitCount++ : units.ofOp[root]);
    pairs.emplace_back(units.ofOp[op], op);
  }
  units.ops = Lists(unitCount, pairs);
  units.fixed.resize(unitCount);
  for (uint32_t unit = 0; unit < unitCount; ++unit)
    if (Status status = fixUnit(problem, units.ops[unit], units.fixed[unit]); !status.ok())
      return Failure{status.message()};
  return units;
}

/// Returns `ops` without repetitions.
static std::vector<uint32_t> distinct(std::vector<uint32_t> ops) {
  std::sort(ops.begin(), ops.end());
  ops.erase(std::unique(ops.begin(), ops.end()), ops.end());
  return ops;
}

PlanState::PlanState(const Problem &problem, const Units &units, std::vector<Device> devices)
    : problem(problem), units(units), placed(std::move(devices)) {
  const auto onGpu = [&](uint32_t op) { return placed[op] == Device::Gpu; };
  const auto count = [&](const std::vector<uint32_t> &ops) {
    return static_cast<uint32_t>(std::count_if(ops.begin(), ops.end(), onGpu));
  };
  Pairs stores, produced, read;
  for (const Op &op : problem.ops)
    opCost.push_back({problem.weighted(op.cost[0]), problem.weighted(op.cost[1])});
  for (uint32_t store = 0; store < problem.stores.size(); ++store) {
    const std::vector<uint32_t> users = distinct(problem.stores[store].users);
    for (const uint32_t user : users)
      stores.emplace_back(user, store);
    storeUsers.push_back(static_cast<uint32_t>(users.size()));
    storeGpuUsers.push_back(count(users));
  }
  for (uint32_t t = 0; t < problem.tensors.size(); ++t) {
    const Tensor &tensor = problem.tensors[t];
    const std::vector<uint32_t> consumers = distinct(tensor.consumers);
    produced.emplace_back(tensor.producer, t);
    for (const uint32_t consumer : consumers)
      read.emplace_back(consumer, t);
    readers.push_back(static_cast<uint32_t>(consumers.size()));
    gpuReaders.push_back(count(consumers));
    copyCost.push_back({problem.weighted(tensor.copyTo[0]), problem.weighted(tensor.copyTo[1])});
  }
  storesOf = Lists(problem.ops.size(), stores);
  producedBy = Lists(problem.ops.size(), produced);
  readBy = Lists(problem.ops.size(), read);
  const Evaluation evaluation = evaluate(problem, placed);
  costNs = evaluation.totalNs();
  gpuBytes = evaluation.gpuBytes;
}

double PlanState::storeCost(uint32_t store) const {
  if (storeGpuUsers[store] == 0)
    return 0;
  const Store &facts = problem.stores[store];
  return facts.uploadNs + (storeGpuUsers[store] < storeUsers[store] ? facts.duplicateNs : 0);
}

double PlanState::tensorCost(uint32_t tensor) const {
  if (placed[problem.tensors[tensor].producer] == Device::Cpu)
    return gpuReaders[tensor] > 0 ? copyCost[tensor][index(Device::Gpu)] : 0;
  return gpuReaders[tensor] < readers[tensor] ? copyCost[tensor][index(Device::Cpu)] : 0;
}

void PlanState::flipOp(uint32_t op) {
  const bool toGpu = placed[op] == Device::Cpu;
  double delta = 0;
  for (const uint32_t store : storesOf[op])
    delta -= storeCost(store);
  for (const uint32_t tensor : producedBy[op])
    delta -= tensorCost(tensor);
  // A tensor that the op writes and reads is in both lists: count each on its own, one change at a time.
  for (const uint32_t tensor : readBy[op]) {
    if (problem.tensors[tensor].producer != op)
      delta -= tensorCost(tensor);
    gpuReaders[tensor] += toGpu ? 1 : UINT32_MAX;
  }
  placed[op] = other(placed[op]);
  for (const uint32_t store : storesOf[op]) {
    const uint64_t bytes = problem.stores[store].bytes;
    if (toGpu && storeGpuUsers[store]++ == 0)
      gpuBytes += bytes;
    if (!toGpu && --storeGpuUsers[store] == 0)
      gpuBytes -= bytes;
    delta += storeCost(store);
  }
  for (const uint32_t tensor : producedBy[op])
    delta += tensorCost(tensor);
  for (const uint32_t tensor : readBy[op])
    if (problem.tensors[tensor].producer != op)
      delta += tensorCost(tensor);
  costNs += delta + opCost[op][index(placed[op])] - opCost[op][index(other(placed[op]))];
}

void PlanState::flip(uint32_t unit) {
  ++flipCount;
  for (const uint32_t op : units.ops[unit])
    flipOp(op);
}

} // namespace mcc::placement
