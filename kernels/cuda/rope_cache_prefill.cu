// rope_cache of many tokens: a block takes the 16 positions of one block of the key cache and one head, so that keys
// are stored in whole lines. The numbers are RopeCache.cu's.
//
// Most models rotate the first half of a vector with the second, without a norm: there a thread takes four pairs, reads
// and writes them by 16 bytes, and only keys, which are transposed, go through shared memory. Otherwise four groups of
// 64 threads have four vectors each, all loads under way at once. Bound by latency and the second-level cache.
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

// The block's keys, [position][dim + 1] in shared memory, into the cache. Its positions [first, last) are tokens.
__device__ __forceinline__ void storeKeys(const RopeCache &rope, const float *vectors, int64_t kv, int64_t block,
                                          int64_t first, int64_t last) {
  const int dim = static_cast<int>(rope.headDim);
  float *to = rope.kCache + (kv * divideUp(rope.context, kPositions) + block) * dim * kPositions;
  const int skipped = static_cast<int>(first % kPositions), present = static_cast<int>(last - first);
  for (int i = threadIdx.x; i < dim * kPositions; i += kThreads)
    if (const int at = i % kPositions - skipped; at >= 0 && at < present)
      to[i] = vectors[at * (dim + 1) + i / kPositions];
}

__device__ __forceinline__ void put(float *to, float4 v) { to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w; }

// Whether rope_cache_quads_kernel serves: the first half of the rotated entries turns with the second, no norms, and
// everything lies in groups of four.
bool inQuads(const RopeCache &rope) {
  const auto whole = [](const void *pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; };
  return rope.cosSin && !rope.qNorm && !rope.kNorm && rope.pairing == 0 && rope.pairs % 4 == 0 &&
         rope.headDim % 16 == 0 && rope.qStride % 4 == 0 && rope.kStride % 4 == 0 && rope.vStride % 4 == 0 &&
         whole(rope.q) && whole(rope.k) && whole(rope.v) && whole(rope.cosSin) && whole(rope.vCache);
}

// Grid: as below. Threads take quads of pairs, and of keys also the entries that are not rotated.
__global__ __launch_bounds__(kThreads) void rope_cache_quads_kernel(RopeCache rope, const int32_t *start, int tokens) {
  extern __shared__ float vectors[]; // keys, [position][dim + 1]
  if (threadIdx.x == 0)
    ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  const int64_t head = blockIdx.x, begin = *start, block = begin / kPositions + blockIdx.y;
  const int64_t first = max(begin, block * kPositions), last = min(begin + tokens, (block + 1) * kPositions);
  if (first >= last)
    return;
  const int dim = static_cast<int>(rope.headDim), pairs = static_cast<int>(rope.pairs), quads = pairs / 4,
            count = static_cast<int>(last - first);
  const int64_t token = first - begin;
  if (head >= rope.heads + rope.kvHeads) {
    const int64_t kv = head - rope.heads - rope.kvHeads;
    float *to = rope.vCache + (kv * divideUp(rope.context, 16) * 16 + first) * dim;
    const float *from = rope.v + token * rope.vStride + kv * dim;
    for (int i = threadIdx.x; i < count * dim / 4; i += kThreads)
      reinterpret_cast<float4 *>(to)[i] =
          *reinterpret_cast<const float4 *>(from + i / (dim / 4) * rope.vStride + i % (dim / 4) * 4);
    return;
  }
  const bool isKey = head >= rope.heads;
  const int64_t kv = head - rope.heads, stride = isKey ? rope.kStride : rope.qStride;
  const float *rows = (isKey ? rope.k + kv * dim : rope.q + head * dim) + token * stride;
  for (int i = threadIdx.x; i < count * quads; i += kThreads) {
    const int at = i / quads, d = i % quads * 4;
    const float *turn = rope.cosSin + (token + at) * 2 * pairs + d, *row = rows + at * stride + d;
    const float4 a = *reinterpret_cast<const float4 *>(row), b = *reinterpret_cast<const float4 *>(row + pairs),
                 c = *reinterpret_cast<const float4 *>(turn), s = *reinterpret_cast<const float4 *>(turn + pairs);
    const float4 low = {fmaf(a.x, c.x, -__fmul_rn(b.x, s.x)), fmaf(a.y, c.y, -__fmul_rn(b.y, s.y)),
                        fmaf(a.z, c.z, -__fmul_rn(b.z, s.z)), fmaf(a.w, c.w, -__fmul_rn(b.w, s.w))},
                 high = {fmaf(b.x, c.x, __fmul_rn(a.x, s.x)), fmaf(b.y, c.y, __fmul_rn(a.y, s.y)),
                         fmaf(b.z, c.z, __fmul_rn(a.z, s.z)), fmaf(b.w, c.w, __fmul_rn(a.w, s.w))};
    if (isKey) {
      put(vectors + at * (dim + 1) + d, low), put(vectors + at * (dim + 1) + pairs + d, high);
      continue;
    }
    float *query = rope.q + head * dim + (token + at) * stride + d;
    *reinterpret_cast<float4 *>(query) = low, *reinterpret_cast<float4 *>(query + pairs) = high;
  }
  if (!isKey)
    return;
  const int rest = dim - 2 * pairs;
  for (int i = threadIdx.x; i < count * rest; i += kThreads) {
    const int at = i / rest, d = 2 * pairs + i % rest;
    vectors[at * (dim + 1) + d] = rows[at * stride + d];
  }
  __syncthreads();
  storeKeys(rope, vectors, kv, block, first, last);
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
  storeKeys(rope, vectors, kv, block, first, last);
}

} // namespace

Status launchRopeCacheMany(const Step &step, const RopeCache &rope, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(rope.heads + 2 * rope.kvHeads),
                  static_cast<unsigned>(divideUp(step.tokens, kPositions) + 1));
  return launch(inQuads(rope) ? rope_cache_quads_kernel : rope_cache_many_kernel, grid, dim3(kThreads),
                static_cast<size_t>(kPositions * (rope.headDim + 1)) * sizeof(float), stream, rope, step.position,
                static_cast<int>(step.tokens));
}

} // namespace mcc::cuda
