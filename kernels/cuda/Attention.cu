// Attention over a long cache, its keys split over blocks.
//
// Keys are taken in chunks of 32 that start at multiples of 32. Of the chunks a token sees, the c-th belongs to split
// c mod S, S a constant of the shape; a split takes its chunks in order with the usual running maximum and sum, and
// the last block of a (token, kv head) to finish merges the splits in order. So a token's result depends on its
// position alone: not on the tokens beside it, or who finishes first. More than 16 tokens take several launches.
//
// A block of 256 threads serves up to 8 query heads of one kv head; what counts is its latency, so every step is shared
// by all its threads. Scores: a warp takes 16 keys and a quarter of the dimensions, lane = 4 keys x an eighth of those,
// keys through registers. Values: thread = 4 dimensions x a share of the keys, through registers too, all under way
// from the start. A block runs its first chunk twice: before the wait for the predecessor on what is there, so that its
// instructions, keys and values are at hand, and then in earnest. Expected: latency of a few dependent reads up to some
// thousand keys, then 70% to 80% of the read bandwidth.
#include "kernels/cuda/Attention.h"
#include "kernels/cuda/attention_prefill.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/math.cuh"

#include <cuda_bf16.h>

namespace mcc::cuda {

namespace {

constexpr int kThreads = 256, kChunk = 32, kMaxDim = 512, kMaxSplits = 64;
// Warps that share 16 keys, each with its part of the dimensions.
constexpr int kDimWarps = kThreads / 32 / (kChunk / 16);
// Tokens of a launch.
constexpr int64_t kLaunchTokens = 16;
// Chunks that a block fetches into the second-level cache ahead.
constexpr int kAhead = 8;

struct AttentionLaunch {
  Attention attention;
  const int32_t *position;
  float *partials;   // [token of the launch][kv head][head tile][split][G][4 + row]
  int32_t *counters; // [token of the launch][kv head][head tile], zero between launches
  int64_t firstToken;
  int splits, row, group, tiles;
};

// A block's running softmax.
template <int G>
struct alignas(16) Shared {
  float q[kMaxDim][G];
  float values[kThreads * G * 4];     // [share of the keys][head][row]; when merging, the shares' sums
  float scores[kDimWarps][G][kChunk]; // parts of the chunk's scores
  float p[kMaxSplits][G];             // of the chunk's keys; when merging, the splits' factors
  float shrink[G], largest[G], total[G];
  float slope[G];
  int last;
};
static_assert(kMaxSplits >= kChunk);

// Floats of a value's row, and dimensions of a head: constants for the common ones, so that no division is left.
template <int kRow>
__device__ __forceinline__ int rowOf(const AttentionLaunch &launch) {
  return kRow ? kRow : launch.row;
}
template <int kRow>
__device__ __forceinline__ int dimOf(const Attention &attention) {
  return kRow ? kRow : static_cast<int>(attention.headDim);
}

// Which keys and heads a block works on.
struct Place {
  int64_t token, kv, tile, first, last; // positions [first, last]
  int firstChunk, chunks;
  const float *keys, *values;
};

// The keys that the query at `position` sees.
__device__ __forceinline__ void see(const Attention &a, int64_t position, Place &place) {
  place.last = position;
  place.first = a.window > 0 && position >= a.window ? position - a.window + 1 : 0;
  if (a.chunk > 0)
    place.first = max(place.first, position / a.chunk * a.chunk);
  place.firstChunk = static_cast<int>(place.first / kChunk);
  place.chunks = static_cast<int>(place.last / kChunk) - place.firstChunk + 1;
}

// Thread = 4 dimensions x a share of the keys.
struct ValuePlace {
  int quads, shares, quad, share;
  __device__ explicit ValuePlace(int row)
      : quads(row / 4), shares(kThreads / quads), quad(threadIdx.x % quads), share(threadIdx.x / quads) {}
};

// What a slope adds to the score of the key at `position`.
__device__ __forceinline__ float slopeTerm(const Attention &attention, float slope, int64_t position) {
  const float at = static_cast<float>(position);
  if (!attention.alibiRounded)
    return __fmul_rn(slope, at);
  const auto rounded = [](float x) { return __bfloat162float(__float2bfloat16_rn(x)); };
  return rounded(__fmul_rn(rounded(slope), rounded(at)));
}

// Softcap and slope: rare, and kept out of the code that every key runs.
__device__ __noinline__ float bendScore(const Attention &a, float score, float slope, int64_t position) {
  if (a.softcap > 0.0f)
    score = a.softcap * tanhf(score / a.softcap);
  return a.slopes ? __fadd_rn(score, slopeTerm(a, slope, position)) : score;
}

// Four of a row's heads at once where there are so many.
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

// A lane's part of 128 dimensions of four keys: every 32nd dimension.
template <int kRow>
struct KeyBatch {
  static constexpr int kSteps = kRow == 64 ? 2 : 4, kDims = kSteps * 32;
  float4 at[kSteps];
  // The lane's first dimension.
  __device__ static int dimension() { return threadIdx.x / 32 % kDimWarps * 8 + threadIdx.x % 32 / 4; }
  __device__ static int keyBlock() { return threadIdx.x / 32 / kDimWarps * 16; }
  // Dimensions from `d` on of the warp's 16 keys of the chunk that begins at `start`.
  __device__ __forceinline__ void load(const Attention &a, const Place &place, int64_t start, int d) {
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

// A thread's values of a chunk; zeros for keys that are not seen.
template <int kRow>
struct ValueBatch {
  // Rows of 512 leave two shares of the keys, the common ones more.
  static constexpr int kKeys = kRow == 64 ? 2 : kRow == 128 ? 4 : 16;
  float4 at[kKeys];
  __device__ __forceinline__ void load(const AttentionLaunch &launch, const Place &place, int64_t start) {
    const ValuePlace mine(rowOf<kRow>(launch));
#pragma unroll
    for (int k = 0; k < kKeys; ++k) {
      const int64_t position = start + mine.share + k * mine.shares;
      const bool seen = mine.share + k * mine.shares < kChunk && mine.share < mine.shares && position >= place.first &&
                        position <= place.last;
      at[k] =
          seen ? __ldcg(reinterpret_cast<const float4 *>(place.values + position * rowOf<kRow>(launch) + mine.quad * 4))
               : float4{0.0f, 0.0f, 0.0f, 0.0f};
    }
  }
};

// Adds the eight parts, each lane keeping the sums of fewer (head, key) pairs at every step: from `base` on.
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

// The parts of the chunk's scores; `batch` holds its first keys.
template <int G, int kRow>
__device__ __forceinline__ void scoreChunk(const AttentionLaunch &launch, const Place &place, Shared<G> &shared,
                                           int64_t start, KeyBatch<kRow> &batch) {
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

// Scores of the chunk to e^(score - largest so far); each warp takes a head, each lane a key.
template <int G>
__device__ __forceinline__ void softmaxChunk(const AttentionLaunch &launch, const Place &place, Shared<G> &shared,
                                             int64_t start) {
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
__device__ __forceinline__ void addValues(const AttentionLaunch &launch, Shared<G> &shared,
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
    if (kRow == 0 && key >= kChunk)
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

// The block's queries and slopes into shared memory.
template <int G, int kRow>
__device__ __forceinline__ void loadQueries(const AttentionLaunch &launch, const Place &place, Shared<G> &shared) {
  const Attention &a = launch.attention;
  const int dim = dimOf<kRow>(a),
            padded = static_cast<int>(divideUp(dim, KeyBatch<kRow>::kDims)) * KeyBatch<kRow>::kDims;
  const int64_t firstHead = place.tile * G;
  const float *q = a.q + place.token * a.qStride + (place.kv * launch.group + firstHead) * a.headDim;
  for (int i = threadIdx.x; i < G * padded; i += kThreads) {
    const int head = i / padded, d = i % padded;
    shared.q[d][head] = firstHead + head < launch.group && d < dim ? __ldcg(q + head * dim + d) : 0.0f;
  }
  if (threadIdx.x < G) {
    const int64_t inGroup = firstHead + threadIdx.x;
    shared.slope[threadIdx.x] = a.slopes && inGroup < launch.group ? a.slopes[place.kv * launch.group + inGroup] : 0.0f;
    shared.largest[threadIdx.x] = -INFINITY, shared.total[threadIdx.x] = 0.0f;
  }
}

// One split's first `chunks` chunks: leaves largest and total in `shared`, each share's sum of p v in shared.values.
template <int G, int kRow>
__device__ __forceinline__ void attendSplit(const AttentionLaunch &launch, const Place &place, Shared<G> &shared,
                                            int split, int chunks) {
  float out[G][4] = {};
  KeyBatch<kRow> keys;
  ValueBatch<kRow> values;
  int64_t start = static_cast<int64_t>(place.firstChunk + split) * kChunk;
  keys.load(launch.attention, place, start, 0);
  values.load(launch, place, start);
  loadQueries<G, kRow>(launch, place, shared);
  __syncthreads();
#pragma unroll 1
  for (int chunk = split; chunk < chunks; chunk += launch.splits) {
    scoreChunk<G, kRow>(launch, place, shared, start, keys);
    const int64_t now = start;
    start += static_cast<int64_t>(launch.splits) * kChunk;
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

// Puts this block's split into the workspace; returns true in the block that comes last, for which all are visible.
template <int G, int kRow>
__device__ __forceinline__ bool publish(const AttentionLaunch &launch, const Place &place, Shared<G> &shared,
                                        float *partials, int32_t *counter, int split) {
  const int quads = rowOf<kRow>(launch) / 4, shares = kThreads / quads, stride = rowOf<kRow>(launch) + 4;
  float *to = partials + static_cast<int64_t>(split) * G * stride;
  for (int i = threadIdx.x; i < G * quads; i += kThreads) {
    const int head = i / quads, quad = i % quads;
    const float *from = shared.values + head * rowOf<kRow>(launch) + quad * 4;
    float4 sum = *reinterpret_cast<const float4 *>(from);
#pragma unroll 8
    for (int share = 1; share < shares; ++share) {
      const float4 v = *reinterpret_cast<const float4 *>(from + share * G * rowOf<kRow>(launch));
      sum.x = __fadd_rn(sum.x, v.x), sum.y = __fadd_rn(sum.y, v.y);
      sum.z = __fadd_rn(sum.z, v.z), sum.w = __fadd_rn(sum.w, v.w);
    }
    __stcg(reinterpret_cast<float4 *>(to + head * stride + 4 + quad * 4), sum);
  }
  if (threadIdx.x < G)
    __stcg(reinterpret_cast<float2 *>(to + threadIdx.x * stride),
           float2{shared.largest[threadIdx.x], shared.total[threadIdx.x]});
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    shared.last = atomicAdd(counter, 1) == min(place.chunks, launch.splits) - 1;
    if (shared.last)
      *counter = 0; // for the next launch
    __threadfence();
  }
  __syncthreads();
  return shared.last;
}

// The splits' factors e^(largest of the split - largest of all) into shared.p, the sum of all into shared.total; each
// warp takes whole heads. A head's sink, if there is one, is one more logit that has no value.
template <int G, int kRow>
__device__ __forceinline__ void weighSplits(const AttentionLaunch &launch, const Place &place, Shared<G> &shared,
                                            const float *partials, int splits) {
  const int lane = threadIdx.x % 32, stride = rowOf<kRow>(launch) + 4;
  const float *sinks = launch.attention.sinks;
  for (int i = threadIdx.x / 32; i < G; i += kThreads / 32) {
    const int64_t inGroup = place.tile * G + i;
    float2 states[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int split = lane + 32 * k;
      states[k] = split < splits ? __ldcg(reinterpret_cast<const float2 *>(partials + (split * G + i) * stride))
                                 : float2{-INFINITY, 0.0f};
    }
    const float sink = sinks && inGroup < launch.group ? sinks[place.kv * launch.group + inGroup] : -INFINITY;
    const float largest = fmaxf(sink, warp_max(fmaxf(states[0].x, states[1].x)));
    const float a = expf(states[0].x - largest), b = expf(states[1].x - largest);
    shared.p[lane][i] = a, shared.p[lane + 32][i] = b;
    const float total = warp_sum(fmaf(b, states[1].y, __fmul_rn(a, states[0].y)));
    if (lane == 0)
      shared.total[i] = __fadd_rn(total, expf(sink - largest));
  }
}

// A thread's part of the merge: the splits share, share + shares, ... of four dimensions of a head, added in order.
template <int G, int kRow>
__device__ __forceinline__ float4 sumSplits(const AttentionLaunch &launch, const Place &place, Shared<G> &shared,
                                            const float *partials, int item, int share, int shares, bool first) {
  constexpr int kTogether = 10; // reads under way
  const int quads = rowOf<kRow>(launch) / 4, stride = rowOf<kRow>(launch) + 4, head = item / quads, quad = item % quads,
            splits = min(place.chunks, launch.splits);
  const bool mine = item < G * quads && share < shares;
  float4 sum = {0.0f, 0.0f, 0.0f, 0.0f}, v[kTogether];
#pragma unroll 1
  for (int base = 0; base < splits; base += kTogether * shares) {
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      const int split = base + k * shares + share;
      v[k] = mine && split < splits
                 ? __ldcg(reinterpret_cast<const float4 *>(partials + (split * G + head) * stride + 4 + quad * 4))
                 : float4{0.0f, 0.0f, 0.0f, 0.0f};
    }
    if (first && base == 0) {
      weighSplits<G, kRow>(launch, place, shared, partials, splits);
      __syncthreads();
    }
    if (mine)
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        const int split = base + k * shares + share;
        const float factor = split < splits ? shared.p[split][head] : 0.0f;
        sum.x = fmaf(factor, v[k].x, sum.x), sum.y = fmaf(factor, v[k].y, sum.y);
        sum.z = fmaf(factor, v[k].z, sum.z), sum.w = fmaf(factor, v[k].w, sum.w);
      }
  }
  return sum;
}

// y = the merged splits.
template <int G, int kRow>
__device__ __forceinline__ void mergePartials(const AttentionLaunch &launch, const Place &place, Shared<G> &shared,
                                              const float *partials) {
  const Attention &a = launch.attention;
  const int quads = rowOf<kRow>(launch) / 4, items = G * quads, shares = max(kThreads / items, 1);
  for (int round = 0; round < items; round += kThreads) {
    const int item = round + threadIdx.x % min(items, kThreads), share = threadIdx.x / min(items, kThreads);
    float4 sum = sumSplits<G, kRow>(launch, place, shared, partials, item, share, shares, round == 0);
    if (shares > 1) {
      float4 *sums = reinterpret_cast<float4 *>(shared.values);
      sums[threadIdx.x] = sum;
      __syncthreads();
      for (int other = 1; other < shares && share == 0; ++other) {
        const float4 v = sums[other * items + item];
        sum.x = __fadd_rn(sum.x, v.x), sum.y = __fadd_rn(sum.y, v.y), sum.z = __fadd_rn(sum.z, v.z),
        sum.w = __fadd_rn(sum.w, v.w);
      }
    }
    const int head = item / quads, quad = item % quads;
    if (share > 0 || item >= items || place.tile * G + head >= launch.group)
      continue;
    const float total = shared.total[head], result[4] = {sum.x / total, sum.y / total, sum.z / total, sum.w / total};
    float *y = a.y + place.token * a.yStride + (place.kv * launch.group + place.tile * G + head) * a.headDim;
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (quad * 4 + k < a.headDim)
        y[quad * 4 + k] = result[k];
  }
}

// Fetches the chunk's bytes into the second-level cache.
template <int kRow>
__device__ __forceinline__ void prefetchChunk(const AttentionLaunch &launch, const Place &place, int chunk) {
  const int dim = dimOf<kRow>(launch.attention);
  const int64_t start = static_cast<int64_t>(chunk) * kChunk;
  const int positions = static_cast<int>(min(place.last / 16 * 16 + 16 - start, int64_t{kChunk}));
  const char *keys = reinterpret_cast<const char *>(place.keys + start * dim);
  const char *values = reinterpret_cast<const char *>(place.values + start * rowOf<kRow>(launch));
  for (int i = threadIdx.x * 128; i < positions * dim * 4; i += kThreads * 128)
    ptx::prefetch_l2(keys + i);
  for (int i = threadIdx.x * 128; i < positions * rowOf<kRow>(launch) * 4; i += kThreads * 128)
    ptx::prefetch_l2(values + i);
}

// Grid: (kv heads x head tiles, splits, tokens).
template <int G, int kRow>
__global__ __launch_bounds__(kThreads) void attention_kernel(const __grid_constant__ AttentionLaunch launch) {
  extern __shared__ __align__(16) uint8_t bytes[];
  Shared<G> &shared = *reinterpret_cast<Shared<G> *>(bytes);
  const Attention &a = launch.attention;
  if (threadIdx.x == 0)
    ptx::griddepcontrol_launch_dependents();
  const int split = blockIdx.y;
  Place place;
  place.token = launch.firstToken + blockIdx.z;
  place.kv = blockIdx.x, place.tile = 0;
  if (launch.tiles > 1)
    place.kv = blockIdx.x / launch.tiles, place.tile = blockIdx.x % launch.tiles;
  const int64_t positions = divideUp(a.context, 16) * 16;
  place.keys = a.kCache + place.kv * positions * a.headDim;
  place.values = a.vCache + place.kv * positions * rowOf<kRow>(launch);
  // Before the wait the position may be an old one, and so may all else: good enough to fetch ahead.
#pragma unroll 1
  for (int pass = 0; pass < 2; ++pass) {
    if (pass == 1)
      ptx::griddepcontrol_wait();
    see(a, *reinterpret_cast<const volatile int32_t *>(launch.position) + place.token, place);
    if (place.last < 0 || place.last >= a.context || split >= place.chunks) {
      if (pass == 1)
        return;
      continue;
    }
    if (pass == 0)
      for (int i = 1; i < kAhead && split + i * launch.splits < place.chunks; ++i)
        prefetchChunk<kRow>(launch, place, place.firstChunk + split + i * launch.splits);
    attendSplit<G, kRow>(launch, place, shared, split, pass == 0 ? min(split + 1, place.chunks) : place.chunks);
  }
  const int64_t group = (blockIdx.z * a.kvHeads + place.kv) * launch.tiles + place.tile;
  float *partials = launch.partials + group * launch.splits * G * (rowOf<kRow>(launch) + 4);
  if (publish<G, kRow>(launch, place, shared, partials, launch.counters + group, split))
    mergePartials<G, kRow>(launch, place, shared, partials);
}

int tileHeads(int64_t group) { return group <= 1 ? 1 : group <= 2 ? 2 : group <= 4 ? 4 : 8; }

// Splits of the cache: a constant of the shape and the device, enough for a block on every multiprocessor: a second
// round of blocks would start late, and so would the next kernel's.
int64_t splitsOf(int64_t kvHeads, int64_t tiles) {
  const int64_t wanted = divideUp(multiprocessors(), kvHeads * tiles);
  return wanted < 2 ? 2 : wanted > kMaxSplits ? kMaxSplits : wanted;
}

template <int G, int kRow>
Status startRow(AttentionLaunch &launch, int64_t tokens, cudaStream_t stream) {
  const auto kernel = attention_kernel<G, kRow>;
  const size_t bytes = sizeof(Shared<G>);
  if (const Status status = allowShared(kernel, bytes))
    return status;
  for (; launch.firstToken < tokens; launch.firstToken += kLaunchTokens) {
    const int64_t count = tokens - launch.firstToken < kLaunchTokens ? tokens - launch.firstToken : kLaunchTokens;
    const dim3 grid(static_cast<unsigned>(launch.attention.kvHeads * launch.tiles),
                    static_cast<unsigned>(launch.splits), static_cast<unsigned>(count));
    if (const Status status = mcc::cuda::launch(kernel, grid, dim3(kThreads), bytes, stream, launch))
      return status;
  }
  return cudaSuccess;
}

template <int G>
Status start(AttentionLaunch &launch, int64_t tokens, cudaStream_t stream) {
  switch (launch.attention.headDim) {
  case 64:
    return startRow<G, 64>(launch, tokens, stream);
  case 128:
    return startRow<G, 128>(launch, tokens, stream);
  default:
    return startRow<G, 0>(launch, tokens, stream);
  }
}

int64_t counterBytes(int64_t kvHeads, int64_t tiles) {
  return divideUp(kLaunchTokens * kvHeads * tiles * 4, 256) * 256;
}

// Whether tensor cores serve the launch: below so many tokens splits of the cache fill the device better.
bool isPrefill(int64_t tokens, int64_t headDim, int prefillParts) {
  return prefillParts > 0 && tokens > 3 * kLaunchTokens && flashAvailable(headDim);
}

} // namespace

int64_t attentionWorkspaceBytes(int64_t tokens, int64_t heads, int64_t kvHeads, int64_t headDim, int64_t context,
                                int prefillParts) {
  const int64_t group = heads / kvHeads, per = tileHeads(group), tiles = divideUp(group, per),
                row = divideUp(headDim, 16) * 16;
  const int64_t split =
      counterBytes(kvHeads, tiles) + kLaunchTokens * kvHeads * tiles * splitsOf(kvHeads, tiles) * per * (row + 4) * 4;
  return isPrefill(tokens, headDim, prefillParts)
             ? divideUp(split, 256) * 256 + flashWorkspaceBytes(kvHeads, headDim, context, prefillParts)
             : split;
}

Status launchAttention(const Step &step, const Attention &attention, cudaStream_t stream) {
  const Attention &a = attention;
  if (step.tokens < 1 || step.tokens > 65535 || !step.position || a.kvHeads < 1 || a.heads % a.kvHeads != 0 ||
      a.headDim < 1 || a.headDim > kMaxDim || !a.workspace)
    return kInvalidValue;
  if (isPrefill(step.tokens, a.headDim, a.prefillParts))
    return launchFlash(
        step, a, a.workspace + attentionWorkspaceBytes(step.tokens, a.heads, a.kvHeads, a.headDim, 0, a.prefillParts),
        stream);
  AttentionLaunch launch = {};
  launch.attention = a;
  launch.position = step.position;
  launch.group = static_cast<int>(a.heads / a.kvHeads);
  const int per = tileHeads(launch.group);
  launch.tiles = static_cast<int>(divideUp(launch.group, per));
  launch.row = static_cast<int>(divideUp(a.headDim, 16) * 16);
  launch.splits = static_cast<int>(splitsOf(a.kvHeads, launch.tiles));
  launch.counters = reinterpret_cast<int32_t *>(a.workspace);
  launch.partials = reinterpret_cast<float *>(a.workspace + counterBytes(a.kvHeads, launch.tiles));
  switch (per) {
  case 1:
    return start<1>(launch, step.tokens, stream);
  case 2:
    return start<2>(launch, step.tokens, stream);
  case 4:
    return start<4>(launch, step.tokens, stream);
  default:
    return start<8>(launch, step.tokens, stream);
  }
}

} // namespace mcc::cuda
