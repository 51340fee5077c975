// What a session needs of a GPU, and what the GPU's side needs of the host: the seam between libmccrt.a and
// libmccrt-cuda.a. An executable that was compiled for the CPU alone links the first only.
#pragma once

#include "mcc/Model.h"
#include "runtime-lib/src/HostMachine.h"
#include "runtime-lib/src/LaunchTimes.h"
#include "runtime-lib/src/Result.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mcc::runtime {

/// How prefill multiplies (more than 16 tokens in a step). Decode is the same in all three.
enum class Numerics : uint8_t {
  Invariant, ///< as decode does, bit for bit
  Accurate,  ///< tensor cores, activations in two bf16 parts (16 bits)
  Fast,      ///< tensor cores, activations rounded to bf16; a library's GEMM where one is found
};

/// Returns the bf16 parts that the GPU's prefill makes of an activation (kernels/cuda/Linear.h).
constexpr int prefillPartsOf(Numerics numerics) {
  return numerics == Numerics::Invariant ? 0 : numerics == Numerics::Accurate ? 2 : 1;
}

/// What the GPU takes, known before it is taken.
struct GpuMemory {
  uint64_t weights = 0, cache = 0, activations = 0;
  uint64_t available = 0; ///< free on the device
  uint64_t total() const { return weights + cache + activations; }
};

struct GpuRequest {
  const MccModel *model = nullptr; ///< with a program
  HostMachine *host = nullptr;     ///< runs what is not on the GPU; outlives the machine
  std::vector<bool> onGpu;         ///< by launch
  Numerics numerics = Numerics::Accurate;
  std::optional<uint64_t> mostMemory; ///< bytes that may be taken of the device's memory
  LaunchTimes *times = nullptr;       ///< where set, every launch is waited for and adds its time; outlives the machine
  /// Told, once, what is about to be taken. May be empty.
  std::function<void(const std::string &device, const GpuMemory &)> beforeTaking;
  /// Told of bytes uploaded, of all; from any thread, one at a time. May be empty.
  std::function<void(uint64_t done, uint64_t all)> progress;
};

/// Runs steps of one sequence with the launches of a plan on the GPU, the others on the host. Messages name the call and
/// the error, as "cudaMalloc: cudaErrorMemoryAllocation (out of memory)". After a failure the machine is good for nothing.
class GpuMachine {
public:
  virtual ~GpuMachine() = default;
  /// Starts a sequence.
  virtual Status reset() = 0;
  /// Runs a step; `length` as in MccStep. `ahead`: how many further steps the caller will surely ask for, each with the token chosen before.
  virtual Status step(std::span<const int32_t> tokens, int64_t position, int64_t length, int64_t ahead) = 0;
  /// Returns the greedy token of the last step.
  virtual int32_t token() const = 0;
  /// Puts the last step's logits into the host's arena. Not to be asked for where steps ran ahead.
  virtual Status fetchLogits() = 0;
  /// Launches in a step that run on the GPU.
  virtual int64_t launchesOnGpu() const = 0;
  /// Seconds and bytes of the upload.
  virtual double uploadSeconds() const = 0;
  virtual uint64_t uploadedBytes() const = 0;
};

} // namespace mcc::runtime

extern "C" {
/// What libmccrt-cuda.a offers.
struct MccGpuRuntime {
  mcc::runtime::Result<std::unique_ptr<mcc::runtime::GpuMachine>> (*create)(mcc::runtime::GpuRequest request);
};
extern const MccGpuRuntime mccrt_gpu_runtime;
}
