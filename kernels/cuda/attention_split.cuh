// One block's part of attention over a long cache (Attention.cu says how the work is cut): a split's scores, softmax
// and values.
#pragma once

#include "kernels/cuda/Attention.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/math.cuh"

#include <cuda_bf16.h>

namespace mcc::cuda {

constexpr int kAttentionThreads = 256, kAttentionChunk = 32, kAttentionMaxDim = 512, kMostSplits = 64;
/// Warps that share 16 keys, each with its part of the dimensions.
constexpr int kDimWarps = kAttentionThreads / 32 / (kAttentionChunk / 16);

struct AttentionLaunch {
  Attention attention;
  const int32_t *position;
  float *partials;   // [token of the launch][kv head][head tile][split][G][4 + row]
  int32_t *counters; // [token of the launch][kv head][head tile], zero between launches
  int64_t firstToken;
  int splits, row, group, tiles;
};

/// A block's running softmax.
template <int G>
struct alignas(16) AttentionShared {
  float q[kAttentionMaxDim][G];
  float values[kAttentionThreads * G * 4];     // [share of the keys][head][row]; when merging, the shares' sums
  float scores[kDimWarps][G][kAttentionChunk]; // parts of the chunk's scores
  float p[kMostSplits][G];                     // of the chunk's keys; when merging, the splits' factors
  float shrink[G], largest[G], total[G];
  float slope[G];
  int last;
};
static_assert(kMostSplits >= kAttentionChunk);

/// Floats of a value's row, and dimensions of a head: constants for the common ones, so that no division is left.
template <int kRow>
__device__ __forceinline__ int rowOf(const AttentionLaunch &launch) {
  return kRow ? kRow : launch.row;
}
template <int kRow>
__device__ __forceinline__ int dimOf(const Attention &attention) {
  return kRow ? kRow : static_cast<int>(attention.headDim);
}

/// Which keys and heads a block works on.
struct AttentionPlace {
  int64_t token, kv, tile, first, last; // positions [first, last]
  int firstChunk, chunks;
  const float *keys, *values;
};

/// The keys that the query at `position` sees.
__device__ __forceinline__ void see(const Attention &a, int64_t position, AttentionPlace &place) {
  place.last = position;
  place.first = a.window > 0 && position >= a.window ? position - a.window + 1 : 0;
  if (a.chunk > 0)
    place.first = max(place.first, position / a.chunk * a.chunk);
  place.firstChunk = static_cast<int>(place.first / kAttentionChunk);
  place.chunks = static_cast<int>(place.last / kAttentionChunk) - place.firstChunk + 1;
}

/// Thread = 4 dimensions x a share of the keys.
struct ValuePlace {
  int quads, shares, quad, share;
  __device__ explicit ValuePlace(int row)
      : quads(row / 4), shares(kAttentionThreads / quads), quad(threadIdx.x % quads), share(threadIdx.x / quads) {}
};

/// What a slope adds to the score of the key at `position`.
__device__ __forceinline__ float slopeTerm(const Attention &attention, float slope, int64_t position) {
  const float at = static_cast<float>(position);
  if (!attention.alibiRounded)
    return __fmul_rn(slope, at);
  const auto rounded = [](float x) { return __bfloat162float(__float2bfloat16_rn(x)); };
  return rounded(__fmul_rn(rounded(slope), rounded(at)));
}

/// Softcap and slope: rare, and kept out of the code that every key runs.
static __device__ __noinline__ float bendScore(const Attention &a, float score, float slope, int64_t position) {
  if (a.softcap > 0.0f)
    score = a.softcap * tanhf(score / a.softcap);
  return a.slopes ? __fadd_rn(score, slopeTerm(a, slope, position)) : score;
}

/// Four of a row's heads at once where there are so many.
template <int G>
__device__ __forceinline__ void loadHeads(const float (&from)[G], float (&to)[G]) {
  if constexpr (G % 4 == 0) {
#pragma unroll
    for (int i = 0; i < G; i += 4)
      *reinterpret_cast<float4 *>(to + i) = *reinterpret_cast<const float4 *>(from + i);
  } else {
#pragma unroll
    for (int i = 0; i < G; ++i)
      to[i] = from[i];
  }
}

/// A lane's part of 128 dimensions of four keys: every 32nd dimension.
template <int kRow>
struct KeyBatch {
  static constexpr int kSteps = kRow == 64 ? 2 : 4, kDims = kSteps * 32;
  float4 at[kSteps];
  // The lane's first dimension.
  __device__ static int dimension() { return threadIdx.x / 32 % kDimWarps * 8 + threadIdx.x % 32 / 4; }
  __device__ static int keyBlock() { return threadIdx.x / 32 / kDimWarps * 16; }
  // Dimensions from `d` on of the warp's 16 keys of the chunk that begins at `start`.
  __device__ __forceinline__ void load(const Attention &a, const AttentionPlace &place, int64_t start, int d) {
    const int64_t block = start + keyBlock();
    const int dim = dimOf<kRow>(a);
    const float *keys = place.keys + block * dim + threadIdx.x % 4 * 4;
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      const int mine = d + i * 32 + dimension();
      at[i] = block <= place.last && mine < dim ? __ldcg(reinterpret_cast<const float4 *>(keys + mine * 16))
                                                : float4{0.0f, 0.0f, 0.0f, 0.0f};
    }
  }
};

