// Attention of many tokens on sm_90a by warpgroup matrix products: y = softmax(q k^T) v with a running maximum and sum.
//
// A first kernel turns the keys and values that the step sees into bf16 tiles (attention_prefill.cuh), one part or two.
// Then a block takes 128 rows of a kv head, a row a (token, query head) pair, so that heads that share keys share their
// copies; the longest rows come first. One thread copies tiles of keys and values through a ring; each of two
// warpgroups keeps 64 rows: scores and sums in registers, probabilities go to the next product as its register operand.
// The scores of a tile are made while the products with the values before run, softmax under those. With two parts the
// products high high, low high and high low are added: 16 bits of each factor. One order of additions, no atomics.
//
// Shared: queries 32 KiB (128 dimensions, one part) and 6 tiles of 32 KiB. Expected: half of what the tensor cores
// reach, one part; a third of that, two.
#include "kernels/cuda/attention_prefill.cuh"
#include "kernels/cuda/linear_gemm.cuh"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/ptx_sm90.cuh"
#include "kernels/cuda/split.cuh"

namespace mcc::cuda {

namespace {

constexpr int kTileThreads = 256;

// The tiles of keys that the rows of tokens [first, last] see.
__device__ __forceinline__ Sight tilesOf(const Attention &a, int firstPosition, int lastPosition, int keys) {
  return {sightOf(a, firstPosition).first / keys, lastPosition / keys};
}

// Splits 8 numbers, those of which `present(i)` is false taken as zeros, and stores the parts, tileBytes apart.
template <class F, class Present>
__device__ __forceinline__ void storeEight(uint8_t *to, const float *from, bool any, Present present) {
  float4 quads[2] = {};
  if (any) {
    quads[0] = __ldcg(reinterpret_cast<const float4 *>(from));
    quads[1] = __ldcg(reinterpret_cast<const float4 *>(from) + 1);
  }
  const float values[8] = {quads[0].x, quads[0].y, quads[0].z, quads[0].w,
                           quads[1].x, quads[1].y, quads[1].z, quads[1].w};
  uint16_t bits[2][8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const Parts two = split(present(i) ? values[i] : 0.0f);
    bits[0][i] = two.part[0], bits[1][i] = two.part[1];
  }
#pragma unroll
  for (int part = 0; part < F::parts; ++part)
    *reinterpret_cast<uint4 *>(to + part * F::tileBytes) = eightOf(bits[part]);
}

// 8 positions of one dimension of the keys.
template <class F>
__device__ __forceinline__ void keyPiece(const Attention &a, const float *keys, int start, int last, int piece,
                                         uint8_t *to) {
  const int half = piece % 2, d = piece / 2 % F::dims, block = piece / 2 / F::dims, at = start + block * 16 + half * 8;
  storeEight<F>(to + (block * F::dims + d) * 32 + (half ^ (d >> 2 & 1)) * 16,
                keys + (start + block * 16) * a.headDim + d * 16 + half * 8, d < a.headDim && at <= last,
                [&](int i) { return at + i <= last; });
}

// 8 dimensions of one position of the values, whose rows are padded to 16.
template <class F>
__device__ __forceinline__ void valuePiece(const Attention &a, const float *values, int start, int last, int piece,
                                           uint8_t *to) {
  const int eighth = piece % (F::dims / 8), j = piece / (F::dims / 8), d = eighth * 8;
  const int64_t row = divideUp(a.headDim, 16) * 16;
  storeEight<F>(to + (eighth / 8 * F::keys + j) * 128 + (eighth % 8 ^ j % 8) * 16, values + (start + j) * row + d,
                d < a.headDim && start + j <= last, [&](int i) { return d + i < a.headDim; });
}

// Blocks take tiles of keys and of values in turn.
template <class F>
__global__ __launch_bounds__(kTileThreads) void flash_tiles_kernel(const __grid_constant__ FlashLaunch launch) {
  if (threadIdx.x == 0)
    ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  const Attention &a = launch.attention;
  const int position = *launch.position, last = position + launch.tokens - 1;
  const Sight tiles = tilesOf(a, position, last, F::keys);
  const int count = (tiles.last - tiles.first + 1) * 2 * static_cast<int>(a.kvHeads);
  const int64_t positions = divideUp(a.context, 16) * 16, row = divideUp(a.headDim, 16) * 16;
  for (int item = blockIdx.x; item < count; item += gridDim.x) {
    const int kind = item % 2, kv = item / 2 % static_cast<int>(a.kvHeads),
              tile = tiles.first + item / 2 / static_cast<int>(a.kvHeads);
    uint8_t *to = launch.tiles + ((static_cast<int64_t>(kv) * launch.tilesPerHead + tile) * 2 + kind) * F::slotBytes;
    for (int piece = threadIdx.x; piece < F::keys * F::dims / 8; piece += kTileThreads)
      if (kind == 0)
        keyPiece<F>(a, a.kCache + kv * positions * a.headDim, tile * F::keys, last, piece, to);
      else
        valuePiece<F>(a, a.vCache + kv * positions * row, tile * F::keys, last, piece, to);
  }
}

#ifdef MCC_SM90A

constexpr float kLog2E = 1.4426950408889634f;

// A block's shared memory.
template <class F>
struct Place {
  uint32_t barriers, queries, slots;
  __device__ explicit Place(uint32_t base) : barriers(base), queries((base + F::barrierBytes + 1023) / 1024 * 1024) {
    slots = queries + F::groups * F::parts * F::queryBytes;
  }
  __device__ uint32_t full(int slot) const { return barriers + slot * 8; }
  __device__ uint32_t empty(int slot) const { return barriers + (F::slots + slot) * 8; }
};

// A slot of the ring and the parity of its round.
template <class F>
struct Slot {
  int index = 0;
  uint32_t parity = 0;
  __device__ __forceinline__ void advance() {
    if (++index == F::slots)
      index = 0, parity ^= 1;
  }
};

// The copying thread: keys of a tile before the values of the tile before.
template <class F>
__device__ __forceinline__ void copyTiles(const FlashLaunch &launch, const Place<F> &place, int kv,
                                          const Sight &tiles) {
  Slot<F> slot;
  const auto copy = [&](int tile, int kind) {
    ptx::mbarrier_wait(place.empty(slot.index), slot.parity ^ 1);
    ptx::mbarrier_arrive_expect_tx(place.full(slot.index), F::slotBytes);
    ptx::cp_async_bulk(place.slots + slot.index * F::slotBytes,
                       launch.tiles +
                           ((static_cast<int64_t>(kv) * launch.tilesPerHead + tile) * 2 + kind) * F::slotBytes,
                       F::slotBytes, place.full(slot.index));
    slot.advance();
  };
  copy(tiles.first, 0);
  for (int tile = tiles.first + 1; tile <= tiles.last; ++tile)
    copy(tile, 0), copy(tile - 1, 1);
  copy(tiles.last, 1);
}

// One of a thread's two rows.
struct Row {
  int token, head; // token -1: the row does not exist
  Sight sight;
  float slope, largest, total;
};

// A multiplying warpgroup's 64 rows.
template <class F>
struct Rows {
  const FlashLaunch &launch;
  const Place<F> &place;
  const int lane, group, kv, firstRow, position;
  Row row[2];
  Slot<F> slot;
  float scores[F::keys / 2], out[F::dims / 2];
  uint32_t p[F::parts][F::keys / 16][4];
  float factor; // of a score within 2^x
  bool bent;
  Sight all; // positions that all rows see

