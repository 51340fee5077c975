// "cpu" and "gpu" need no costs, and a file of rules needs them only for what it leaves open: so rules are tried
// without a calibration first, which takes time where it is measured.
#include "runtime-lib/placement/Resolve.h"

#include "runtime-lib/src/Text.h"

#include <algorithm>

namespace mcc::placement {

using runtime::concat;

std::vector<Device> builtDevices(const MccProgram &program) {
  std::vector<Device> devices;
  for (uint32_t i = 0; i < program.launchCount; ++i)
    devices.push_back(program.launches[i].device == 0 ? Device::Cpu : Device::Gpu);
  return devices;
}

/// Says how a plan differs from the built one; empty where it does not.
static std::string differenceFrom(const std::vector<Device> &built, const std::vector<Device> &devices) {
  if (built == devices)
    return {};
  const auto onGpu = [](const std::vector<Device> &plan) { return std::count(plan.begin(), plan.end(), Device::Gpu); };
  return concat("placement: ", onGpu(devices), " of ", devices.size(), " launches on the gpu; built with ",
                onGpu(built), ", and the other device adds in another order");
}

/// Returns whether some launch is left to its cost by the rules.
static bool needsCosts(const MccProgram &program, const PlacementRequest &request) {
  Result<Problem> problem = problemOf(program, nullptr, request.workload);
  return problem.ok() && applyRules(request.rules, problem.value()).ok() &&
         std::any_of(problem.value().ops.begin(), problem.value().ops.end(),
                     [](const Op &op) { return !op.forced && op.allowed[0] && op.allowed[1]; });
}

Result<Resolved> resolve(const MccProgram &program, const ResolveOptions &options) {
  const std::vector<Device> built = builtDevices(program);
  if (options.how == "built")
    return Resolved{built, std::nullopt, {}};
  Result<std::vector<Rule>> rules = rulesOf(options.how);
  if (!rules.ok())
    return rules.failure();
  PlacementRequest request{nullptr, std::move(rules.value()), options.workload, options.gpuMemory};
  std::optional<Profile> profile;
  if (options.calibration && needsCosts(program, request)) {
    Result<Profile> measured = options.calibration();
    if (!measured.ok())
      return measured.failure();
    profile = std::move(measured.value());
    request.profile = &*profile;
  }
  Result<Placed> placed = placeProgram(program, request);
  if (!placed.ok())
    return placed.failure();
  Resolved resolved{placed.value().plan.devices, std::nullopt, placed.value().notes};
  if (std::string text = differenceFrom(built, resolved.devices); !text.empty())
    resolved.notes.insert(resolved.notes.begin(), std::move(text));
  resolved.placed = std::move(placed.value());
  return resolved;
}

} // namespace mcc::placement