/// A thread's values of a chunk; zeros for keys that are not seen.
template <int kRow>
struct ValueBatch {
  // Rows of 512 leave two shares of the keys, the common ones more.
  static constexpr int kKeys = kRow == 64 ? 2 : kRow == 128 ? 4 : 16;
  float4 at[kKeys];
  __device__ __forceinline__ void load(const AttentionLaunch &launch, const AttentionPlace &place, int64_t start) {
    const ValuePlace mine(rowOf<kRow>(launch));
#pragma unroll
    for (int k = 0; k < kKeys; ++k) {
      const int64_t position = start + mine.share + k * mine.shares;
      const bool seen = mine.share + k * mine.shares < kAttentionChunk && mine.share < mine.shares &&
                        position >= place.first && position <= place.last;
      at[k] =
          seen ? __ldcg(reinterpret_cast<const float4 *>(place.values + position * rowOf<kRow>(launch) + mine.quad * 4))
               : float4{0.0f, 0.0f, 0.0f, 0.0f};
    }
  }
};

/// Adds the eight parts, each lane keeping the sums of fewer (head, key) pairs at every step: from `base` on.
template <int apart, int count>
__device__ __forceinline__ void foldParts(float *sums, int &base) {
  if constexpr (apart >= 4) {
    if constexpr (count > 1) {
      const bool upper = threadIdx.x & apart;
#pragma unroll
      for (int k = 0; k < count / 2; ++k) {
        const float mine = upper ? sums[k + count / 2] : sums[k], other = upper ? sums[k] : sums[k + count / 2];
        sums[k] = __fadd_rn(mine, __shfl_xor_sync(0xffffffffu, other, apart));
      }
      base += upper ? count / 2 : 0;
    } else {
      sums[0] = __fadd_rn(sums[0], __shfl_xor_sync(0xffffffffu, sums[0], apart));
    }
    foldParts<apart / 2, (count > 1 ? count / 2 : 1)>(sums, base);
  }
}

/// The parts of the chunk's scores; `batch` holds its first keys.
template <int G, int kRow>
__device__ __forceinline__ void scoreChunk(const AttentionLaunch &launch, const AttentionPlace &place,
                                           AttentionShared<G> &shared, int64_t start, KeyBatch<kRow> &batch) {
  using Batch = KeyBatch<kRow>;
  const Attention &a = launch.attention;
  float sums[G * 4] = {};
  const int dim = dimOf<kRow>(a);
#pragma unroll 1
  for (int d = 0; d < dim; d += Batch::kDims) {
    const Batch now = batch;
    if (d + Batch::kDims < dim)
      batch.load(a, place, start, d + Batch::kDims);
#pragma unroll
    for (int j = 0; j < Batch::kSteps; ++j) {
      float q[G];
      loadHeads<G>(shared.q[d + j * 32 + Batch::dimension()], q);
      const float4 key = now.at[j];
#pragma unroll
      for (int i = 0; i < G; ++i) {
        float *sum = sums + i * 4;
        sum[0] = fmaf(q[i], key.x, sum[0]), sum[1] = fmaf(q[i], key.y, sum[1]);
        sum[2] = fmaf(q[i], key.z, sum[2]), sum[3] = fmaf(q[i], key.w, sum[3]);
      }
    }
  }
  int base = 0;
  foldParts<16, G * 4>(sums, base);
#pragma unroll
  for (int k = 0; k < (G * 4 + 7) / 8; ++k)
    shared.scores[threadIdx.x / 32 % kDimWarps][(base + k) / 4]
                 [Batch::keyBlock() + threadIdx.x % 4 * 4 + (base + k) % 4] = sums[k];
}

