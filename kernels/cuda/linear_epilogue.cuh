// What the kernels of `linear` and `logits` share: a launch's arguments and what happens to a finished sum.
#pragma once

#include "kernels/cuda/Linear.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/math.cuh"

namespace mcc::cuda {

constexpr int kPanel = 16;

/// What a launch of a kernel of `linear` is given.
struct LinearLaunch {
  const uint8_t *weight;
  int64_t panelBytes;
  int panels, cols, rows, tokens, stages;
  const float *x;
  const uint2 *operand; ///< activations split beforehand, or null: the block does it
  const void *infos;    ///< beside them: TwoHalves::Info [step][token]
  const float *bias, *residual;
  float *y;
  int64_t xStride, yStride, residualStride, activation;
  bool gated;
  Norm norm;
  Partial *partials; ///< of `logits`, or null
  float scale;       ///< of what the activation gives
  float softcap;     ///< of `logits`
};

/// Bias, activation, gate, scale and residual of one output: `sum` and, where gated, its `up`; returns what is stored.
__device__ __forceinline__ float finishSums(const LinearLaunch &launch, float sum, float up, int lane, int row,
                                            int token) {
  if (launch.gated) {
    if (launch.bias) {
      const float *bias = launch.bias + (row - lane) * 2;
      sum = __fadd_rn(sum, bias[lane]);
      up = __fadd_rn(up, bias[kPanel + lane]);
    }
    sum = __fmul_rn(activate(sum, launch.activation), up);
  } else {
    if (launch.bias)
      sum = __fadd_rn(sum, launch.bias[row]);
    sum = activate(sum, launch.activation);
  }
  sum = __fmul_rn(sum, launch.scale);
  if (launch.residual)
    sum = __fadd_rn(sum, launch.residual[token * launch.residualStride + row]);
  return sum;
}

/// The better of two bests: the larger value, the lower index on ties; index -1 is none.
__device__ __forceinline__ Partial better(const Partial &a, const Partial &b) {
  const bool takeB = b.index >= 0 && (a.index < 0 || b.value > a.value || (b.value == a.value && b.index < a.index));
  Partial best = takeB ? b : a;
  best.sawNaN = a.sawNaN | b.sawNaN;
  return best;
}

/// Caps a logit and keeps the best.
__device__ __forceinline__ float finishLogit(const LinearLaunch &launch, float value, int row, Partial &best) {
  if (launch.softcap > 0.0f)
    value = launch.softcap * tanhf(value / launch.softcap);
  best = better(best, {value, isnan(value) ? -1 : row, isnan(value) ? 1 : 0, 0});
  return value;
}

/// The best of a block's first half warp, which saw all its logits; called by `threads` threads.
__device__ __forceinline__ void storeBest(const LinearLaunch &launch, Partial best, int thread,
                                          int threads = kRowThreads) {
  if (thread < 32) {
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2)
      best = better(best,
                    {__shfl_down_sync(0xffffffffu, best.value, apart), __shfl_down_sync(0xffffffffu, best.index, apart),
                     __shfl_down_sync(0xffffffffu, best.sawNaN, apart), 0});
    if (thread == 0)
      launch.partials[blockIdx.x] = best;
  }
  for (int i = gridDim.x + blockIdx.x * threads + thread; i < kLogitPartials; i += gridDim.x * threads)
    launch.partials[i] = {0.0f, -1, 0, 0};
}

/// linear_chain.cu: any format, 1 to 16 tokens, no norm.
Status launchChain(Format format, const LinearLaunch &launch, cudaStream_t stream);
/// linear_stream_<format>.cu: 1 to 16 tokens; more than 2, or too many columns, with `operand` split beforehand.
Status launchStreamBF16(const LinearLaunch &launch, cudaStream_t stream);
Status launchStreamF16(const LinearLaunch &launch, cudaStream_t stream);
Status launchStreamQ8_0(const LinearLaunch &launch, cudaStream_t stream);
Status launchStreamF8(const LinearLaunch &launch, cudaStream_t stream);
Status launchStreamQ4_0(const LinearLaunch &launch, cudaStream_t stream);
/// linear_tile.cu: bf16, any number of tokens, activations in `planes` parts; workspace of tileWorkspaceBytes.
Status launchTiles(const LinearLaunch &launch, int planes, uint8_t *workspace, cudaStream_t stream);
int64_t tileWorkspaceBytes(int64_t tokens, int64_t cols, int planes);

} // namespace mcc::cuda
