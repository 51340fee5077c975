// Normalisation of one row, shared by `norm` and the prologues of `linear` and `logits`.
//
// RMS: x / sqrt(mean(x^2) + eps). Layer norm: (x - mean) / sqrt(mean((x - mean)^2) + eps). Sums run over lanes of
// 16 columns in order and end in one fixed tree, so a row's result depends on nothing but the row.
#pragma once

#include "kernels/cpu/Vector.h"

namespace mcc::cpu {

/// KernelTable.def's `kind` of a norm.
enum NormKind : int64_t { kNoNorm = -1, kRmsNorm = 0, kLayerNorm = 1 };

/// What a norm needs besides the row; `weight` and `bias` are f32 [cols] or null.
struct Norm {
  const float *weight;
  const float *bias;
  int64_t kind;
  float eps;
};

/// A row's value is normalised as (value - mean) * factor; the mean is 0 for RMS.
struct RowStatistics {
  float mean, factor;
};

/// Measures x[0, cols).
MCC_INLINE RowStatistics measureRow(const Norm &norm, const float *x, int64_t cols) {
  float mean = 0.0f;
  if (norm.kind == kLayerNorm) {
    F32x16 sum = splat(0.0f);
    for (int64_t i = 0; i < cols; i += kLanes)
      sum += loadPart(x + i, cols - i);
    mean = sumLanes(sum) / static_cast<float>(cols);
  }
  F32x16 squares = splat(0.0f);
  for (int64_t i = 0; i < cols; i += kLanes) {
    // Lanes past the end read zero and must add nothing, also where a mean is subtracted.
    F32x16 value = loadPart(x + i, cols - i) - mean;
    if (cols - i < kLanes) {
      float lanes[kLanes] = {};
      storePart(lanes, value, cols - i);
      value = load(lanes);
    }
    squares += value * value;
  }
  return {mean, 1.0f / __builtin_sqrtf(sumLanes(squares) / static_cast<float>(cols) + norm.eps)};
}

/// Writes the normalised row x[0, cols) to y, which may be x.
MCC_INLINE void normaliseRow(const Norm &norm, const float *x, float *y, int64_t cols) {
  const RowStatistics row = measureRow(norm, x, cols);
  for (int64_t i = 0; i < cols; i += kLanes) {
    const int64_t left = cols - i;
    F32x16 value = (loadPart(x + i, left) - row.mean) * row.factor;
    if (norm.weight)
      value = value * loadPart(norm.weight + i, left);
    if (norm.bias)
      value = value + loadPart(norm.bias + i, left);
    storePart(y + i, value, left);
  }
}

} // namespace mcc::cpu
