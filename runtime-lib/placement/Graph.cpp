// The problem's own checks and the plain evaluation of a placement, which solvers are measured against.
#include "runtime-lib/placement/Graph.h"

#include "runtime-lib/src/Text.h"

#include <algorithm>
#include <cmath>

namespace mcc::placement {

using runtime::concat;

const char *deviceName(Device device) { return device == Device::Cpu ? "cpu" : "gpu"; }

/// Returns whether `ns` is a time: finite and not negative.
static bool isTime(double ns) { return std::isfinite(ns) && ns >= 0; }
static bool isTime(PhaseNs ns) { return isTime(ns.prefill) && isTime(ns.decode); }

static Status validateOp(const Op &op) {
  for (const Device device : {Device::Cpu, Device::Gpu})
    if (op.allowed[index(device)] && !isTime(op.cost[index(device)]))
      return Failure{
          concat("op '", op.name, "': its cost on the ", deviceName(device), " is not a finite time of at least 0")};
  if (!op.allowed[0] && !op.allowed[1])
    return Failure{concat("op '", op.name, "' has no kernel on either device")};
  if (op.forced && !op.allowed[index(*op.forced)])
    return Failure{
        concat("op '", op.name, "' has no ", deviceName(*op.forced), " kernel; ", op.rule, " places it there")};
  return {};
}

static Status validateIndices(const std::vector<uint32_t> &indices, size_t ops, const std::string &name) {
  for (const uint32_t op : indices)
    if (op >= ops)
      return Failure{concat("'", name, "' names op ", op, "; the problem has ", ops)};
  return {};
}

Status validate(const Problem &problem) {
  if (!isTime(problem.decodeSteps))
    return Failure{"the number of decode steps is not a finite number of at least 0"};
  for (const Op &op : problem.ops)
    if (Status status = validateOp(op); !status.ok())
      return status;
  for (const Store &store : problem.stores) {
    if (Status status = validateIndices(store.users, problem.ops.size(), store.name); !status.ok())
      return status;
    if (!isTime(store.uploadNs) || !isTime(store.duplicateNs))
      return Failure{concat("'", store.name, "': its upload is not a finite time of at least 0")};
  }
  for (const Tensor &tensor : problem.tensors) {
    Status status = validateIndices(tensor.consumers, problem.ops.size(), tensor.name);
    if (status.ok())
      status = validateIndices({tensor.producer}, problem.ops.size(), tensor.name);
    if (!status.ok())
      return status;
    if (!isTime(tensor.copyTo[0]) || !isTime(tensor.copyTo[1]))
      return Failure{concat("tensor '", tensor.name, "': its copy is not a finite time of at least 0")};
  }
  return {};
}

Evaluation evaluate(const Problem &problem, const std::vector<Device> &devices) {
  const auto anyOn = [&](const std::vector<uint32_t> &ops, Device device) {
    return std::any_of(ops.begin(), ops.end(), [&](uint32_t op) { return devices[op] == device; });
  };
  Evaluation result;
  for (size_t op = 0; op < problem.ops.size(); ++op)
    result.opsNs += problem.weighted(problem.ops[op].cost[index(devices[op])]);
  for (const Store &store : problem.stores) {
    if (!anyOn(store.users, Device::Gpu))
      continue;
    result.gpuBytes += store.bytes;
    result.storesNs += store.uploadNs;
    if (anyOn(store.users, Device::Cpu))
      result.storesNs += store.duplicateNs;
  }
  for (const Tensor &tensor : problem.tensors) {
    const Device to = other(devices[tensor.producer]);
    if (anyOn(tensor.consumers, to))
      result.copiesNs += problem.weighted(tensor.copyTo[index(to)]);
  }
  return result;
}

} // namespace mcc::placement
