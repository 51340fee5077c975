// Norm and rotation of one head's vector in shared memory by 64 threads: the same numbers in every kernel that calls
// them.
#pragma once

#include "kernels/cuda/Attention.h"
#include "kernels/cuda/math.cuh"

namespace mcc::cuda {

/// Threads that take a vector together.
constexpr int kVectorThreads = 64;

/// Sums over the threads, warps in order. `scratch` holds a float for each warp.
__device__ inline float vectorSum(float value, float *scratch, int thread, uint32_t barrier) {
  value = warp_sum(value);
  if (thread % 32 == 0)
    scratch[thread / 32] = value;
  ptx::bar_sync(barrier, kVectorThreads);
  float sum = scratch[0];
  for (int warp = 1; warp < kVectorThreads / 32; ++warp)
    sum += scratch[warp];
  return sum;
}

/// Rotates the first 2 * pairs entries; each thread takes whole pairs. `turn` is the cosine and sine of its first.
__device__ inline void rotateVector(float *head, const float *cosSin, float2 turn, int64_t pairs, int64_t pairing,
                                    int thread) {
  const int64_t apart = pairing == 0 ? pairs : 1, advance = pairing == 0 ? 1 : 2;
  for (int64_t i = thread; i < pairs; i += kVectorThreads) {
    float *first = head + i * advance, *second = first + apart;
    const float a = *first, b = *second;
    if (i >= kVectorThreads)
      turn = {__ldcg(cosSin + i), __ldcg(cosSin + pairs + i)};
    *first = fmaf(a, turn.x, -__fmul_rn(b, turn.y));
    *second = fmaf(b, turn.x, __fmul_rn(a, turn.y));
  }
}

/// RMS norm of the vector in place; each thread reads and writes the entries it owns.
__device__ inline void normaliseVector(float *vector, const float *weight, int64_t dim, float eps, float *scratch,
                                       int thread, uint32_t barrier) {
  float squares = 0.0f;
  for (int64_t d = thread; d < dim; d += kVectorThreads)
    squares = fmaf(vector[d], vector[d], squares);
  const float factor = 1.0f / sqrtf(vectorSum(squares, scratch, thread, barrier) / static_cast<float>(dim) + eps);
  for (int64_t d = thread; d < dim; d += kVectorThreads)
    vector[d] = vector[d] * factor * weight[d];
}

/// rope_cache_prefill.cu: `rope_cache` of many tokens, heads of at most 512 dimensions; the same bits.
Status launchRopeCacheMany(const Step &step, const RopeCache &rope, cudaStream_t stream);

} // namespace mcc::cuda
