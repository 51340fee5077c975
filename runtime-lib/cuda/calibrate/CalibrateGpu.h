// Measures device 0 with the CUDA launchers themselves.
#pragma once

#include "runtime-lib/calibrate/GpuCalibrator.h"

namespace mcc::placement {

/// Measures the GPU and its link. Fails where there is no usable GPU, no memory (up to 1.5 GB are taken) or a call
/// fails; the message names it.
Result<GpuMeasurements> calibrateGpu(const GpuCalibration &options);

} // namespace mcc::placement
