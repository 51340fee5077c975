// The plan that an executable runs by: the one it was built with, one that the user names, or the best for this
// machine.
#pragma once

#include "runtime-lib/placement/ProgramGraph.h"

#include <functional>

namespace mcc::placement {

/// How to choose (--placement).
struct ResolveOptions {
  std::string how = "built"; ///< "built", "auto", "cpu", "gpu", or a file of rules
  Workload workload;
  std::optional<uint64_t> gpuMemory; ///< bytes that may be taken of the GPU's memory
  /// Gives this machine's calibration: reads a file, or measures for a moment. Asked only where costs decide.
  std::function<Result<Profile>()> calibration;
};

/// What was chosen.
struct Resolved {
  std::vector<Device> devices;    ///< by launch
  std::optional<Placed> placed;   ///< with problem and plan, unless the plan is the built one
  std::vector<std::string> notes; ///< lines for the user: how the plan differs from the built one, rules unused
};

/// Returns the plan that the program was built with.
std::vector<Device> builtDevices(const MccProgram &program);

/// Chooses a device for every launch. Fails where placeProgram or the calibration does.
Result<Resolved> resolve(const MccProgram &program, const ResolveOptions &options);

} // namespace mcc::placement
