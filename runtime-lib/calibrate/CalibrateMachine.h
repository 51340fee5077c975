// Measures the machine that the program runs on: its CPU, its GPU and the link between them.
#pragma once

#include "mcc/Calibration.h"
#include "runtime-lib/placement/Profile.h"

#include <functional>
#include <span>

namespace mcc::placement {

/// How much to measure, and with what.
struct MachineCalibration {
  int64_t threads = 0;                     ///< 0: the physical cores that this process may use
  double budgetNs = 50e6;                  ///< for samples of each device; 30 ms are usable, 2 s good
  std::span<const uint8_t> weights = {};   ///< as CpuCalibration's
  int prefillParts = 2;                    ///< as GpuCalibration's
  std::function<void(const char *)> stage; ///< told what is measured next ("the cpu"); may be empty
};

/// A profile, and why it has no GPU; empty where it has one, or where none was asked for.
struct CalibratedMachine {
  Profile profile;
  std::string gpuProblem;
};

/// Measures with the kernels of `kernels`. Fails where the CPU cannot be measured; that there is no GPU is none of it.
Result<CalibratedMachine> calibrateMachine(const MccCalibration &kernels, const MachineCalibration &options);

} // namespace mcc::placement

extern "C" {
/// calibrateMachine, for executables that reach it through their table of kernels.
struct MccMachineCalibrator {
  mcc::placement::Result<mcc::placement::CalibratedMachine> (*run)(const MccCalibration &kernels,
                                                                   const mcc::placement::MachineCalibration &options);
};
extern const MccMachineCalibrator mccrt_machine_calibrator;
}