  __device__ Rows(const FlashLaunch &launch, const Place<F> &place, int kv, int firstRow, int position)
      : launch(launch), place(place), lane(threadIdx.x % 32), group(threadIdx.x / 128), kv(kv), firstRow(firstRow),
        position(position) {
    const Attention &a = launch.attention;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int at = firstRow + threadIdx.x % 128 / 32 * 16 + lane / 4 + 8 * h, token = at / launch.group;
      row[h].token = token < launch.tokens ? token : -1;
      row[h].head = kv * launch.group + at % launch.group;
      row[h].sight = sightOf(a, position + min(token, launch.tokens - 1));
      row[h].slope = a.slopes ? a.slopes[row[h].head] : 0.0f;
      row[h].largest = -INFINITY, row[h].total = 0.0f;
    }
    all = {sightOf(a, position + min((firstRow + 63) / launch.group, launch.tokens - 1)).first,
           position + min(firstRow / launch.group, launch.tokens - 1)};
    bent = a.softcap > 0.0f || a.slopes || a.scale <= 0.0f;
    factor = bent ? kLog2E : a.scale * kLog2E;
#pragma unroll
    for (int i = 0; i < F::dims / 2; ++i)
      out[i] = 0.0f;
  }

  __device__ __forceinline__ uint32_t queries(int part) const {
    return place.queries + (group * F::parts + part) * F::queryBytes;
  }

