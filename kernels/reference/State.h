// The kernels with a state, in plain scalar loops (KernelTable.def: conv, selective_scan, state_scan, delta_scan).
//
// Everything is double between the inputs and the rounded result. A state is a plain row-major array that the caller
// keeps and hands to the next call; zeros at the start of a sequence.
#pragma once

#include "kernels/Activation.h"

#include <cstdint>

namespace mcc::reference {

/// Rows of `stride` elements.
struct Rows {
  const float *data = nullptr;
  int64_t stride = 0;
  const float *row(int64_t t) const { return data + t * stride; }
};

/// Returns ln(1 + e^x).
double softplus(double x);

/// A causal convolution of every channel by itself.
struct Conv {
  int64_t tokens, channels, taps;
  Rows x;
  const float *weight;         ///< [channels, taps]
  const float *bias = nullptr; ///< [channels]
  Activation activation = Activation::None;
};

/// `state` is [taps - 1, channels], the inputs before the first token, oldest first.
void conv(const Conv &conv, double *state, float *y, int64_t yStride);

/// Mamba's selective scan.
struct SelectiveScan {
  int64_t tokens, channels, depth;
  Rows x, dt, b, c;  ///< [channels], [channels], [depth], [depth]
  const float *a;    ///< [channels, depth]
  const float *skip; ///< [channels]
};

/// `state` is [channels, depth].
void selectiveScan(const SelectiveScan &scan, double *state, float *y, int64_t yStride);

/// Mamba 2's scan.
struct StateScan {
  int64_t tokens, heads, headDim, groups, depth;
  Rows x, dt, b, c;                ///< [heads, headDim], [heads], [groups, depth], [groups, depth]
  const float *a, *dtBias, *skip;  ///< [heads]
  float timeMin = 0.0f, timeMax = 0.0f;
};

/// `state` is [heads, headDim, depth].
void stateScan(const StateScan &scan, double *state, float *y, int64_t yStride);

/// The gated delta rule.
struct DeltaScan {
  int64_t tokens, keyHeads, valueHeads, keyDim, valueDim;
  Rows q, k, v, beta, decay; ///< [keyHeads, keyDim] twice, [valueHeads, valueDim], [valueHeads] twice
  const float *a, *dtBias;   ///< [valueHeads]
};

/// `state` is [valueHeads, keyDim, valueDim].
void deltaScan(const DeltaScan &scan, double *state, float *y, int64_t yStride);

} // namespace mcc::reference
