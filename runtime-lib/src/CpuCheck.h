// Does this processor have what the step was compiled for?
#pragma once

#include "mcc/Model.h"
#include "runtime-lib/src/Result.h"

namespace mcc::runtime {

/// Fails, naming every missing feature and the CPU the program was compiled for, unless this processor and operating
/// system support all of `model.cpuFeatures`. A name this runtime has no test for counts as missing.
Status checkCpu(const MccModel &model);

} // namespace mcc::runtime
