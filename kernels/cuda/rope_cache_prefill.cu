// rope_cache of many tokens: a block takes the 16 positions of one block of the key cache and one head, so that keys
// are stored in whole lines. Four groups of 64 threads have four vectors each, all loads under way at once. Bound by
// latency and the second-level cache; the numbers are RopeCache.cu's.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/rope_vector.cuh"

namespace mcc::cuda {

namespace {

constexpr int kGroups = 4, kPositions = 16, kVectors = kPositions / kGroups, kThreads = kGroups * kVectorThreads;

// Values to the cache, zeros into the padding. The block's positions [first, last) are tokens from `token` on.
__device__ __forceinline__ void storeValues(const RopeCache &rope, int64_t kv, int64_t first, int64_t last,
                                            int64_t token) {
  const int row = static_cast<int>(divideUp(rope.headDim, 16) * 16), dim = static_cast<int>(rope.headDim);
  float *to = rope.vCache + (kv * divideUp(rope.context, 16) * 16 + first) * row;
  const float *from = rope.v + token * rope.vStride + kv * dim;
#pragma unroll 4
  for (int i = threadIdx.x; i < static_cast<int>(last - first) * row; i += kThreads)
    to[i] = i % row < dim ? from[i / row * rope.vStride + i % row] : 0.0f;
}

// Grid: (heads + 2 kv heads, blocks of 16 positions that the step can touch).
__global__ __launch_bounds__(kThreads) void rope_cache_many_kernel(RopeCache rope, const int32_t *start, int tokens) {
  extern __shared__ float vectors[]; // [position][dim + 1]
  __shared__ float scratch[kGroups][kVectorThreads / 32];
  if (threadIdx.x == 0)
    ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  const int64_t head = blockIdx.x, begin = *start, block = begin / kPositions + blockIdx.y, dim = rope.headDim;
  const int64_t first = max(begin, block * kPositions), last = min(begin + tokens, (block + 1) * kPositions);
  if (first >= last)
    return;
  if (head >= rope.heads + rope.kvHeads)
    return storeValues(rope, head - rope.heads - rope.kvHeads, first, last, first - begin);
  const bool isKey = head >= rope.heads;
  const int group = threadIdx.x / kVectorThreads, thread = threadIdx.x % kVectorThreads;
  const uint32_t barrier = 1 + group;
  const int64_t kv = head - rope.heads, stride = isKey ? rope.kStride : rope.qStride;
  const float *rows = isKey ? rope.k + kv * dim : rope.q + head * dim, *weight = isKey ? rope.kNorm : rope.qNorm;
  // The group's vectors are tokens first + group, and so on in fours.
  const int64_t mine = first - begin + group;
  const int count = static_cast<int>((last - first - group + kGroups - 1) / kGroups);
  float2 turns[kVectors];
  const auto vectorAt = [&](int k) { return vectors + (group + k * kGroups) * (dim + 1); };
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    const float *cosSin = rope.cosSin + (mine + k * kGroups) * 2 * rope.pairs;
    turns[k] = {1.0f, 0.0f};
    if (k < count && rope.cosSin && thread < rope.pairs)
      turns[k] = {cosSin[thread], cosSin[rope.pairs + thread]};
  }
  for (int64_t d = thread; d < dim; d += kVectorThreads)
#pragma unroll
    for (int k = 0; k < kVectors; ++k)
      if (k < count)
        vectorAt(k)[d] = rows[(mine + k * kGroups) * stride + d];
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    if (k >= count)
      continue;
    float *vector = vectorAt(k);
    if (weight && !rope.normAfter)
      normaliseVector(vector, weight, dim, rope.eps, scratch[group], thread, barrier);
    ptx::bar_sync(barrier, kVectorThreads);
    if (rope.cosSin)
      rotateVector(vector, rope.cosSin + (mine + k * kGroups) * 2 * rope.pairs, turns[k], rope.pairs, rope.pairing,
                   thread);
    ptx::bar_sync(barrier, kVectorThreads);
    if (weight && rope.normAfter)
      normaliseVector(vector, weight, dim, rope.eps, scratch[group], thread, barrier);
    if (!isKey)
      for (int64_t d = thread; d < dim; d += kVectorThreads)
        rope.q[head * dim + (mine + k * kGroups) * stride + d] = vector[d];
  }
  if (!isKey)
    return;
  __syncthreads();
  float *to = rope.kCache + (kv * divideUp(rope.context, kPositions) + block) * dim * kPositions;
  const int skipped = static_cast<int>(first % kPositions), present = static_cast<int>(last - first);
  for (int i = threadIdx.x; i < dim * kPositions; i += kThreads)
    if (const int at = i % kPositions - skipped; at >= 0 && at < present)
      to[i] = vectors[at * (dim + 1) + i / kPositions];
}

} // namespace

Status launchRopeCacheMany(const Step &step, const RopeCache &rope, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(rope.heads + 2 * rope.kvHeads),
                  static_cast<unsigned>(divideUp(step.tokens, kPositions) + 1));
  return launch(rope_cache_many_kernel, grid, dim3(kThreads),
                static_cast<size_t>(kPositions * (rope.headDim + 1)) * sizeof(float), stream, rope, step.position,
                static_cast<int>(step.tokens));
}

} // namespace mcc::cuda
