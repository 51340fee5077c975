// The executable's choice of devices. The plan it was compiled with is the default: another one adds in another order.
#include "runtime-lib/src/GpuSetup.h"

#include "runtime-lib/calibrate/CalibrateMachine.h"
#include "runtime-lib/placement/Resolve.h"
#include "runtime-lib/src/Files.h"
#include "runtime-lib/src/Output.h"
#include "runtime-lib/src/Schedule.h"
#include "runtime-lib/src/Text.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <unistd.h>

namespace mcc::runtime {

/// Flips a coin for every launch; for tests of mixed plans. `seed` is a number.
static std::vector<bool> randomPlan(const MccProgram &program, const std::string &seed) {
  std::mt19937 generator(static_cast<uint32_t>(std::strtoul(seed.c_str(), nullptr, 10)));
  std::vector<bool> plan(program.launchCount);
  for (uint32_t i = 0; i < program.launchCount; ++i)
    plan[i] = (generator() >> 16 & 1) != 0;
  joinStates(program, plan);
  return plan;
}

/// Reads a calibration's file.
static Result<placement::Profile> readMachine(const std::string &path) {
  constexpr size_t most = size_t(64) << 20;
  Result<std::string> text = readFile(path, most);
  if (!text.ok())
    return text.failure();
  return placement::readProfile(path, std::move(text.value()));
}

/// Measures this machine for a moment.
static Result<placement::Profile> measureMachine(const MccCalibration &kernels, const Options &options) {
  placement::MachineCalibration request;
  request.threads = options.threads;
  request.budgetNs = 30e6;
  request.prefillParts = prefillPartsOf(options.numerics);
  Result<placement::CalibratedMachine> machine = kernels.machine->run(kernels, request);
  if (!machine.ok())
    return machine.failure();
  const std::string &problem = machine.value().gpuProblem;
  if (!problem.empty() && options.onGpuMissing == GpuMissing::Fail)
    return Failure{concat("error: the GPU cannot be used: ", problem, "; --on-gpu-missing=warn goes on with the CPU")};
  if (!problem.empty() && options.onGpuMissing == GpuMissing::Warn)
    printError(concat("note: the CPU runs everything: ", problem));
  return std::move(machine.value().profile);
}

/// Places by cost or by a file of rules, with notes on standard error.
static Result<std::vector<bool>> solvedPlan(const MccModel &model, const Options &options) {
  placement::ResolveOptions how;
  how.how = options.placement;
  how.workload.chunk = static_cast<int64_t>(model.chunk);
  if (!options.machine.empty())
    how.calibration = [&] { return readMachine(options.machine); };
  else if (const MccCalibration *kernels = model.program->calibration)
    how.calibration = [&, kernels] { return measureMachine(*kernels, options); };
  Result<placement::Resolved> resolved = placement::resolve(*model.program, how);
  if (!resolved.ok()) {
    const std::string &message = resolved.message();
    if (message.starts_with("error: ") || message.find(": error: ") != std::string::npos)
      return resolved.failure();
    return Failure{concat("error: --placement ", options.placement, ": ", message, options.machine.empty() ? "; give one with --machine FILE" : "")};
  }
  for (const std::string &note : resolved.value().notes)
    printError(concat("note: ", note));
  std::vector<bool> plan;
  for (const placement::Device device : resolved.value().devices)
    plan.push_back(device == placement::Device::Gpu);
  return plan;
}

/// Returns which launches the user wants on the GPU.
static Result<std::vector<bool>> planOf(const MccModel &model, const Options &options) {
  const MccProgram &program = *model.program;
  const std::string &placement = options.placement;
  if (placement != "built" && placement != "cpu" && placement != "gpu" && !placement.starts_with("random:"))
    return solvedPlan(model, options);
  std::vector<bool> plan(program.launchCount, placement == "gpu");
  if (placement == "built")
    for (uint32_t i = 0; i < program.launchCount; ++i)
      plan[i] = program.launches[i].device == 1;
  if (placement.starts_with("random:"))
    return randomPlan(program, placement.substr(7));
  return plan;
}

static std::string gigabytes(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, bytes < 10000000 ? "%.4f GB" : "%.2f GB", double(bytes) * 1e-9);
  return text;
}

static std::string memoryLine(const std::string &device, const GpuMemory &memory) {
  return concat("GPU '", device, "': takes ", gigabytes(memory.total()), " (weights ", gigabytes(memory.weights), ", cache ",
                gigabytes(memory.cache), ", activations ", gigabytes(memory.activations), ") of ", gigabytes(memory.available), " free");
}

static void showProgress(uint64_t done, uint64_t all) {
  static int shown = -1;
  const int percent = all == 0 ? 100 : static_cast<int>(done * 100 / all);
  if (percent == shown)
    return;
  shown = percent;
  std::fprintf(stderr, percent == 100 ? "\r\033[K" : "\ruploading weights to the GPU: %d%%", percent);
}

Status setUpGpu(Session &session, const Options &options) {
  const MccModel &model = session.model();
  if (model.program == nullptr) {
    if (options.placement == "built" || options.placement == "cpu")
      return {};
    return Failure{concat("error: '--placement ", options.placement, "': this model was compiled for the CPU alone; compile it with --placement gpu or auto")};
  }
  Result<std::vector<bool>> chosen = planOf(model, options);
  if (!chosen.ok())
    return chosen.failure();
  std::vector<bool> plan = std::move(chosen.value());
  if (std::find(plan.begin(), plan.end(), true) == plan.end())
    return {};
  GpuRequest request;
  request.onGpu = std::move(plan);
  request.numerics = options.numerics;
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (terminal || options.stats)
    request.beforeTaking = [](const std::string &device, const GpuMemory &memory) { printError(memoryLine(device, memory)); };
  if (terminal)
    request.progress = showProgress;
  Status status = session.useGpu(std::move(request));
  if (status.ok() || options.onGpuMissing == GpuMissing::Cpu)
    return {};
  if (options.onGpuMissing == GpuMissing::Fail)
    return Failure{concat("error: the GPU cannot be used: ", status.message(), "; --on-gpu-missing=warn goes on with the CPU")};
  printError(concat("note: the CPU runs everything: ", status.message()));
  return {};
}

} // namespace mcc::runtime
