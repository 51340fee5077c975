// Launchers of `linear` and `logits` (kernels/KernelTable.def) on the GPU. Design and order of additions: README.md.
#pragma once

#include "kernels/Format.h"
#include "kernels/cuda/Launch.h"

namespace mcc::cuda {

/// y = scale * activation(norm(x) W^T + bias) + residual, W packed in panel16. Meanings as in KernelTable.def; all
/// pointers are to device memory, `weight` 64-byte aligned, strides in elements.
struct Linear {
  Format format = Format::BF16;
  int64_t rows = 0, cols = 0;
  const float *x = nullptr; ///< [tokens][xStride]
  const uint8_t *weight = nullptr;
  const float *bias = nullptr;
  const float *residual = nullptr;
  float *y = nullptr; ///< may be `residual`
  int64_t xStride = 0, yStride = 0, residualStride = 0;
  int64_t activation = 0;
  bool gated = false;
  float scale = 1.0f; ///< of what the activation gives, before the residual; 1 in `Logits`, which has its own
  Norm norm;
  /// 0: a token's bits never depend on its neighbours. 1 to 3: more than 16 tokens may go to a GEMM that takes so many
  /// bf16 parts of an activation (1 rounds it, 2 keep 16 bits, 3 all 24), for the formats that have one (bf16).
  int prefillParts = 0;
  uint8_t *workspace = nullptr; ///< linearWorkspaceBytes(tokens, cols, prefillParts), shared by all launches of a
                                ///< stream, or null where 0
};

/// Bytes of workspace for launches of at most `tokens` tokens over at most `cols` columns. Monotonic in both.
int64_t linearWorkspaceBytes(int64_t tokens, int64_t cols, int prefillParts = 0);

/// Any number of tokens; above 16 in slices of 16, or as `prefillParts` says.
Status launchLinear(const Step &step, const Linear &linear, cudaStream_t stream);

/// One block's best logit.
struct Partial {
  float value;
  int32_t index;  ///< lowest index of `value`; -1: the block saw none
  int32_t sawNaN; ///< 1 where a logit was NaN
  int32_t padding;
};

/// logits = cap(scale * (norm(x) W^T + bias)) of the last token's row. `linear` gives format, rows, cols, x, weight,
/// bias, norm, xStride and workspace; y is logits [rows].
struct Logits {
  Linear linear;
  Partial *partials = nullptr; ///< [kLogitPartials]
  float scale = 1.0f, softcap = 0.0f;
};

/// Entries of `partials`: what the kernel does not use it marks as unused.
inline constexpr int64_t kLogitPartials = 512;

Status launchLogits(const Step &step, const Logits &logits, cudaStream_t stream);

/// token = index of the largest logit, lowest index on ties, -1 if any is NaN. Where `position` is set it is advanced
/// by the step's tokens: the last act of a step whose graph is replayed. Where `ring` is set, the token is published to
/// the host in ring[(step.position + tokens - 1) & ringMask], memory that the host maps.
struct Argmax {
  const Partial *partials = nullptr; ///< [kLogitPartials]
  int32_t *token = nullptr;
  int32_t *position = nullptr;
  int32_t *ring = nullptr; ///< [ringMask + 1], a power of two
  int32_t ringMask = 0;
};

Status launchArgmax(const Step &step, const Argmax &argmax, cudaStream_t stream);

} // namespace mcc::cuda
