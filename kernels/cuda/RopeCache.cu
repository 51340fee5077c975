// rope_cache: one block a head and token normalises, rotates and stores its vector. Bound by latency.
#include "kernels/cuda/Attention.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/math.cuh"

namespace mcc::cuda {

namespace {

constexpr int kThreads = 64;

// Sums over the block, warps in order. `scratch` holds a float for each warp.
__device__ float blockSum(float value, float *scratch) {
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0)
    scratch[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = scratch[0];
  for (int warp = 1; warp < kThreads / 32; ++warp)
    sum += scratch[warp];
  return sum;
}

// Rotates the first 2 * pairs entries; each thread takes whole pairs. `turn` is the cosine and sine of its first.
__device__ void rotate(float *head, const float *cosSin, float2 turn, int64_t pairs, int64_t pairing) {
  const int64_t apart = pairing == 0 ? pairs : 1, advance = pairing == 0 ? 1 : 2;
  for (int64_t i = threadIdx.x; i < pairs; i += kThreads) {
    float *first = head + i * advance, *second = first + apart;
    const float a = *first, b = *second;
    if (i >= kThreads)
      turn = {cosSin[i], cosSin[pairs + i]};
    *first = fmaf(a, turn.x, -__fmul_rn(b, turn.y));
    *second = fmaf(b, turn.x, __fmul_rn(a, turn.y));
  }
}

// RMS norm of the block's vector in place; each thread reads and writes the entries it owns.
__device__ void normalise(float *vector, const float *weight, int64_t dim, float eps, float *scratch) {
  float squares = 0.0f;
  for (int64_t d = threadIdx.x; d < dim; d += kThreads)
    squares = fmaf(vector[d], vector[d], squares);
  const float factor = 1.0f / sqrtf(blockSum(squares, scratch) / static_cast<float>(dim) + eps);
  for (int64_t d = threadIdx.x; d < dim; d += kThreads)
    vector[d] = vector[d] * factor * weight[d];
}

// Grid: (heads + 2 kv heads, tokens).
__global__ __launch_bounds__(kThreads) void rope_cache_kernel(RopeCache rope, const int32_t *start) {
  extern __shared__ float vector[];
  __shared__ float scratch[kThreads / 32];
  if (threadIdx.x == 0)
    ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  const int64_t token = blockIdx.y, head = blockIdx.x, position = *start + token, dim = rope.headDim;
  const int64_t blocks = divideUp(rope.context, 16), valueRow = divideUp(dim, 16) * 16;
  if (head >= rope.heads + rope.kvHeads) {
    const int64_t kv = head - rope.heads - rope.kvHeads;
    float *to = rope.vCache + (kv * blocks * 16 + position) * valueRow;
    const float *from = rope.v + token * rope.vStride + kv * dim;
    for (int64_t d = threadIdx.x; d < valueRow; d += kThreads)
      to[d] = d < dim ? from[d] : 0.0f;
    return;
  }
  const bool isKey = head >= rope.heads;
  const int64_t kv = head - rope.heads;
  float *query = rope.q + token * rope.qStride + head * dim;
  const float *from = isKey ? rope.k + token * rope.kStride + kv * dim : query;
  const float *cosSin = rope.cosSin + token * 2 * rope.pairs;
  float2 turn = {1.0f, 0.0f}; // read early: one wait for memory, not two
  if (rope.cosSin && threadIdx.x < rope.pairs)
    turn = {cosSin[threadIdx.x], cosSin[rope.pairs + threadIdx.x]};
  for (int64_t d = threadIdx.x; d < dim; d += kThreads)
    vector[d] = from[d];
  const float *weight = isKey ? rope.kNorm : rope.qNorm;
  if (weight && !rope.normAfter)
    normalise(vector, weight, dim, rope.eps, scratch);
  __syncthreads();
  if (rope.cosSin)
    rotate(vector, cosSin, turn, rope.pairs, rope.pairing);
  __syncthreads();
  if (weight && rope.normAfter) // an entry is stored below by the thread that normalises it
    normalise(vector, weight, dim, rope.eps, scratch);
  float *to = rope.kCache + (kv * blocks + position / 16) * dim * 16 + position % 16;
  for (int64_t d = threadIdx.x; d < dim; d += kThreads) {
    if (isKey)
      to[d * 16] = vector[d];
    else
      query[d] = vector[d];
  }
}

} // namespace

Status launchRopeCache(const Step &step, const RopeCache &rope, cudaStream_t stream) {
  if (step.tokens < 1 || step.tokens > 65535 || !step.position || rope.headDim < 1 || rope.headDim > 4096 ||
      (rope.cosSin && 2 * rope.pairs > rope.headDim))
    return kInvalidValue;
  const dim3 grid(static_cast<unsigned>(rope.heads + 2 * rope.kvHeads), static_cast<unsigned>(step.tokens));
  return launch(rope_cache_kernel, grid, dim3(kThreads), static_cast<size_t>(rope.headDim) * 4, stream, rope,
                step.position);
}

} // namespace mcc::cuda