  // The rows' queries into shared memory, 64 dimensions of 64 rows at a time. Many reads are under way together: nothing
  // else of the block can begin before them.
  __device__ __forceinline__ void loadQueries() const {
    extern __shared__ __align__(1024) uint8_t shared[];
    const Attention &a = launch.attention;
    uint8_t *to = shared + (queries(0) - ptx::shared_address(shared));
    const bool aligned = aligned16(a.q) && a.qStride % 4 == 0 && a.headDim % 4 == 0;
#pragma unroll 16
    for (int i = threadIdx.x % 128; i < 64 * F::dims / 4; i += 128) {
      const int r = i / (F::dims / 4), d = i % (F::dims / 4) * 4, at = firstRow + r,
                token = min(at / launch.group, launch.tokens - 1);
      const float4 v =
          load4(a.q + token * a.qStride + (kv * launch.group + at % launch.group) * a.headDim, d, a.headDim, aligned);
      const Parts parts[4] = {split(v.x), split(v.y), split(v.z), split(v.w)};
#pragma unroll
      for (int part = 0; part < F::parts; ++part)
        *reinterpret_cast<ushort4 *>(to + part * F::queryBytes + d / 64 * 8192 + r * 128 + (d % 64 / 8 ^ r % 8) * 16 +
                                     d % 8 * 2) = {parts[0].part[part], parts[1].part[part], parts[2].part[part],
                                                   parts[3].part[part]};
    }
    ptx::fence_proxy_async();
    ptx::bar_sync(1 + group, 128);
  }

  __device__ __forceinline__ int awaitSlot() {
    ptx::mbarrier_wait(place.full(slot.index), slot.parity);
    const int index = slot.index;
    slot.advance();
    return index;
  }
  __device__ __forceinline__ void release(int index) const {
    if (lane == 0)
      ptx::mbarrier_arrive(place.empty(index));
  }

  // Starts scores = queries x keys of the slot.
  __device__ __forceinline__ void startScores(int index) {
    const uint32_t keys = place.slots + index * F::slotBytes;
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < F::dims / 16; ++step)
#pragma unroll
      for (int j = 0; j < F::parts; ++j)
#pragma unroll
        for (int i = 0; i < F::parts - j; ++i)
          ptx::wgmma(scores,
                     ptx::operand(queries(i) + step / 4 * 8192 + step % 4 * 32, 16, 1024, ptx::Swizzle::Bytes128),
                     ptx::operand(keys + j * F::tileBytes + step * 512, F::dims * 32, 256, ptx::Swizzle::Bytes32),
                     step + i + j > 0);
    ptx::wgmma_commit_group();
  }

