// Moves a session's work to the GPU as the model was compiled and the user asks.
#pragma once

#include "runtime-lib/src/MachineCosts.h"
#include "runtime-lib/src/Options.h"
#include "runtime-lib/src/Session.h"

namespace mcc::runtime {

/// Places the session's launches by options.placement and takes the GPU, with notes on standard error. What to do without
/// a GPU is options.onGpuMissing's to say; fails where that is `fail`, or where the plan cannot be. Returns by launch which
/// are on the GPU now.
Result<std::vector<bool>> setUpGpu(Session &session, const Options &options, MachineCosts &costs);

} // namespace mcc::runtime
