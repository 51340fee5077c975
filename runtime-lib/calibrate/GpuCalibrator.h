// The seam between calibration in libmccrt.a and its GPU part in libmccrt-cuda.a.
#pragma once

#include "mcc/Calibration.h"
#include "runtime-lib/placement/Profile.h"

namespace mcc::placement {

/// What to measure of the GPU.
struct GpuCalibration {
  double budgetNs = 50e6;      ///< time for samples, once the device is open
  size_t mostRepeats = 15;     ///< samples of one size
  std::vector<Format> formats; ///< of weights; at least one
  int prefillParts = 2;        ///< of a prompt's activations (kernels/cuda/Linear.h)
};

/// What was measured, and on what.
struct GpuMeasurements {
  DeviceProfile device;
  Link link;
  std::string name, driver, linkName;
  uint64_t bytes = 0; ///< of its memory
};

} // namespace mcc::placement

extern "C" {
/// What libmccrt-cuda.a offers. Fails where there is no usable GPU; the message names the CUDA call and its error.
struct MccGpuCalibrator {
  mcc::placement::Result<mcc::placement::GpuMeasurements> (*run)(const mcc::placement::GpuCalibration &options);
};
extern const MccGpuCalibrator mccrt_gpu_calibrator;
}
