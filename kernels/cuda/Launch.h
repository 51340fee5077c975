// What every CUDA launcher shares: the stream type, the step as kernels see it, status codes.
//
// Launchers are plain C++: they take device pointers and sizes, allocate nothing, never synchronise, and may be
// captured into a graph. What changes from replay to replay (tokens, position) is read through device pointers. Every
// launch allows programmatic dependent launch: a kernel may start while its predecessor in the stream still runs,
// fetches what no kernel writes (weights), and waits for the predecessor before it touches anything else.
#pragma once

#include <cstdint>

typedef struct CUstream_st *cudaStream_t;

namespace mcc::cuda {

/// A cudaError_t: 0 is success.
using Status = int;
/// A launcher refuses arguments that its kernel cannot serve with cudaErrorInvalidValue.
inline constexpr Status kInvalidValue = 1;

/// The step that a launch belongs to. `tokens` is fixed per graph; the pointers are to device memory.
struct Step {
  int64_t tokens = 1;                ///< rows of every activation buffer
  const int32_t *ids = nullptr;      ///< [tokens] token ids
  const int32_t *position = nullptr; ///< cache position of the first token
  const int32_t *length = nullptr;   ///< MccStep::length, or less than position + tokens; null where no launch asks
};

/// A norm that a kernel applies to its input first: KernelTable.def's `norm_kind` and its buffers.
struct Norm {
  int64_t kind = -1; ///< -1 none, 0 RMS, 1 layer norm
  const float *weight = nullptr;
  const float *bias = nullptr;
  float eps = 0.0f;
};

/// Returns the multiprocessors of the current device, asked once per process.
int multiprocessors();

} // namespace mcc::cuda
