// From a launch of the program's table to a CUDA launcher: the one place that knows both.
#pragma once

#include "kernels/cuda/Launch.h"
#include "mcc/Program.h"

#include <cstdint>

namespace mcc::runtime {

/// Device memory that launches share.
struct Workspace {
  uint8_t *linear = nullptr;    ///< workspaceBytes(...).linear
  uint8_t *attention = nullptr; ///< zeroed once
  uint8_t *partials = nullptr;  ///< of logits and argmax
};

/// What each part takes; the most of what the launches given to add() need.
struct WorkspaceBytes {
  int64_t linear = 0, attention = 0, partials = 0;
  /// Raises the parts to what `launch` needs with up to `tokens` tokens.
  void add(const MccLaunch &launch, int64_t tokens, int prefillParts);
};

/// Where argmax tells its result, besides the buffer of the program.
struct TokenSink {
  int32_t *token = nullptr;    ///< on the device, in place of the program's buffer
  int32_t *position = nullptr; ///< advanced by the step's tokens; may be null
  int32_t *ring = nullptr;     ///< of the host; see cuda::Argmax
  int32_t ringMask = 0;
};

/// Everything but the launch itself.
struct LaunchContext {
  cuda::Step step;
  Workspace workspace;
  TokenSink sink;
  int prefillParts = 0;
  cudaStream_t stream = nullptr;
};

/// Returns whether the kernel with this number in kernels/KernelTable.def has a launcher.
bool hasLauncher(uint32_t kernel);

/// Starts a launch. `buffers` are device pointers in the kernel table's order, null where absent. Returns a cudaError_t.
cuda::Status start(const MccLaunch &launch, uint8_t *const *buffers, const LaunchContext &context);

} // namespace mcc::runtime