/// Scores of the chunk to e^(score - largest so far); each warp takes a head, each lane a key.
template <int G>
__device__ __forceinline__ void softmaxChunk(const AttentionLaunch &launch, const AttentionPlace &place,
                                             AttentionShared<G> &shared, int64_t start) {
  const Attention &a = launch.attention;
  const int lane = threadIdx.x % 32, i = threadIdx.x / 32;
  if (i < G) {
    float score = shared.scores[0][i][lane];
#pragma unroll
    for (int part = 1; part < kDimWarps; ++part)
      score = __fadd_rn(score, shared.scores[part][i][lane]);
    score = __fmul_rn(score, a.scale);
    const int64_t position = start + lane;
    if (a.softcap > 0.0f || a.slopes)
      score = bendScore(a, score, shared.slope[i], position);
    score = position >= place.first && position <= place.last ? score : -INFINITY;
    const float before = shared.largest[i], largest = fmaxf(before, warp_max(score)), p = expf(score - largest),
                sum = warp_sum(p);
    shared.p[lane][i] = p;
    __syncwarp(); // all lanes have read what lane 0 writes
    if (lane == 0) {
      const float shrink = expf(before - largest);
      shared.shrink[i] = shrink;
      shared.largest[i] = largest;
      shared.total[i] = fmaf(shared.total[i], shrink, sum);
    }
  }
  __syncthreads();
}

template <int G, int kRow>
__device__ __forceinline__ void addValues(const AttentionLaunch &launch, AttentionShared<G> &shared,
                                          const ValueBatch<kRow> &values, float (&out)[G][4]) {
  const ValuePlace at(rowOf<kRow>(launch));
#pragma unroll
  for (int i = 0; i < G; ++i)
#pragma unroll
    for (int k = 0; k < 4; ++k)
      out[i][k] = __fmul_rn(out[i][k], shared.shrink[i]);
#pragma unroll
  for (int k = 0; k < ValueBatch<kRow>::kKeys; ++k) {
    const int key = at.share + k * at.shares;
    if (kRow == 0 && key >= kAttentionChunk)
      break;
    float p[G];
    loadHeads<G>(shared.p[key], p);
    const float4 value = values.at[k];
#pragma unroll
    for (int i = 0; i < G; ++i) {
      out[i][0] = fmaf(p[i], value.x, out[i][0]), out[i][1] = fmaf(p[i], value.y, out[i][1]);
      out[i][2] = fmaf(p[i], value.z, out[i][2]), out[i][3] = fmaf(p[i], value.w, out[i][3]);
    }
  }
}

/// The block's queries and slopes into shared memory.
template <int G, int kRow>
__device__ __forceinline__ void loadQueries(const AttentionLaunch &launch, const AttentionPlace &place,
                                            AttentionShared<G> &shared) {
  const Attention &a = launch.attention;
  const int dim = dimOf<kRow>(a),
            padded = static_cast<int>(divideUp(dim, KeyBatch<kRow>::kDims)) * KeyBatch<kRow>::kDims;
  const int64_t firstHead = place.tile * G;
  const float *q = a.q + place.token * a.qStride + (place.kv * launch.group + firstHead) * a.headDim;
  for (int i = threadIdx.x; i < G * padded; i += kAttentionThreads) {
    const int head = i / padded, d = i % padded;
    shared.q[d][head] = firstHead + head < launch.group && d < dim ? __ldcg(q + head * dim + d) : 0.0f;
  }
  if (threadIdx.x < G) {
    const int64_t inGroup = firstHead + threadIdx.x;
    shared.slope[threadIdx.x] = a.slopes && inGroup < launch.group ? a.slopes[place.kv * launch.group + inGroup] : 0.0f;
    shared.largest[threadIdx.x] = -INFINITY, shared.total[threadIdx.x] = 0.0f;
  }
}

/// One split's first `chunks` chunks: leaves largest and total in `shared`, each share's sum of p v in shared.values.
template <int G, int kRow>
__device__ __forceinline__ void attendSplit(const AttentionLaunch &launch, const AttentionPlace &place,
                                            AttentionShared<G> &shared, int split, int chunks) {
  float out[G][4] = {};
  KeyBatch<kRow> keys;
  ValueBatch<kRow> values;
  int64_t start = static_cast<int64_t>(place.firstChunk + split) * kAttentionChunk;
  keys.load(launch.attention, place, start, 0);
  values.load(launch, place, start);
  loadQueries<G, kRow>(launch, place, shared);
  __syncthreads();
#pragma unroll 1
  for (int chunk = split; chunk < chunks; chunk += launch.splits) {
    scoreChunk<G, kRow>(launch, place, shared, start, keys);
    const int64_t now = start;
    start += static_cast<int64_t>(launch.splits) * kAttentionChunk;
    const bool more = chunk + launch.splits < chunks;
    if (more)
      keys.load(launch.attention, place, start, 0);
    __syncthreads();
    softmaxChunk<G>(launch, place, shared, now);
    addValues<G, kRow>(launch, shared, values, out);
    if (more)
      values.load(launch, place, start);
  }
  const ValuePlace at(rowOf<kRow>(launch));
  if (at.share < at.shares)
#pragma unroll
    for (int i = 0; i < G; ++i)
      *reinterpret_cast<float4 *>(shared.values + (at.share * G + i) * rowOf<kRow>(launch) +
                                  at.quad * 4) = {out[i][0], out[i][1], out[i][2], out[i][3]};
  __syncthreads();
}

} // namespace mcc::cuda
