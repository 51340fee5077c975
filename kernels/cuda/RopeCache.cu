// rope_cache: one block a head and token normalises, rotates and stores its vector, bound by latency; many tokens go to
// rope_cache_prefill.cu.
#include "kernels/cuda/Attention.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/rope_vector.cuh"

namespace mcc::cuda {

namespace {

constexpr int kThreads = kVectorThreads;
// The block barrier of its threads.
constexpr uint32_t kBarrier = 0;
// Above so many tokens a block takes several.
constexpr int64_t kFewTokens = 16;

// One vector; `store` false: all but the stores. What a predecessor writes is read past the first-level cache, which may
// hold lines from before the wait.
__device__ __forceinline__ void ropeVector(const RopeCache &rope, int64_t position, float *vector, float *scratch,
                                           bool store) {
  const int64_t token = blockIdx.y, head = blockIdx.x, dim = rope.headDim;
  const int64_t blocks = divideUp(rope.context, 16), valueRow = divideUp(dim, 16) * 16;
  if (head >= rope.heads + rope.kvHeads) {
    const int64_t kv = head - rope.heads - rope.kvHeads;
    float *to = rope.vCache + (kv * blocks * 16 + position) * valueRow;
    const float *from = rope.v + token * rope.vStride + kv * dim;
    for (int64_t d = threadIdx.x; d < valueRow; d += kThreads) {
      const float value = d < dim ? __ldcg(from + d) : 0.0f;
      if (store)
        to[d] = value;
    }
    return;
  }
  const int thread = threadIdx.x;
  const bool isKey = head >= rope.heads;
  const int64_t kv = head - rope.heads;
  float *query = rope.q + token * rope.qStride + head * dim;
  const float *from = isKey ? rope.k + token * rope.kStride + kv * dim : query;
  const float *cosSin = rope.cosSin + token * 2 * rope.pairs;
  float2 turn = {1.0f, 0.0f}; // read early: one wait for memory, not two
  if (rope.cosSin && threadIdx.x < rope.pairs)
    turn = {__ldcg(cosSin + threadIdx.x), __ldcg(cosSin + rope.pairs + threadIdx.x)};
  for (int64_t d = threadIdx.x; d < dim; d += kThreads)
    vector[d] = __ldcg(from + d);
  const float *weight = isKey ? rope.kNorm : rope.qNorm;
  if (weight && !rope.normAfter)
    normaliseVector(vector, weight, dim, rope.eps, scratch, thread, kBarrier);
  __syncthreads();
  if (rope.cosSin)
    rotateVector(vector, cosSin, turn, rope.pairs, rope.pairing, thread);
  __syncthreads();
  if (weight && rope.normAfter) // an entry is stored below by the thread that normalises it
    normaliseVector(vector, weight, dim, rope.eps, scratch, thread, kBarrier);
  float *to = rope.kCache + (kv * blocks + position / 16) * dim * 16 + position % 16;
  for (int64_t d = threadIdx.x; d < dim && store; d += kThreads) {
    if (isKey)
      to[d * 16] = vector[d];
    else
      query[d] = vector[d];
  }
}

// Grid: (heads + 2 kv heads, tokens). The first pass, before the wait for the predecessor, brings the instructions: in
// a kernel this short they are what takes time.
__global__ __launch_bounds__(kThreads) void rope_cache_kernel(RopeCache rope, const int32_t *start) {
  extern __shared__ float vector[];
  __shared__ float scratch[kThreads / 32];
  if (threadIdx.x == 0)
    ptx::griddepcontrol_launch_dependents();
#pragma unroll 1
  for (int pass = 0; pass < 2; ++pass) {
    if (pass == 1)
      ptx::griddepcontrol_wait();
    ropeVector(rope, *reinterpret_cast<const volatile int32_t *>(start) + blockIdx.y, vector, scratch, pass == 1);
    __syncthreads();
  }
}

} // namespace

Status launchRopeCache(const Step &step, const RopeCache &rope, cudaStream_t stream) {
  if (step.tokens < 1 || step.tokens > 65535 || !step.position || rope.headDim < 1 || rope.headDim > 4096 ||
      (rope.cosSin && 2 * rope.pairs > rope.headDim))
    return kInvalidValue;
  if (step.tokens > kFewTokens && rope.headDim <= 512)
    return launchRopeCacheMany(step, rope, stream);
  const dim3 grid(static_cast<unsigned>(rope.heads + 2 * rope.kvHeads), static_cast<unsigned>(step.tokens));
  return launch(rope_cache_kernel, grid, dim3(kThreads), static_cast<size_t>(rope.headDim) * 4, stream, rope,
                step.position);
}

} // namespace mcc::cuda
