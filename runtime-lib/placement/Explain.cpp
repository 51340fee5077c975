// The margin of an op is measured, not derived: its unit is flipped and the change of the whole cost taken. The reason
// is the first that accounts for an op's place: what was not free first, then its own times, then what moving would
// bring.
#include "runtime-lib/placement/Explain.h"

#include "runtime-lib/placement/PlanState.h"
#include "runtime-lib/placement/TextTable.h"
#include "runtime-lib/src/Text.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mcc::placement {

using runtime::concat;

namespace {

/// What flipping a unit changes.
struct Flip {
  double ns = 0;
  uint64_t bytes = 0; ///< on the GPU afterwards
};

class Explainer {
public:
  Explainer(const Problem &problem, const Units &units, const Plan &plan)
      : problem(problem), units(units), plan(plan), state(problem, units, plan.devices) {}
  OpReport report(uint32_t op);

private:
  Flip tryFlip(uint32_t unit);
  double ownCost(uint32_t op, Device device) const { return problem.weighted(problem.ops[op].cost[index(device)]); }
  double unitGain(uint32_t unit) const;
  double uploadOf(uint32_t unit) const;
  std::string stateOf(uint32_t op) const;
  void judge(uint32_t op, const Flip &flip, OpReport &report) const;

  const Problem &problem;
  const Units &units;
  const Plan &plan;
  PlanState state;
};

} // namespace

Flip Explainer::tryFlip(uint32_t unit) {
  const double before = state.cost();
  state.flip(unit);
  const Flip result{state.cost() - before, state.bytes()};
  state.flip(unit);
  return result;
}

/// Returns what the ops of a unit would save on their own elsewhere.
double Explainer::unitGain(uint32_t unit) const {
  double gain = 0;
  for (const uint32_t op : units.ops[unit])
    gain += ownCost(op, plan.devices[op]) - ownCost(op, other(plan.devices[op]));
  return gain;
}

/// Returns what uploads a unit on the CPU would add.
double Explainer::uploadOf(uint32_t unit) const {
  const auto isMember = [&](uint32_t op) { return units.ofOp[op] == unit; };
  const auto onGpu = [&](uint32_t op) { return plan.devices[op] == Device::Gpu; };
  double ns = 0;
  for (const Store &store : problem.stores)
    if (std::any_of(store.users.begin(), store.users.end(), isMember) &&
        std::none_of(store.users.begin(), store.users.end(), onGpu))
      ns += store.uploadNs;
  return ns;
}

/// Returns the name of a state that the op shares.
std::string Explainer::stateOf(uint32_t op) const {
  for (const Store &store : problem.stores)
    if (store.kind == Store::Kind::State && std::find(store.users.begin(), store.users.end(), op) != store.users.end())
      return store.name;
  return {};
}

/// Finds the reason of an op that the problem leaves free.
void Explainer::judge(uint32_t op, const Flip &flip, OpReport &report) const {
  const uint32_t unit = units.ofOp[op];
  const double here = report.costNs[index(report.device)], there = report.costNs[index(other(report.device))];
  const bool toGpu = report.device == Device::Cpu;
  if (here < there) {
    report.reason = Reason::Cheaper;
  } else if (here == there) {
    report.reason = Reason::Equal;
  } else if (toGpu && problem.gpuMemory && flip.bytes > *problem.gpuMemory) {
    report.reason = Reason::Memory;
  } else if (units.ops[unit].size() > 1 && unitGain(unit) <= 0) {
    report.reason = Reason::State;
    report.detail = stateOf(op);
  } else if (toGpu && unitGain(unit) <= uploadOf(unit)) {
    report.reason = Reason::Upload;
  } else {
    report.reason = Reason::Copies;
  }
}

