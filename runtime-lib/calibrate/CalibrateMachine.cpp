// The CPU first, on a pool of threads of its own that is gone before the GPU is measured.
#include "runtime-lib/calibrate/CalibrateMachine.h"

#include "runtime-lib/calibrate/GpuCalibrator.h"
#include "runtime-lib/placement/CalibrateCpu.h"
#include "runtime-lib/src/ThreadPool.h"

#include <algorithm>

namespace mcc::placement {

static CpuKernels kernelsOf(const MccCalibration &table) {
  CpuKernels kernels = {};
  for (uint64_t i = 0; i < table.linearCount; ++i)
    kernels.linear.push_back({static_cast<Format>(table.linears[i].format),
                              reinterpret_cast<decltype(&mcc_cpu_linear_f32)>(table.linears[i].run)});
  kernels.add = reinterpret_cast<decltype(&mcc_cpu_add)>(table.add);
  kernels.attention = reinterpret_cast<decltype(&mcc_cpu_attention)>(table.attention);
  return kernels;
}

static void runOnPool(void *context, const MccStep &shared, uint64_t scratchStride) {
  static_cast<runtime::ThreadPool *>(context)->run(shared, scratchStride);
}

static Result<DeviceProfile> measureCpu(const MccCalibration &table, const MachineCalibration &options, int64_t threads,
                                        const runtime::Processors &processors) {
  auto pool = runtime::ThreadPool::create(calibrationStep, threads, processors);
  if (!pool.ok())
    return pool.failure();
  CpuCalibration cpu;
  cpu.budgetNs = options.budgetNs;
  cpu.weights = options.weights;
  return calibrateCpu(kernelsOf(table), {pool.value().get(), threads, runOnPool}, cpu);
}

Result<CalibratedMachine> calibrateMachine(const MccCalibration &kernels, const MachineCalibration &options) {
  const runtime::Processors processors = runtime::usableProcessors();
  const int64_t threads = options.threads > 0 ? options.threads : std::min(processors.physical, runtime::maxThreads);
  const auto say = [&](const char *text) {
    if (options.stage)
      options.stage(text);
  };
  say("the cpu");
  Result<DeviceProfile> cpu = measureCpu(kernels, options, threads, processors);
  if (!cpu.ok())
    return cpu.failure();
  CalibratedMachine machine;
  machine.profile.machine.cpu = cpuName();
  machine.profile.machine.threads = threads;
  machine.profile.cpu = std::move(cpu.value());
  if (!kernels.gpu)
    return machine;
  say("the gpu");
  GpuCalibration request;
  request.budgetNs = options.budgetNs;
  request.prefillParts = options.prefillParts;
  for (const MatrixTimes &times : machine.profile.cpu.matrices)
    request.formats.push_back(times.format);
  Result<GpuMeasurements> gpu = kernels.gpu->run(request);
  if (!gpu.ok()) {
    machine.gpuProblem = gpu.message();
    return machine;
  }
  GpuMeasurements &found = gpu.value();
  machine.profile.gpu = std::move(found.device);
  machine.profile.link = std::move(found.link);
  machine.profile.machine.gpu = found.name;
  machine.profile.machine.driver = found.driver;
  machine.profile.machine.link = found.linkName;
  machine.profile.machine.gpuBytes = found.bytes;
  return machine;
}

} // namespace mcc::placement

const MccMachineCalibrator mccrt_machine_calibrator = {mcc::placement::calibrateMachine};
