// One sequence being generated: the state of a model between steps.
#pragma once

#include "mcc/Model.h"
#include "runtime-lib/src/Gpu.h"
#include "runtime-lib/src/HostMachine.h"
#include "runtime-lib/src/Result.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mcc::runtime {

/// What ran where, for the line at the end.
struct DeviceReport {
  int64_t gpuLaunches = 0; ///< launches done on the GPU
  int64_t replayed = 0;    ///< tokens run again on the CPU after a GPU error
  std::string lastError;   ///< "cudaMalloc: cudaErrorMemoryAllocation (out of memory)"; empty: none
};

/// Runs a model's steps. Tokens, position and logits are those of one sequence; reset() starts the next. Not thread-safe.
/// Every failure leaves the session usable after reset(). An error of the GPU is none of the session's: it goes on with
/// the CPU alone, after it has run the tokens so far there.
class Session {
public:
  /// `weights` is the segment "weights" and must outlive the session, like `model`. threads <= 0: the default.
  static Result<std::unique_ptr<Session>> create(const MccModel &model, const uint8_t *weights, int64_t threads);

  /// Moves launches to the GPU: takes its memory and uploads. request.model and host are filled in here. On failure the
  /// session stays on the CPU, and the report has the error.
  Status useGpu(GpuRequest request);

  /// From now on launches run one by one and add their times to `times`, which outlives the session; also on a GPU that
  /// useGpu() takes later. Asks for model().program.
  void measure(LaunchTimes *times) {
    measured = times;
    host->measure(times);
  }

  /// Forgets the sequence: position 0, zeroed cache.
  void reset();

  /// Limits the tokens per step of prefill to 1 <= `most`; the model's chunk is the ceiling. 1 is token by token.
  void limitChunk(int64_t most);

  /// Appends a non-empty prompt. Refuses ids outside the vocabulary and prompts that do not fit the context, before
  /// running anything; fails where the last row's logits are NaN. `ahead`: a promise to append at least so many further
  /// tokens one by one, each the token() before it, and not to ask for logits; a GPU may then run ahead.
  Status prefill(std::span<const int32_t> tokens, int64_t ahead = 0);

  /// Appends one token, as prefill does.
  Status decode(int32_t token, int64_t ahead = 0) { return prefill(std::span(&token, 1), ahead); }

  /// Returns the logits after the last token, f32 [vocabulary]; valid until the next step.
  std::span<const float> logits();
  /// Returns the greedy choice after the last token.
  int32_t token() const;
  /// Returns how many tokens the cache holds.
  int64_t position() const { return static_cast<int64_t>(history.size()); }

  const MccModel &model() const { return description; }
  int64_t threads() const { return host->threads(); }
  HostMachine &hostMachine() { return *host; }
  const DeviceReport &report() const { return devices; }
  /// Returns the GPU's side; null where the CPU runs everything.
  const GpuMachine *gpuMachine() const { return gpu.get(); }

private:
  Session(const MccModel &model, std::unique_ptr<HostMachine> host)
      : description(model), host(std::move(host)), chunk(model.chunk) {}
  Status checkTokens(std::span<const int32_t> tokens) const;
  Status checkChoice() const;
  void runStep(std::span<const int32_t> tokens, int64_t length, int64_t ahead);
  void abandonGpu(const std::string &error);

  const MccModel &description;
  std::unique_ptr<HostMachine> host;
  std::unique_ptr<GpuMachine> gpu;
  DeviceReport devices;
  LaunchTimes *measured = nullptr;
  int64_t chunk;
  std::vector<int32_t> history; ///< every token of the sequence that a step was run for
  std::vector<int64_t> lengths; ///< by token, the length that its step was told
};

} // namespace mcc::runtime
