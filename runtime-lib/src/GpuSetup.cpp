// The executable's choice of devices. The plan it was compiled with is the default: another one adds in another order.
#include "runtime-lib/src/GpuSetup.h"

#include "runtime-lib/placement/Resolve.h"
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

/// Places by cost or by a file of rules, as `placement` says, with notes on standard error.
static Result<std::vector<bool>> solvedPlan(const MccModel &model, const Options &options, const std::string &placement, MachineCosts &costs) {
  placement::ResolveOptions how;
  how.how = placement;
  how.workload.chunk = static_cast<int64_t>(model.chunk);
  how.gpuMemory = options.gpuMemory;
  if (costs.available())
    how.calibration = [&] { return costs.get(); };
  Result<placement::Resolved> resolved = placement::resolve(*model.program, how);
  if (!resolved.ok()) {
    const std::string &message = resolved.message();
    if (message.starts_with("error: ") || message.find(": error: ") != std::string::npos)
      return resolved.failure();
    return Failure{concat("error: --placement ", placement, ": ", message, options.machine.empty() ? "; give one with --machine FILE" : "")};
  }
  for (const std::string &note : resolved.value().notes)
    printError(concat("note: ", note));
  std::vector<bool> plan;
  for (const placement::Device device : resolved.value().devices)
    plan.push_back(device == placement::Device::Gpu);
  return plan;
}

/// Returns the bytes of GPU memory that a plan takes at most.
static uint64_t memoryOf(const MccModel &model, const std::vector<bool> &plan) {
  Result<placement::Problem> problem = placement::problemOf(*model.program, nullptr, {});
  if (!problem.ok() || std::find(plan.begin(), plan.end(), true) == plan.end())
    return 0;
  std::vector<placement::Device> devices;
  for (const bool there : plan)
    devices.push_back(there ? placement::Device::Gpu : placement::Device::Cpu);
  return placement::evaluate(problem.value(), devices).gpuBytes + placement::gpuActivationBytes(*model.program, static_cast<int64_t>(model.chunk));
}

/// Returns which launches the user wants on the GPU.
static Result<std::vector<bool>> planOf(const MccModel &model, const Options &options, MachineCosts &costs) {
  const MccProgram &program = *model.program;
  const std::string &placement = options.placement;
  const bool byRules = placement != "built" && placement != "cpu" && placement != "gpu" && !placement.starts_with("random:");
  if (byRules || (placement == "gpu" && options.gpuMemory))
    return solvedPlan(model, options, placement, costs);
  std::vector<bool> plan(program.launchCount, placement == "gpu");
  if (placement == "built") {
    for (uint32_t i = 0; i < program.launchCount; ++i)
      plan[i] = program.launches[i].device == 1;
    const uint64_t bytes = options.gpuMemory ? memoryOf(model, plan) : 0;
    if (options.gpuMemory && bytes > *options.gpuMemory) {
      printError(concat("note: the built plan takes up to ", bytes, " bytes of GPU memory, --gpu-memory permits ", *options.gpuMemory, ": placing by cost"));
      return solvedPlan(model, options, "auto", costs);
    }
  }
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

Result<std::vector<bool>> setUpGpu(Session &session, const Options &options, MachineCosts &costs) {
  const MccModel &model = session.model();
  if (model.program == nullptr) {
    if (options.placement == "built" || options.placement == "cpu")
      return std::vector<bool>();
    return Failure{concat("error: '--placement ", options.placement, "': this model was compiled for the CPU alone; compile it with --placement gpu or auto")};
  }
  Result<std::vector<bool>> chosen = planOf(model, options, costs);
  if (!chosen.ok())
    return chosen.failure();
  std::vector<bool> plan = std::move(chosen.value());
  if (std::find(plan.begin(), plan.end(), true) == plan.end())
    return plan;
  GpuRequest request;
  request.onGpu = plan;
  request.numerics = options.numerics;
  request.mostMemory = options.gpuMemory;
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (terminal || options.stats)
    request.beforeTaking = [](const std::string &device, const GpuMemory &memory) { printError(memoryLine(device, memory)); };
  if (terminal)
    request.progress = showProgress;
  Status status = session.useGpu(std::move(request));
  if (status.ok())
    return plan;
  plan.assign(plan.size(), false);
  if (options.onGpuMissing == GpuMissing::Cpu)
    return plan;
  if (options.onGpuMissing == GpuMissing::Fail)
    return Failure{concat("error: the GPU cannot be used: ", status.message(), "; --on-gpu-missing=warn goes on with the CPU")};
  printError(concat("note: the CPU runs everything: ", status.message()));
  return plan;
}

} // namespace mcc::runtime
