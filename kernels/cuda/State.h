// Launchers of the kernels with a state of the sequence: conv, selective_scan, state_scan, delta_scan
// (kernels/KernelTable.def). States have the CPU's layouts, panels of 16 lanes. Every one reads its state and moves it on
// past the step's tokens: none may be run twice over a token.
#pragma once

#include "kernels/cuda/Launch.h"

namespace mcc::cuda {

/// y[t, c] = activation(bias[c] + sum over k of weight[c, k] x[t - taps + 1 + k, c]). weight is packed f32 [channels, taps].
struct Conv {
  const float *x = nullptr, *weight = nullptr, *bias = nullptr; ///< bias may be null
  float *state = nullptr;                                       ///< [taps - 1][ceil16(channels)]; null for one tap
  float *y = nullptr;                                           ///< not x
  int64_t channels = 0, taps = 0, xStride = 0, yStride = 0, activation = 0;
};
Status launchConv(const Step &step, const Conv &conv, cudaStream_t stream);

/// Mamba's scan; a is packed f32 [channels, depth], skip f32 [channels].
struct SelectiveScan {
  const float *x = nullptr, *dt = nullptr, *b = nullptr, *c = nullptr, *a = nullptr, *skip = nullptr;
  float *state = nullptr; ///< [ceil(channels/16)][depth][16]
  float *y = nullptr;
  int64_t channels = 0, depth = 0, xStride = 0, dtStride = 0, bStride = 0, cStride = 0, yStride = 0;
};
Status launchSelectiveScan(const Step &step, const SelectiveScan &scan, cudaStream_t stream);

/// Mamba 2's scan; a, dtBias and skip are f32 [heads].
struct StateScan {
  const float *x = nullptr, *dt = nullptr, *b = nullptr, *c = nullptr, *a = nullptr, *dtBias = nullptr, *skip = nullptr;
  float *state = nullptr; ///< [heads][ceil(headDim/16)][depth][16]
  float *y = nullptr;
  int64_t heads = 0, headDim = 0, groups = 0, depth = 0, xStride = 0, dtStride = 0, bStride = 0, cStride = 0, yStride = 0;
  float timeMin = 0.0f, timeMax = 0.0f;
};
Status launchStateScan(const Step &step, const StateScan &scan, cudaStream_t stream);

/// The gated delta rule; a and dtBias are f32 [valueHeads].
struct DeltaScan {
  const float *q = nullptr, *k = nullptr, *v = nullptr, *beta = nullptr, *decay = nullptr, *a = nullptr, *dtBias = nullptr;
  float *state = nullptr; ///< [valueHeads][ceil(valueDim/16)][keyDim][16]
  float *y = nullptr;
  int64_t keyHeads = 0, valueHeads = 0, keyDim = 0, valueDim = 0;
  int64_t qStride = 0, kStride = 0, vStride = 0, betaStride = 0, decayStride = 0, yStride = 0;
};
Status launchDeltaScan(const Step &step, const DeltaScan &scan, cudaStream_t stream);

} // namespace mcc::cuda