  // Starts out += p x values of the slot.
  __device__ __forceinline__ void startValues(int index) {
    const uint32_t values = place.slots + index * F::slotBytes;
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < F::keys / 16; ++step)
#pragma unroll
      for (int j = 0; j < F::parts; ++j)
#pragma unroll
        for (int i = 0; i < F::parts - j; ++i)
          ptx::wgmma(out, p[i][step],
                     ptx::operand(values + j * F::tileBytes + step * 2048, F::keys * 128, 1024, ptx::Swizzle::Bytes128),
                     1);
    ptx::wgmma_commit_group();
  }

  __device__ __forceinline__ int positionOf(int start, int i) const { return start + i / 4 * 8 + lane % 4 * 2 + i % 2; }

  // Scale, softcap and slope, where they are more than a factor.
  __device__ __forceinline__ void bend(int start) {
    const Attention &a = launch.attention;
    const auto rounded = [](float x) { return __bfloat162float(__float2bfloat16_rn(x)); };
#pragma unroll
    for (int i = 0; i < F::keys / 2; ++i) {
      float score = __fmul_rn(scores[i], a.scale);
      if (a.softcap > 0.0f) // tanh u = 1 - 2 / (1 + e^2u)
        score = a.softcap * (1.0f - 2.0f / (1.0f + ptx::ex2(score / a.softcap * (2.0f * kLog2E))));
      if (a.slopes) {
        const float slope = row[i / 2 % 2].slope, at = static_cast<float>(positionOf(start, i));
        score =
            __fadd_rn(score, a.alibiRounded ? rounded(__fmul_rn(rounded(slope), rounded(at))) : __fmul_rn(slope, at));
      }
      scores[i] = score;
    }
  }

  // Scores of the tile from `start` to 2^(factor (score - largest so far)); what was summed before is to be multiplied
  // by `shrink`.
  __device__ __forceinline__ void softmax(int start, float (&shrink)[2]) {
    if (bent)
      bend(start);
    if (start < all.first || start + F::keys - 1 > all.last)
#pragma unroll
      for (int i = 0; i < F::keys / 2; ++i) {
        const Sight &sight = row[i / 2 % 2].sight;
        if (const int at = positionOf(start, i); at < sight.first || at > sight.last)
          scores[i] = -INFINITY;
      }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float largest = row[h].largest;
#pragma unroll
      for (int i = 0; i < F::keys / 2; i += 4)
        largest = fmaxf(largest, fmaxf(scores[i + 2 * h], scores[i + 2 * h + 1]));
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
      // Nothing seen yet: any finite base will do.
      const float base = largest == -INFINITY ? 0.0f : __fmul_rn(largest, factor);
      shrink[h] = ptx::ex2(fmaf(row[h].largest, factor, -base));
      float sum = 0.0f;
#pragma unroll
      for (int i = 0; i < F::keys / 2; i += 4)
#pragma unroll
        for (int k = 2 * h; k < 2 * h + 2; ++k) {
          scores[i + k] = ptx::ex2(fmaf(scores[i + k], factor, -base));
          sum = __fadd_rn(sum, scores[i + k]);
        }
      row[h].total = fmaf(row[h].total, shrink[h], sum);
      row[h].largest = largest;
    }
  }

  // Scores to operands.
  __device__ __forceinline__ void pack() {
#pragma unroll
    for (int i = 0; i < F::keys / 4; ++i) {
      float2 rest = {scores[2 * i], scores[2 * i + 1]};
#pragma unroll
      for (int part = 0; part < F::parts; ++part) {
        const __nv_bfloat162 pair = __float22bfloat162_rn(rest);
        memcpy(&p[part][i / 4][i % 4], &pair, 4);
        const float2 back = __bfloat1622float2(pair);
        rest = {rest.x - back.x, rest.y - back.y};
      }
    }
  }

  __device__ __forceinline__ void attend(const Sight &tiles) {
    float shrink[2];
    int keys = awaitSlot();
    startScores(keys);
    ptx::wgmma_wait_group<0>();
    ptx::hold(scores);
    release(keys);
    softmax(tiles.first * F::keys, shrink);
    pack();
    for (int tile = tiles.first + 1; tile <= tiles.last; ++tile) {
      keys = awaitSlot();
      startScores(keys);
      const int values = awaitSlot();
      startValues(values);
      ptx::wgmma_wait_group<1>();
      ptx::hold(scores);
      release(keys);
      softmax(tile * F::keys, shrink);
      ptx::wgmma_wait_group<0>();
      ptx::hold(out);
      release(values);
#pragma unroll
      for (int i = 0; i < F::dims / 2; ++i)
        out[i] = __fmul_rn(out[i], shrink[i / 2 % 2]);
      pack();
    }
    startValues(awaitSlot());
    ptx::wgmma_wait_group<0>();
    ptx::hold(out);
  }

  // Divides and stores; a head's sink is one more logit that has no value.
  __device__ __forceinline__ void store() {
    const Attention &a = launch.attention;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float total = row[h].total;
      total = __fadd_rn(total, __shfl_xor_sync(0xffffffffu, total, 1));
      total = __fadd_rn(total, __shfl_xor_sync(0xffffffffu, total, 2));
      if (row[h].token < 0)
        continue;
      float weight = 1.0f;
      if (a.sinks) {
        const float sink = a.sinks[row[h].head] * kLog2E, largest = row[h].largest * factor,
                    base = fmaxf(sink, largest);
        weight = ptx::ex2(largest - base);
        total = fmaf(total, weight, ptx::ex2(sink - base));
      }
      float *y = a.y + row[h].token * a.yStride + row[h].head * a.headDim;
      const bool pairs = reinterpret_cast<uintptr_t>(y) % 8 == 0;
#pragma unroll
      for (int j = 0; j < F::dims / 8; ++j) {
        const int d = j * 8 + lane % 4 * 2;
        const float2 v = {out[j * 4 + 2 * h] * weight / total, out[j * 4 + 2 * h + 1] * weight / total};
        if (pairs && d + 2 <= a.headDim) {
          *reinterpret_cast<float2 *>(y + d) = v;
        } else {
          if (d < a.headDim)
            y[d] = v.x;
          if (d + 1 < a.headDim)
            y[d + 1] = v.y;
        }
      }
    }
  }
};

