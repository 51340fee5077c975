// Measures this machine's CPU with the kernels themselves, on the threads that will run them.
#pragma once

#include "kernels/Step.h"
#include "kernels/cpu/Kernels.h"
#include "runtime-lib/placement/Profile.h"

#include <span>

namespace mcc::placement {

/// The kernels to measure; at least one of `linear`.
struct CpuKernels {
  struct Linear {
    Format format;
    decltype(&mcc_cpu_linear_f32) run;
  };
  std::vector<Linear> linear;
  decltype(&mcc_cpu_add) add;
  decltype(&mcc_cpu_attention) attention;
};

/// The threads: `run` calls calibrationStep on every worker with a copy of `shared`, with its own thread, threads and
/// barrier, and scratch moved on by `scratchStride` a worker, and returns when all have finished (ThreadPool::run).
struct CpuWorkers {
  void *context;
  int64_t threads;
  void (*run)(void *context, const MccStep &shared, uint64_t scratchStride);
};

/// What every worker runs. `step->arena` is what calibrateCpu put there.
void calibrationStep(const MccStep *step);

/// How much to measure.
struct CpuCalibration {
  /// Time for all samples. Everything is measured once at its smallest size whatever the budget; beyond, a size is
  /// measured only if it is expected to fit. 30 ms give a usable profile, 2 s a good one.
  double budgetNs = 50e6;
  size_t mostRepeats = 15; ///< samples of one size
  /// Packed weights to read, of any values and format, larger than the caches to be true to decode; 64-byte aligned.
  /// Empty: some are made, in 8 MB for budgets below 200 ms, in 64 MB above.
  std::span<const uint8_t> weights = {};
};

/// Measures. Times are medians of repetitions taken in turns, so that a disturbance hits one sample of each size rather
/// than all of one. Fails where there is no `linear` kernel or no memory.
Result<DeviceProfile> calibrateCpu(const CpuKernels &kernels, const CpuWorkers &workers,
                                   const CpuCalibration &options = {});

/// Returns this processor's name as the system knows it; "unknown" where it does not say.
std::string cpuName();

} // namespace mcc::placement
