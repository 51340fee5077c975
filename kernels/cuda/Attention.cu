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
#include "kernels/cuda/attention_merge.cuh"
#include "kernels/cuda/attention_prefill.cuh"

namespace mcc::cuda {

namespace {

// Tokens of a launch.
constexpr int64_t kLaunchTokens = 16;
// Chunks that a block fetches into the second-level cache ahead.
constexpr int kAhead = 8;

// Fetches the chunk's bytes into the second-level cache.
template <int kRow>
__device__ __forceinline__ void prefetchChunk(const AttentionLaunch &launch, const AttentionPlace &place, int chunk) {
  const int dim = dimOf<kRow>(launch.attention);
  const int64_t start = static_cast<int64_t>(chunk) * kAttentionChunk;
  const int positions = static_cast<int>(min(place.last / 16 * 16 + 16 - start, int64_t{kAttentionChunk}));
  const char *keys = reinterpret_cast<const char *>(place.keys + start * dim);
  const char *values = reinterpret_cast<const char *>(place.values + start * rowOf<kRow>(launch));
  for (int i = threadIdx.x * 128; i < positions * dim * 4; i += kAttentionThreads * 128)
    ptx::prefetch_l2(keys + i);
  for (int i = threadIdx.x * 128; i < positions * rowOf<kRow>(launch) * 4; i += kAttentionThreads * 128)
    ptx::prefetch_l2(values + i);
}

// Grid: (kv heads x head tiles, splits, tokens).
template <int G, int kRow>
__global__ __launch_bounds__(kAttentionThreads) void attention_kernel(const __grid_constant__ AttentionLaunch launch) {
  extern __shared__ __align__(16) uint8_t bytes[];
  AttentionShared<G> &shared = *reinterpret_cast<AttentionShared<G> *>(bytes);
  const Attention &a = launch.attention;
  if (threadIdx.x == 0)
    ptx::griddepcontrol_launch_dependents();
  const int split = blockIdx.y;
  AttentionPlace place;
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
  return wanted < 2 ? 2 : wanted > kMostSplits ? kMostSplits : wanted;
}

template <int G, int kRow>
Status startRow(AttentionLaunch &launch, int64_t tokens, cudaStream_t stream) {
  const auto kernel = attention_kernel<G, kRow>;
  const size_t bytes = sizeof(AttentionShared<G>);
  if (const Status status = allowShared(kernel, bytes))
    return status;
  for (; launch.firstToken < tokens; launch.firstToken += kLaunchTokens) {
    const int64_t count = tokens - launch.firstToken < kLaunchTokens ? tokens - launch.firstToken : kLaunchTokens;
    const dim3 grid(static_cast<unsigned>(launch.attention.kvHeads * launch.tiles),
                    static_cast<unsigned>(launch.splits), static_cast<unsigned>(count));
    if (const Status status = mcc::cuda::launch(kernel, grid, dim3(kAttentionThreads), bytes, stream, launch))
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
      a.headDim < 1 || a.headDim > kAttentionMaxDim || !a.workspace)
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