#endif // MCC_SM90A

// Grid: (kv heads x tiles of rows), the last rows first.
template <class F>
__global__ __launch_bounds__(F::threads, 1) void flash_kernel(const __grid_constant__ FlashLaunch launch) {
#ifdef MCC_SM90A
  extern __shared__ __align__(1024) uint8_t shared[];
  const Place<F> place(ptx::shared_address(shared));
  if (threadIdx.x == 0) {
    ptx::griddepcontrol_launch_dependents();
    for (int slot = 0; slot < F::slots; ++slot) {
      ptx::mbarrier_init(place.full(slot), 1);
      ptx::mbarrier_init(place.empty(slot), F::groups * 4);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  ptx::griddepcontrol_wait();
  const Attention &a = launch.attention;
  const int kvHeads = static_cast<int>(a.kvHeads), kv = blockIdx.x % kvHeads,
            firstRow = (launch.rowTiles - 1 - static_cast<int>(blockIdx.x) / kvHeads) * F::rows,
            position = *launch.position;
  const Sight tiles = tilesOf(a, position + firstRow / launch.group,
                              position + min((firstRow + F::rows - 1) / launch.group, launch.tokens - 1), F::keys);
  if (threadIdx.x >= F::groups * 128) {
    if constexpr (F::groups == 2)
      ptx::setmaxnreg_dec<40>();
    if (threadIdx.x == F::groups * 128)
      copyTiles<F>(launch, place, kv, tiles);
  } else {
    if constexpr (F::groups == 2)
      ptx::setmaxnreg_inc<232>();
    Rows<F> rows(launch, place, kv, firstRow + static_cast<int>(threadIdx.x) / 128 * 64, position);
    rows.loadQueries();
    rows.attend(tiles);
    rows.store();
  }
#endif
}

template <int dims, int parts>
Status start(FlashLaunch launch, cudaStream_t stream) {
  using F = FlashTiling<dims, parts>;
  launch.tilesPerHead = static_cast<int>(divideUp(launch.attention.context, F::keys));
  launch.rowTiles = static_cast<int>(divideUp(static_cast<int64_t>(launch.tokens) * launch.group, F::rows));
  if (const Status status = mcc::cuda::launch(flash_tiles_kernel<F>, dim3(static_cast<unsigned>(8 * multiprocessors())),
                                              dim3(kTileThreads), 0, stream, launch))
    return status;
  constexpr size_t bytes = F::fixedBytes + F::slots * F::slotBytes;
  if (const Status status = allowShared(flash_kernel<F>, bytes))
    return status;
  return mcc::cuda::launch(flash_kernel<F>, dim3(static_cast<unsigned>(launch.attention.kvHeads * launch.rowTiles)),
                           dim3(F::threads), bytes, stream, launch);
}

int64_t paddedDims(int64_t headDim) { return headDim <= 64 ? 64 : headDim <= 128 ? 128 : 256; }

int partsOf(int prefillParts) { return prefillParts > 1 ? 2 : 1; }

} // namespace

bool flashAvailable(int64_t headDim) { return headDim <= 256 && gemmAvailable(); }

int64_t flashWorkspaceBytes(int64_t kvHeads, int64_t headDim, int64_t context, int parts) {
  return kvHeads * divideUp(context, 128) * 128 * paddedDims(headDim) * 2 * 2 * partsOf(parts);
}

Status launchFlash(const Step &step, const Attention &attention, uint8_t *tiles, cudaStream_t stream) {
  FlashLaunch launch = {};
  launch.attention = attention;
  launch.position = step.position;
  launch.tiles = tiles;
  launch.tokens = static_cast<int>(step.tokens);
  launch.group = static_cast<int>(attention.heads / attention.kvHeads);
  const bool two = partsOf(attention.prefillParts) == 2;
  switch (paddedDims(attention.headDim)) {
  case 64:
    return two ? start<64, 2>(launch, stream) : start<64, 1>(launch, stream);
  case 128:
    return two ? start<128, 2>(launch, stream) : start<128, 1>(launch, stream);
  default:
    return two ? start<256, 2>(launch, stream) : start<256, 1>(launch, stream);
  }
}

} // namespace mcc::cuda