OpReport Explainer::report(uint32_t op) {
  const Op &facts = problem.ops[op];
  const uint32_t unit = units.ofOp[op];
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  OpReport report;
  report.device = plan.devices[op];
  for (const Device device : {Device::Cpu, Device::Gpu})
    report.costNs[index(device)] = facts.allowed[index(device)] ? ownCost(op, device) : none;
  for (const Tensor &tensor : problem.tensors)
    if (tensor.producer == op && std::any_of(tensor.consumers.begin(), tensor.consumers.end(),
                                             [&](uint32_t c) { return plan.devices[c] != report.device; }))
      report.copyNs += problem.weighted(tensor.copyTo[index(other(report.device))]);
  report.marginNs = none;
  if (facts.forced) {
    report.reason = Reason::Rule;
    report.detail = facts.rule;
  } else if (!facts.allowed[index(other(report.device))]) {
    report.reason = Reason::OnlyKernel;
  } else if (units.fixed[unit]) {
    report.reason = Reason::State;
    report.detail = stateOf(op);
  } else {
    const Flip flip = tryFlip(unit);
    report.marginNs = flip.ns;
    judge(op, flip, report);
  }
  return report;
}

Result<std::vector<OpReport>> explain(const Problem &problem, const Plan &plan) {
  if (plan.devices.size() != problem.ops.size())
    return Failure{concat("the plan has ", plan.devices.size(), " ops; the problem has ", problem.ops.size())};
  Result<Units> units = makeUnits(problem);
  if (!units.ok())
    return units.failure();
  Explainer explainer(problem, units.value(), plan);
  std::vector<OpReport> reports;
  for (uint32_t op = 0; op < problem.ops.size(); ++op)
    reports.push_back(explainer.report(op));
  return reports;
}

/// Returns a time in ms with three decimals, "-" for NaN.
static std::string milliseconds(double ns) {
  if (std::isnan(ns))
    return "-";
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.3f", ns / 1e6);
  return buffer;
}

static std::string reasonText(const OpReport &report) {
  switch (report.reason) {
  case Reason::Rule:
    return concat("forced by ", report.detail);
  case Reason::OnlyKernel:
    return concat("no ", deviceName(other(report.device)), " kernel");
  case Reason::Cheaper:
    return "cheaper here";
  case Reason::Equal:
    return "costs the same on both";
  case Reason::State:
    return concat("follows '", report.detail, "'");
  case Reason::Upload:
    return "upload of its weight not repaid";
  case Reason::Memory:
    return "gpu memory is full";
  case Reason::Copies:
    return "copies would cost more";
  }
  return {};
}

/// Returns the lines below the table.
static std::string totals(const Problem &problem, const Plan &plan) {
  const auto onGpu = std::count(plan.devices.begin(), plan.devices.end(), Device::Gpu);
  std::string text =
      concat("ops on the gpu: ", onGpu, " of ", plan.devices.size(), "; gpu memory: ", plan.cost.gpuBytes, " bytes");
  if (problem.gpuMemory)
    text += concat(" of ", *problem.gpuMemory);
  text += concat("\ntotal: ", milliseconds(plan.cost.totalNs()), " ms = ops ", milliseconds(plan.cost.opsNs),
                 " + copies ", milliseconds(plan.cost.copiesNs), " + uploads ", milliseconds(plan.cost.storesNs),
                 "\nbound: ", milliseconds(plan.boundNs), " ms, ");
  if (plan.optimal())
    return text + "so no placement is better\n";
  return text + concat("so no placement is better by more than ", 100 * plan.gapNs() / plan.cost.totalNs(), "%\n");
}

Result<std::string> explainTable(const Problem &problem, const Plan &plan) {
  Result<std::vector<OpReport>> reports = explain(problem, plan);
  if (!reports.ok())
    return reports.failure();
  TextTable table(2, /*leftLast=*/true);
  table.add({"op", "on", "cpu ms", "gpu ms", "copy ms", "margin ms", "reason"});
  for (size_t op = 0; op < problem.ops.size(); ++op) {
    const OpReport &report = reports.value()[op];
    table.add({problem.ops[op].name, deviceName(report.device), milliseconds(report.costNs[0]),
               milliseconds(report.costNs[1]), milliseconds(report.copyNs), milliseconds(report.marginNs),
               reasonText(report)});
  }
  return concat("prefill once, ", problem.decodeSteps, " decode steps:\n") + table.text() + totals(problem, plan);
}

} // namespace mcc::placement
