// Attention of 1 to 16 tokens over a long cache, keys split over blocks; more tokens with the splits one after another.
//
// Keys are taken in chunks of 64 that start at multiples of 64. Chunk c belongs to split c mod S, S a constant of the
// shape; a split takes its chunks in order with the usual running maximum and sum, and the splits are merged in order.
// So a token's result depends on its position alone: not on blocks, tokens beside it, or who finishes first. With few
// tokens a split is a block, and the last block of a (token, kv head) to finish merges; with many, one block does all.
//
// A block of 128 threads serves up to 8 query heads of one kv head. Scores: a warp takes 16 keys, lane = 4 keys x an
// eighth of the dimensions. Values: thread = 4 dimensions x a share of the keys. Old keys and values are fetched into the
// second-level cache before the wait for the predecessor. Expected: latency of two memory reads up to some thousand keys,
// then 70% to 80% of the read bandwidth.
#include "kernels/cuda/Attention.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/math.cuh"

#include <cuda_bf16.h>

namespace mcc::cuda {

namespace {

constexpr int kThreads = 128, kChunk = 64, kMaxDim = 512;
// Up to so many tokens the splits are blocks.
constexpr int64_t kSplitTokens = 16;

struct AttentionLaunch {
  Attention attention;
  const int32_t *position;
  float *partials;   // [token][kv head][head tile][split][G][2 + row]
  int32_t *counters; // [token][kv head][head tile], zero between launches
  int splits, row, group, tiles;
};

// A block's running softmax; `out` and `merged` are thread = 4 dimensions x a share of the keys.
template <int G>
struct Shared {
  float q[G][kMaxDim];
  float p[G][kChunk];
  float shrink[G], largest[G], total[G];
  float slope[G];
  float values[kThreads][G][4];
  int last;
};

// Which keys and heads a block works on.
struct Place {
  int64_t token, kv, tile, first, last; // positions [first, last]
  const float *keys, *values;
};

// What a slope adds to the score of the key at `position`.
__device__ __forceinline__ float slopeTerm(const Attention &attention, float slope, int64_t position) {
  const float at = static_cast<float>(position);
  if (!attention.alibiRounded)
    return __fmul_rn(slope, at);
  const auto rounded = [](float x) { return __bfloat162float(__float2bfloat16_rn(x)); };
  return rounded(__fmul_rn(rounded(slope), rounded(at)));
}

template <int G>
__device__ void scoreChunk(const AttentionLaunch &launch, const Place &place, Shared<G> &shared, int64_t start) {
  const Attention &a = launch.attention;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, quad = lane % 4, part = lane / 4;
  const int64_t block = start + warp * 16;
  float sums[G][4] = {};
  if (block <= place.last) {
    const float *keys = place.keys + block * a.headDim + quad * 4;
#pragma unroll 8
    for (int d = part; d < a.headDim; d += 8) {
      const float4 key = *reinterpret_cast<const float4 *>(keys + d * 16);
#pragma unroll
      for (int i = 0; i < G; ++i) {
        const float q = shared.q[i][d];
        sums[i][0] = fmaf(q, key.x, sums[i][0]), sums[i][1] = fmaf(q, key.y, sums[i][1]);
        sums[i][2] = fmaf(q, key.z, sums[i][2]), sums[i][3] = fmaf(q, key.w, sums[i][3]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < G; ++i)
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      float sum = sums[i][k];
      sum += __shfl_xor_sync(0xffffffffu, sum, 4);
      sum += __shfl_xor_sync(0xffffffffu, sum, 8);
      sum += __shfl_xor_sync(0xffffffffu, sum, 16);
      const int64_t position = block + quad * 4 + k;
      float score = __fmul_rn(sum, a.scale);
      if (a.softcap > 0.0f)
        score = a.softcap * tanhf(score / a.softcap);
      if (a.slopes)
        score = __fadd_rn(score, slopeTerm(a, shared.slope[i], position));
      if (part == 0)
        shared.p[i][warp * 16 + quad * 4 + k] = position >= place.first && position <= place.last ? score : -INFINITY;
    }
  __syncthreads();
}

// Scores of the chunk to e^(score - largest so far); each warp takes whole heads.
template <int G>
__device__ void softmaxChunk(Shared<G> &shared) {
  const int lane = threadIdx.x % 32;
  for (int i = threadIdx.x / 32; i < G; i += kThreads / 32) {
    const float a = shared.p[i][lane], b = shared.p[i][lane + 32], before = shared.largest[i];
    const float largest = fmaxf(before, warp_max(fmaxf(a, b)));
    const float pa = expf(a - largest), pb = expf(b - largest), sum = warp_sum(__fadd_rn(pa, pb));
    shared.p[i][lane] = pa, shared.p[i][lane + 32] = pb;
    if (lane == 0) {
      const float shrink = expf(before - largest);
      shared.shrink[i] = shrink;
      shared.largest[i] = largest;
      shared.total[i] = fmaf(shared.total[i], shrink, sum);
    }
    __syncwarp();
  }
  __syncthreads();
}

template <int G>
__device__ void addValues(const AttentionLaunch &launch, const Place &place, const Shared<G> &shared, int64_t start, float (&out)[G][4]) {
  const int quads = launch.row / 4, shares = kThreads / quads, quad = threadIdx.x % quads, share = threadIdx.x / quads;
#pragma unroll
  for (int i = 0; i < G; ++i)
#pragma unroll
    for (int k = 0; k < 4; ++k)
      out[i][k] = __fmul_rn(out[i][k], shared.shrink[i]);
  if (share < shares) {
    const int begin = static_cast<int>(max(place.first - start, int64_t{0}));
    const int end = static_cast<int>(min(place.last - start + 1, int64_t{kChunk}));
    const float *values = place.values + start * launch.row + quad * 4;
#pragma unroll 8
    for (int j = share; j < kChunk; j += shares) {
      if (j < begin || j >= end)
        continue;
      const float4 value = *reinterpret_cast<const float4 *>(values + static_cast<int64_t>(j) * launch.row);
#pragma unroll
      for (int i = 0; i < G; ++i) {
        const float p = shared.p[i][j];
        out[i][0] = fmaf(p, value.x, out[i][0]), out[i][1] = fmaf(p, value.y, out[i][1]);
        out[i][2] = fmaf(p, value.z, out[i][2]), out[i][3] = fmaf(p, value.w, out[i][3]);
      }
    }
  }
  __syncthreads();
}

// One split: leaves largest and total in `shared`, the sum of p v in shared.values[quad] of the first threads.
template <int G>
__device__ void attendSplit(const AttentionLaunch &launch, const Place &place, Shared<G> &shared, int split) {
  const int64_t firstChunk = place.first / kChunk, lastChunk = place.last / kChunk;
  float out[G][4] = {};
  if (threadIdx.x < G)
    shared.largest[threadIdx.x] = -INFINITY, shared.total[threadIdx.x] = 0.0f;
  __syncthreads();
  const int64_t skip = (split - firstChunk % launch.splits + launch.splits) % launch.splits;
  for (int64_t chunk = firstChunk + skip; chunk <= lastChunk; chunk += launch.splits) {
    scoreChunk<G>(launch, place, shared, chunk * kChunk);
    softmaxChunk<G>(shared);
    addValues<G>(launch, place, shared, chunk * kChunk, out);
  }
#pragma unroll
  for (int i = 0; i < G; ++i)
#pragma unroll
    for (int k = 0; k < 4; ++k)
      shared.values[threadIdx.x][i][k] = out[i][k];
  __syncthreads();
  const int quads = launch.row / 4, shares = kThreads / quads;
  if (threadIdx.x < quads)
    for (int share = 1; share < shares; ++share)
#pragma unroll
      for (int i = 0; i < G; ++i)
#pragma unroll
        for (int k = 0; k < 4; ++k)
          shared.values[threadIdx.x][i][k] += shared.values[share * quads + threadIdx.x][i][k];
  __syncthreads();
}

// The splits merged so far, for 4 dimensions of G heads.
template <int G>
struct Merged {
  float largest[G], total[G], out[G][4];
  // A softmax that has seen the head's sink, if there is one, and no key: the sink is one more logit, and has no value.
  __device__ Merged(const AttentionLaunch &launch, const Place &place) {
#pragma unroll
    for (int i = 0; i < G; ++i) {
      const int64_t inGroup = place.tile * G + i;
      const float *sink = launch.attention.sinks && inGroup < launch.group
                              ? launch.attention.sinks + place.kv * launch.group + inGroup
                              : nullptr;
      largest[i] = sink ? *sink : -INFINITY, total[i] = sink ? 1.0f : 0.0f;
#pragma unroll
      for (int k = 0; k < 4; ++k)
        out[i][k] = 0.0f;
    }
  }
  __device__ void add(int i, float otherLargest, float otherTotal, const float (&other)[4]) {
    const float next = fmaxf(largest[i], otherLargest), mine = expf(largest[i] - next), theirs = expf(otherLargest - next);
    total[i] = fmaf(otherTotal, theirs, __fmul_rn(total[i], mine));
#pragma unroll
    for (int k = 0; k < 4; ++k)
      out[i][k] = fmaf(other[k], theirs, __fmul_rn(out[i][k], mine));
    largest[i] = next;
  }
};

template <int G>
__device__ void storeResult(const AttentionLaunch &launch, const Place &place, const Merged<G> &merged) {
  const Attention &a = launch.attention;
#pragma unroll
  for (int i = 0; i < G; ++i) {
    const int64_t inGroup = place.tile * G + i, head = place.kv * launch.group + inGroup;
    if (inGroup >= launch.group)
      continue;
    float *y = a.y + place.token * a.yStride + head * a.headDim;
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (threadIdx.x * 4 + k < a.headDim)
        y[threadIdx.x * 4 + k] = merged.out[i][k] / merged.total[i];
  }
}

// Whether `split` has a chunk of [first, last].
__device__ bool active(const AttentionLaunch &launch, const Place &place, int split) {
  const int64_t firstChunk = place.first / kChunk, lastChunk = place.last / kChunk;
  const int64_t skip = (split - firstChunk % launch.splits + launch.splits) % launch.splits;
  return firstChunk + skip <= lastChunk;
}

// Puts this block's split into the workspace; returns true in the block that comes last, for which all are visible.
template <int G>
__device__ bool publish(const AttentionLaunch &launch, const Place &place, Shared<G> &shared, float *partials, int split) {
  const int quads = launch.row / 4, stride = launch.row + 4;
  if (threadIdx.x < quads)
#pragma unroll
    for (int i = 0; i < G; ++i) {
      float *to = partials + (static_cast<int64_t>(split) * G + i) * stride;
      const float(&v)[4] = shared.values[threadIdx.x][i];
      *reinterpret_cast<float4 *>(to + 4 + threadIdx.x * 4) = {v[0], v[1], v[2], v[3]};
      if (threadIdx.x == 0)
        to[0] = shared.largest[i], to[1] = shared.total[i];
    }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    const int64_t chunks = place.last / kChunk - place.first / kChunk + 1;
    const int expected = static_cast<int>(min(chunks, static_cast<int64_t>(launch.splits)));
    int32_t *counter = launch.counters + (place.token * launch.attention.kvHeads + place.kv) * launch.tiles + place.tile;
    shared.last = atomicAdd(counter, 1) == expected - 1;
    if (shared.last)
      *counter = 0; // for the next launch
  }
  __syncthreads();
  __threadfence();
  return shared.last;
}

template <int G>
__device__ void mergePartials(const AttentionLaunch &launch, const Place &place, const float *partials) {
  const int quads = launch.row / 4, stride = launch.row + 4;
  if (threadIdx.x >= quads)
    return;
  Merged<G> merged(launch, place);
  for (int split = 0; split < launch.splits; ++split) {
    if (!active(launch, place, split))
      continue;
#pragma unroll
    for (int i = 0; i < G; ++i) {
      const float *from = partials + (static_cast<int64_t>(split) * G + i) * stride;
      const float2 state = __ldcg(reinterpret_cast<const float2 *>(from));
      const float4 v = __ldcg(reinterpret_cast<const float4 *>(from + 4 + threadIdx.x * 4));
      merged.add(i, state.x, state.y, {v.x, v.y, v.z, v.w});
    }
  }
  storeResult<G>(launch, place, merged);
}

// Fetches the chunk's bytes into the second-level cache.
__device__ void prefetchChunk(const AttentionLaunch &launch, const Place &place, int64_t chunk) {
  const int64_t dim = launch.attention.headDim, end = min((chunk + 1) * kChunk, divideUp(launch.attention.context, 16) * 16);
  const char *keys = reinterpret_cast<const char *>(place.keys + chunk * kChunk * dim);
  const char *values = reinterpret_cast<const char *>(place.values + chunk * kChunk * launch.row);
  for (int64_t i = threadIdx.x * 128; i < (end - chunk * kChunk) * dim * 4; i += kThreads * 128)
    ptx::prefetch_l2(keys + i);
  for (int64_t i = threadIdx.x * 128; i < (end - chunk * kChunk) * launch.row * 4; i += kThreads * 128)
    ptx::prefetch_l2(values + i);
}

// Grid: (kv heads x head tiles, splits or 1, tokens).
template <int G>
__global__ __launch_bounds__(kThreads) void attention_kernel(const __grid_constant__ AttentionLaunch launch) {
  extern __shared__ __align__(16) uint8_t bytes[];
  Shared<G> &shared = *reinterpret_cast<Shared<G> *>(bytes);
  const Attention &a = launch.attention;
  if (threadIdx.x == 0)
    ptx::griddepcontrol_launch_dependents();
  Place place;
  place.token = blockIdx.z, place.kv = blockIdx.x / launch.tiles, place.tile = blockIdx.x % launch.tiles;
  const int64_t positions = divideUp(a.context, 16) * 16;
  place.keys = a.kCache + place.kv * positions * a.headDim;
  place.values = a.vCache + place.kv * positions * launch.row;
  place.last = *launch.position + place.token;
  if (gridDim.y > 1 && blockIdx.y <= place.last / kChunk && place.last < a.context)
    prefetchChunk(launch, place, blockIdx.y);
  ptx::griddepcontrol_wait();
  place.last = *reinterpret_cast<const volatile int32_t *>(launch.position) + place.token;
  place.first = a.window > 0 && place.last >= a.window ? place.last - a.window + 1 : 0;
  if (a.chunk > 0)
    place.first = max(place.first, place.last / a.chunk * a.chunk);
  if (gridDim.y > 1 && !active(launch, place, blockIdx.y))
    return;
  if (threadIdx.x < G) {
    const int64_t inGroup = place.tile * G + threadIdx.x;
    shared.slope[threadIdx.x] = a.slopes && inGroup < launch.group ? a.slopes[place.kv * launch.group + inGroup] : 0.0f;
  }
  for (int i = threadIdx.x; i < G * launch.row; i += kThreads) {
    const int head = i / launch.row, d = i % launch.row;
    const int64_t inGroup = place.tile * G + head;
    shared.q[head][d] = inGroup < launch.group && d < a.headDim
                            ? a.q[place.token * a.qStride + (place.kv * launch.group + inGroup) * a.headDim + d]
                            : 0.0f;
  }
  if (gridDim.y > 1) {
    const int64_t group = (place.token * a.kvHeads + place.kv) * launch.tiles + place.tile;
    float *partials = launch.partials + group * launch.splits * G * (launch.row + 4);
    attendSplit<G>(launch, place, shared, blockIdx.y);
    if (publish<G>(launch, place, shared, partials, blockIdx.y))
      mergePartials<G>(launch, place, partials);
    return;
  }
  Merged<G> merged(launch, place);
  for (int split = 0; split < launch.splits; ++split) {
    if (!active(launch, place, split))
      continue;
    attendSplit<G>(launch, place, shared, split);
#pragma unroll
    for (int i = 0; i < G; ++i)
      merged.add(i, shared.largest[i], shared.total[i], shared.values[threadIdx.x][i]);
    __syncthreads();
  }
  if (threadIdx.x < launch.row / 4)
    storeResult<G>(launch, place, merged);
}

int tileHeads(int64_t group) { return group <= 1 ? 1 : group <= 2 ? 2 : group <= 4 ? 4 : 8; }

// Splits of the cache: a constant of the shape, enough for two hundred blocks a token.
int64_t splitsOf(int64_t kvHeads, int64_t tiles) {
  const int64_t wanted = divideUp(256, kvHeads * tiles);
  return wanted < 2 ? 2 : wanted > 64 ? 64 : wanted;
}

template <int G>
Status start(const AttentionLaunch &launch, int64_t tokens, cudaStream_t stream) {
  const auto kernel = attention_kernel<G>;
  if (const Status status = allowShared(kernel, sizeof(Shared<G>)))
    return status;
  const dim3 grid(static_cast<unsigned>(launch.attention.kvHeads * launch.tiles),
                  tokens <= kSplitTokens ? static_cast<unsigned>(launch.splits) : 1, static_cast<unsigned>(tokens));
  return mcc::cuda::launch(kernel, grid, dim3(kThreads), sizeof(Shared<G>), stream, launch);
}

int64_t counterBytes(int64_t kvHeads, int64_t tiles) { return divideUp(kSplitTokens * kvHeads * tiles * 4, 256) * 256; }

} // namespace

int64_t attentionWorkspaceBytes(int64_t, int64_t heads, int64_t kvHeads, int64_t headDim) {
  const int64_t group = heads / kvHeads, per = tileHeads(group), tiles = divideUp(group, per), row = divideUp(headDim, 16) * 16;
  return counterBytes(kvHeads, tiles) + kSplitTokens * kvHeads * tiles * splitsOf(kvHeads, tiles) * per * (row + 4) * 4;
}

Status launchAttention(const Step &step, const Attention &attention, cudaStream_t stream) {
  const Attention &a = attention;
  if (step.tokens < 1 || step.tokens > 65535 || !step.position || a.kvHeads < 1 || a.heads % a.kvHeads != 0 || a.headDim < 1 ||
      a.headDim > kMaxDim || !a.workspace)
    return kInvalidValue;
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
