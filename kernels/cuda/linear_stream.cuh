// The weight-streaming `linear` and `logits` for 1 to 16 tokens: y = scale * activation(norm(x) W^T + bias) + residual.
//
// A block owns consecutive panels of 16 rows and all their columns, which are consecutive bytes. One warp, the loader,
// streams them through a ring of stages in shared memory by bulk copies, starting at once: weights depend on no kernel.
// Tile::warps warps wait for the predecessor, bring the activations into operand form, and multiply on tensor cores,
// the weights being the 16-row operand; one more, the finisher, turns their sums into outputs meanwhile. An activation
// enters as two or three columns whose products are summed (operand.cuh).
//
// Order of additions, for any number of tokens, blocks and stages: of W warps, warp w takes the steps (32 columns)
// s = w mod W in order into one accumulator (bf16: for each part; (high + middle) + low); then the first half
// of the warps in order plus the second half; then bias, activation, scale, residual. Columns of an operand never meet,
// so a token's bits do not depend on its neighbours.
//
// Shared bytes: ring 48 to 96 KiB, operand 6 bytes a column and token (where resident), sums 2 to 32 KiB. Expected:
// 85% to 90% of the read bandwidth on matrices over 50 MB; test/bench/GPU.md has measured numbers.
#pragma once

#include "kernels/cuda/linear_epilogue.cuh"
#include "kernels/cuda/tiles.cuh"

namespace mcc::cuda {

/// Threads of a block: the multiplying warps, then the loader, then the finisher.
template <class Tile>
constexpr int kMultiplying = Tile::warps * 32;
template <class Tile>
constexpr int kStreamThreads = kMultiplying<Tile> + 64;
/// Floats that splitting rows takes, two rows in turn: where the sums will be.
constexpr int kSplitScratch = 2 * 32;
/// The block barrier of the multiplying warps.
constexpr uint32_t kOperandBarrier = 2;
/// Bytes of a stage of the ring.
template <class Tile>
__host__ __device__ constexpr uint32_t ringStageBytes(int panels) {
  return static_cast<uint32_t>(Tile::pieceCols(panels) / kStepCols * Tile::stepBytes * panels);
}

/// Bytes of an operand of `tokens` rows in shared memory: [tile][part or token][16], then what a step has beside.
template <class Activations>
__host__ __device__ constexpr int64_t residentBytes(int64_t cols, int64_t tokens) {
  return divideUp(cols, kStepCols) * kStepCols * 2 * Activations::parts * tokens + Activations::infoBytes(cols, tokens);
}

/// Where things lie in shared memory, in bytes from its start.
struct StreamShared {
  uint32_t sums, operand, barriers, zeros, total;
  __host__ __device__ StreamShared(uint32_t ringBytes, int bytesOfSums, int operandBytes) {
    sums = ringBytes;
    operand = sums + bytesOfSums;
    barriers = operand + operandBytes; // stages full [16], empty [16]; sums full [2], empty [2]
    zeros = barriers + 36 * 8;
    total = zeros + 16;
  }
};

/// Tokens of the sums' rows.
template <class Tile, int groups>
__host__ __device__ constexpr int sumsTokens(int tokens) {
  return groups == 1 ? tokens : Tile::Activations::capacity(groups);
}

/// Bytes of the warps' sums: two turns of [warp][panel][row][token].
template <class Tile, int groups, int panels>
__host__ __device__ constexpr int sumsBytes(int tokens) {
  return 2 * Tile::warps * panels * kPanel * sumsTokens<Tile, groups>(tokens) * 4;
}

/// Splits one normalised row into operand order: `place(column, part)` gives where a number goes, `placeInfo(step)`
/// where a step's.
template <class Tile, class Place, class PlaceInfo>
__device__ __forceinline__ void splitRow(const Norm &launchNorm, const float *x, int cols, float *scratch, int thread,
                                         Place place, PlaceInfo placeInfo) {
  const auto put = [&](int64_t at, float4 v) {
    Tile::Activations::template put<Tile>(static_cast<int>(at), v, thread, place, placeInfo);
  };
  constexpr int threads = kMultiplying<Tile>;
  constexpr int together = 512 / threads, depth = 1024 / threads;
  Norm norm = launchNorm;
  if (norm.kind < 0)
    norm.weight = norm.bias = nullptr;
  if (!aligned16(x) || !aligned16(norm.weight) || cols % 4 != 0)
    take_row<threads, 1, depth, true, false>(norm, x, cols, scratch, thread, put);
  else if (norm.kind >= 0)
    take_row<threads, together, depth, true, true>(norm, x, cols, scratch, thread, put);
  else
    take_row<threads, together, 4, false, true>(norm, x, cols, scratch, thread, put);
  // Steps of formats with blocks are whole.
  const int padded = static_cast<int>(divideUp(cols, kStepCols)) * kStepCols,
            tail = static_cast<int>(divideUp(cols, 4)) * 4;
  for (int column = tail + 4 * thread; column < padded; column += 4 * threads)
    put(column, float4{0.0f, 0.0f, 0.0f, 0.0f});
}

/// The loader: brings the block's panels through the ring, `panels` at a time, in pieces of `pieceCols` columns.
template <class Tile, int panels>
__device__ __forceinline__ void streamPanels(const LinearLaunch &launch, int first, int last, uint32_t ring,
                                             uint32_t full, uint32_t empty, int lane) {
  constexpr int pieceCols = Tile::pieceCols(panels), pieceBytes = pieceCols / kStepCols * Tile::stepBytes;
  int stage = 0;
  uint32_t parity = 1; // the first pass over the ring finds every stage free
  for (int panel = first; panel < last; panel += panels)
    for (int column = 0; column < launch.cols; column += pieceCols) {
      const int cols = min(pieceCols, launch.cols - column), present = min(panels, last - panel);
      const uint32_t bytes = static_cast<uint32_t>(static_cast<int64_t>(cols) * Tile::stepBytes / kStepCols);
      ptx::mbarrier_wait(empty + stage * 8, parity);
      const uint8_t *from =
          launch.weight + panel * launch.panelBytes + static_cast<int64_t>(column) * Tile::stepBytes / kStepCols;
      const uint32_t to = ring + stage * (pieceBytes * panels), barrier = full + stage * 8;
#if __CUDA_ARCH__ >= 900
      if (lane == 0) {
        ptx::mbarrier_arrive_expect_tx(barrier, bytes * present);
        for (int p = 0; p < present; ++p)
          ptx::cp_async_bulk(to + p * pieceBytes, from + p * launch.panelBytes, bytes, barrier);
      }
      __syncwarp();
#else
      for (int p = 0; p < present; ++p)
        for (uint32_t i = lane * 16; i < bytes; i += 32 * 16)
          ptx::cp_async(to + p * pieceBytes + i, from + p * launch.panelBytes + i);
      ptx::cp_async_mbarrier_arrive(barrier);
#endif
      if (++stage == launch.stages)
        stage = 0, parity ^= 1;
    }
}

/// Sums of one warp to shared memory, [panel][row][token].
template <class Tile, int groups, int panels, int count>
__device__ __forceinline__ void storeSums(const float (&sums)[panels][groups][count], float *to, int tokens, int lane) {
  const int capacity = sumsTokens<Tile, groups>(tokens);
#pragma unroll
  for (int p = 0; p < panels; ++p)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      Tile::Activations::template store<groups>(sums[p], half, to + (p * kPanel + Tile::row(lane / 4, half)) * capacity,
                                                tokens, lane % 4);
}

/// The sums of half of the warps, in order.
template <int warps, int panels>
__device__ __forceinline__ float mergeHalf(const float *sums, int capacity, int half, int panelRow, int token) {
  const float *from = sums + (half * (warps / 2) * panels * kPanel + panelRow) * capacity + token;
  float sum = *from;
#pragma unroll
  for (int warp = 1; warp < warps / 2; ++warp)
    sum = __fadd_rn(sum, from[warp * panels * kPanel * capacity]);
  return sum;
}

/// Stores one output of which the sum is known, and keeps the best logit.
__device__ __forceinline__ void storeOutput(const LinearLaunch &launch, float sum, float up, int lane, int row,
                                            int token, Partial &best) {
  float value = finishSums(launch, sum, up, lane, row, token);
  if (launch.partials)
    value = finishLogit(launch, value, row, best);
  launch.y[token * launch.yStride + row] = value;
}

/// Writes the outputs of the panels [panel, panel + present) from the warps' sums.
template <int warps, int panels>
__device__ __forceinline__ void finishTurn(const LinearLaunch &launch, const float *sums, int capacity, int panel,
                                           int present, int thread, Partial &best) {
  const int perUnit = launch.gated ? 2 : 1, outputs = present / perUnit * kPanel * launch.tokens;
  const auto merge = [&](int panelRow, int token) {
    return __fadd_rn(mergeHalf<warps, panels>(sums, capacity, 0, panelRow, token),
                     mergeHalf<warps, panels>(sums, capacity, 1, panelRow, token));
  };
#pragma unroll 1
  for (int i = thread; i < outputs; i += 32) {
    const int lane = i % kPanel, token = i / kPanel % launch.tokens, unit = i / kPanel / launch.tokens;
    const int row = (panel / perUnit + unit) * kPanel + lane, panelRow = unit * perUnit * kPanel + lane;
    if (row < launch.rows)
      storeOutput(launch, merge(panelRow, token), launch.gated ? merge(panelRow + kPanel, token) : 0.0f, lane, row,
                  token, best);
  }
}

/// The same for one token: half a warp adds half of the sums. What a turn takes here bounds how fast turns may follow.
template <int warps, int panels>
__device__ __forceinline__ void finishOne(const LinearLaunch &launch, const float *sums, int panel, int present,
                                          int thread, Partial &best) {
  const int lane = thread % kPanel;
  float merged[panels];
#pragma unroll
  for (int p = 0; p < panels; ++p) {
    const float half = mergeHalf<warps, panels>(sums, 1, thread / kPanel, p * kPanel + lane, 0);
    merged[p] = __fadd_rn(__shfl_sync(0xffffffffu, half, lane), __shfl_sync(0xffffffffu, half, lane + kPanel));
  }
  if (thread >= kPanel)
    return;
  if (panels == 2 && launch.gated) {
    if (const int row = panel / 2 * kPanel + lane; row < launch.rows)
      storeOutput(launch, merged[0], merged[panels - 1], lane, row, 0, best);
    return;
  }
#pragma unroll
  for (int p = 0; p < panels; ++p)
    if (const int row = (panel + p) * kPanel + lane; p < present && row < launch.rows)
      storeOutput(launch, merged[p], 0.0f, lane, row, 0, best);
}

/// Where a lane's activations of the resident operand lie: absent columns read zeros, at a stride of none.
template <class Activations>
struct ResidentPlace {
  uint32_t at, stride;       // of a tile
  uint32_t info, infoStride; // of a step
  __device__ ResidentPlace(uint32_t operand, uint32_t zeros, const LinearLaunch &launch, int lane) {
    const int part = Activations::partOf(lane / 4), token = Activations::tokenOf(lane / 4), t = lane % 4;
    const bool present = part < Activations::parts && token < launch.tokens;
    stride = present ? 32 * Activations::parts * launch.tokens : 0;
    at = present ? operand + (part * launch.tokens + token) * 32 + t * 8 : zeros;
    const uint32_t infos =
        operand + static_cast<uint32_t>(divideUp(launch.cols, kStepCols)) * 64 * Activations::parts * launch.tokens;
    infoStride = t < launch.tokens ? 8 * launch.tokens : 0;
    info = t < launch.tokens ? infos + t * 8 : zeros;
  }
  __device__ __forceinline__ void advance(int steps) {
    at += steps * 2 * stride;
    info += steps * infoStride;
  }
};

/// What a step has beside its numbers.
__device__ __forceinline__ void loadInfo(uint32_t at, TwoHalves::Info &info) {
  const uint2 bits = ptx::ld_shared_u64(at);
  info = {__uint_as_float(bits.x), __uint_as_float(bits.y)};
}
__device__ __forceinline__ void loadInfo(uint32_t, ThreeBfloats::Info &) {}

/// A lane's activations of the step `ahead` steps after `place`.
template <class Activations>
__device__ __forceinline__ void loadResident(const ResidentPlace<Activations> &place, int ahead,
                                             Operand<Activations, 1> &x) {
  const uint32_t at = place.at + ahead * 2 * place.stride;
  x.tile[0][0] = ptx::ld_shared_u64(at);
  x.tile[1][0] = ptx::ld_shared_u64(at + place.stride);
  loadInfo(place.info + ahead * place.infoStride, x.info[0]);
}

/// A lane's activations of step `step` out of the workspace.
template <class Activations, int groups>
__device__ __forceinline__ void loadOperand(const LinearLaunch &launch, int step, int lane,
                                            Operand<Activations, groups> &x) {
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int group = 0; group < groups; ++group)
      x.tile[i][group] = launch.operand[(static_cast<int64_t>(2 * step + i) * groups + group) * 32 + lane];
  if constexpr (Activations::parts == 2) {
    const auto *infos = static_cast<const TwoHalves::Info *>(launch.infos) + static_cast<int64_t>(step) * groups * 4;
#pragma unroll
    for (int group = 0; group < groups; ++group)
      x.info[group] = infos[group * 4 + lane % 4];
  }
}

/// Normalises and splits the tokens' rows into the resident operand, [tile][part][token][16], and its Info
/// [step][token].
template <class Tile>
__device__ __forceinline__ void prepareOperand(const LinearLaunch &launch, uint16_t *operand, float *scratch,
                                               int thread) {
  using Activations = typename Tile::Activations;
  const int tiles = static_cast<int>(divideUp(launch.cols, kStepCols)) * 2;
  auto *infos =
      reinterpret_cast<typename Activations::Info *>(operand + tiles * 16 * Activations::parts * launch.tokens);
  for (int token = 0; token < launch.tokens; ++token)
    splitRow<Tile>(
        launch.norm, launch.x + token * launch.xStride, launch.cols, scratch + token % 2 * (kSplitScratch / 2), thread,
        [&](int column, int part) {
          return operand + ((column / 16 * Activations::parts + part) * launch.tokens + token) * 16 +
                 dealt<Tile::dealing>(column % 16);
        },
        [&](int step) { return infos + step * launch.tokens + token; });
}

/// The finisher, one warp: outputs from the warps' sums, while those go on to the next panels.
template <class Tile, int groups, int panels>
__device__ __forceinline__ void finishPanels(const LinearLaunch &launch, const StreamShared &at, int first, int last,
                                             const uint8_t *shared, int lane) {
  const int capacity = sumsTokens<Tile, groups>(launch.tokens), sumsFloats = Tile::warps * panels * kPanel * capacity;
  const uint32_t full = ptx::shared_address(shared) + at.barriers + 32 * 8, empty = full + 2 * 8;
  Partial best = {0.0f, -1, 0, 0};
  uint32_t turn = 0;
  for (int panel = first; panel < last; panel += panels, ++turn) {
    if (launch.residual && lane < kPanel && panel * kPanel + lane < launch.rows)
      ptx::prefetch_l1(launch.residual + panel * kPanel + lane); // of the first token
    ptx::mbarrier_wait(full + turn % 2 * 8, turn / 2 % 2);
    const float *sums = reinterpret_cast<const float *>(shared + at.sums) + turn % 2 * sumsFloats;
    if (capacity == 1)
      finishOne<Tile::warps, panels>(launch, sums, panel, min(panels, last - panel), lane, best);
    else
      finishTurn<Tile::warps, panels>(launch, sums, capacity, panel, min(panels, last - panel), lane, best);
    __syncwarp();
    if (lane == 0)
      ptx::mbarrier_arrive(empty + turn % 2 * 8);
  }
  if (launch.partials)
    storeBest(launch, best, lane, 32);
}

/// A warp's place in the ring. A stage's two barriers are 128 bytes apart.
template <class Tile, int panels>
struct RingPlace {
  static constexpr uint32_t stageBytes = ringStageBytes<Tile>(panels);
  uint32_t ring, end, full; // where it begins and ends, the first stage's barrier
  uint32_t stage, barrier, parity = 0;
  __device__ RingPlace(uint32_t ring, uint32_t full, int stages)
      : ring(ring), end(ring + stages * stageBytes), full(full), stage(ring), barrier(full) {}
  __device__ __forceinline__ void wait() const { ptx::mbarrier_wait(barrier, parity); }
  /// Gives the stage back and goes on to the next.
  __device__ __forceinline__ void next(int lane) {
    __syncwarp();
    if (lane == 0)
      ptx::mbarrier_arrive(barrier + 16 * 8);
    stage += stageBytes, barrier += 8;
    if (stage == end)
      stage = ring, barrier = full, parity ^= 1;
  }
};

/// The multiplying warps' work on the panels of one turn.
template <class Tile, int groups, int panels>
struct Turn {
  using Activations = typename Tile::Activations;
  static constexpr int pieceCols = Tile::pieceCols(panels), pieceSteps = pieceCols / kStepCols,
                       pieceBytes = pieceSteps * Tile::stepBytes, warps = Tile::warps;
  float sums[panels][groups][Activations::sumsPerGroup] = {};

  __device__ __forceinline__ void multiply(const Tile (&tiles)[panels], const Operand<Activations, groups> &x) {
#pragma unroll
    for (int p = 0; p < panels; ++p)
      tiles[p].multiply(x, sums[p]);
  }

  /// All panels' tiles of the step at `at`, of which `columns` exist.
  __device__ __forceinline__ static void load(Tile (&tiles)[panels], uint32_t at, int lane, int columns,
                                              uint32_t zeros) {
#pragma unroll
    for (int p = 0; p < panels; ++p)
      tiles[p] = Tile::load(at + p * pieceBytes, lane, columns, zeros);
  }

  /// A whole piece with the resident operand: the loads of all its steps go before their products.
  __device__ __forceinline__ void takeWhole(uint32_t at, const ResidentPlace<Activations> &place, int lane,
                                            uint32_t zeros) {
    constexpr int batch = pieceSteps / warps;
    Operand<Activations, groups> x[batch];
    Tile tiles[batch][panels];
#pragma unroll
    for (int i = 0; i < batch; ++i) {
      loadResident(place, i * warps, x[i]);
      load(tiles[i], at + i * warps * Tile::stepBytes, lane, kStepCols, zeros);
    }
#pragma unroll
    for (int i = 0; i < batch; ++i)
      multiply(tiles[i], x[i]);
  }
};

/// The multiplying warps.
template <class Tile, int groups, int panels>
__device__ __forceinline__ void consumePanels(const LinearLaunch &launch, const StreamShared &at, int first, int last,
                                              uint8_t *shared, int thread) {
  using Activations = typename Tile::Activations;
  using Work = Turn<Tile, groups, panels>;
  constexpr int warps = Tile::warps;
  const int warpSums = panels * kPanel * sumsTokens<Tile, groups>(launch.tokens);
  const int warp = thread / 32, lane = thread % 32;
  const uint32_t ring = ptx::shared_address(shared), full = ring + at.barriers, zeros = ring + at.zeros;
  const uint32_t sumsFull = full + 32 * 8, sumsEmpty = sumsFull + 2 * 8;
  const ResidentPlace<Activations> resident(ring + at.operand, zeros, launch, lane);
  const int wholePieces = groups == 1 ? launch.cols / Work::pieceCols : 0;
  RingPlace<Tile, panels> place(ring, full, launch.stages);
  uint32_t turn = 0;
  for (int panel = first; panel < last; panel += panels, ++turn) {
    Work work;
    if constexpr (groups == 1) {
      ResidentPlace<Activations> mine = resident;
      mine.advance(warp);
#pragma unroll 1
      for (int i = 0; i < wholePieces; ++i) {
        place.wait();
        work.takeWhole(place.stage + warp * Tile::stepBytes, mine, lane, zeros);
        mine.advance(Work::pieceSteps);
        place.next(lane);
      }
    }
    for (int column = wholePieces * Work::pieceCols; column < launch.cols; column += Work::pieceCols) {
      const int cols = min(Work::pieceCols, launch.cols - column);
      place.wait();
#pragma unroll 1
      for (int step = warp; step * kStepCols < cols; step += warps) {
        Operand<Activations, groups> x;
        Tile tiles[panels];
        if constexpr (groups == 1)
          loadResident(resident, column / kStepCols + step, x);
        else
          loadOperand(launch, column / kStepCols + step, lane, x);
        Work::load(tiles, place.stage + step * Tile::stepBytes, lane, cols - step * kStepCols, zeros);
        work.multiply(tiles, x);
      }
      place.next(lane);
    }
    // Sums alternate between two places.
    ptx::mbarrier_wait(sumsEmpty + turn % 2 * 8, turn / 2 % 2 ^ 1);
    float *store = reinterpret_cast<float *>(shared + at.sums) + turn % 2 * warps * warpSums;
    storeSums<Tile, groups, panels>(work.sums, store + warp * warpSums, launch.tokens, lane);
    __syncwarp();
    if (lane == 0)
      ptx::mbarrier_arrive(sumsFull + turn % 2 * 8);
  }
}

template <class Tile, int groups, int panels>
__global__ __launch_bounds__(kStreamThreads<Tile>,
                             groups == 1 ? 2
                                         : 1) void linear_stream_kernel(const __grid_constant__ LinearLaunch launch) {
  extern __shared__ __align__(128) uint8_t shared[];
  const int thread = threadIdx.x;
  const int operandBytes =
      groups == 1 ? static_cast<int>(residentBytes<typename Tile::Activations>(launch.cols, launch.tokens)) : 0;
  const StreamShared at(launch.stages * ringStageBytes<Tile>(panels), sumsBytes<Tile, groups, panels>(launch.tokens),
                        operandBytes);
  const uint32_t full = ptx::shared_address(shared) + at.barriers, empty = full + 16 * 8;
  if (thread == 0) {
    ptx::griddepcontrol_launch_dependents();
    for (int stage = 0; stage < launch.stages; ++stage) {
#if __CUDA_ARCH__ >= 900
      ptx::mbarrier_init(full + stage * 8, 1);
#else
      ptx::mbarrier_init(full + stage * 8, 32);
#endif
      ptx::mbarrier_init(empty + stage * 8, Tile::warps);
    }
    for (int i = 0; i < 2; ++i) {
      ptx::mbarrier_init(full + (32 + i) * 8, Tile::warps);
      ptx::mbarrier_init(full + (34 + i) * 8, 1);
    }
    ptx::fence_mbarrier_init();
  }
  if (thread < 4)
    reinterpret_cast<uint32_t *>(shared + at.zeros)[thread] = 0;
  __syncthreads();
  const int64_t units = divideUp(launch.panels, panels);
  const int first = static_cast<int>(units * blockIdx.x / gridDim.x) * panels;
  const int last = min(static_cast<int>(units * (blockIdx.x + 1) / gridDim.x) * panels, launch.panels);
  if (first >= last && !launch.partials)
    return ptx::griddepcontrol_wait();
  constexpr int multiplying = kMultiplying<Tile>;
  if (thread >= multiplying && thread < multiplying + 32)
    return streamPanels<Tile, panels>(launch, first, last, ptx::shared_address(shared), full, empty, thread % 32);
  if (launch.norm.weight)
    for (int i = thread * 32; i < launch.cols; i += multiplying * 32)
      ptx::prefetch_l2(launch.norm.weight + i);
  ptx::griddepcontrol_wait();
  if (thread >= multiplying)
    return finishPanels<Tile, groups, panels>(launch, at, first, last, shared, thread % 32);
  if constexpr (groups == 1) {
    prepareOperand<Tile>(launch, reinterpret_cast<uint16_t *>(shared + at.operand),
                         reinterpret_cast<float *>(shared + at.sums), thread);
    ptx::bar_sync(kOperandBarrier, multiplying);
  }
  consumePanels<Tile, groups, panels>(launch, at, first, last, shared, thread);
}

/// Shared memory of a block (a multiprocessor has 228 KiB, of which each block takes 1 KiB more). A kernel's blocks are
/// placed as its predecessors leave, and the first multiprocessor to become free would take two of them while others
/// get none. So most launches ask for just over half; gated ones, and of scaled formats those with a norm, for what
/// fits beside such a block. (A bf16 `down` takes more than half for its activations: its successor gets no place
/// beside it.)
constexpr uint32_t kOverHalfShared = 113 * 1024 + 512, kUnderHalfShared = 112 * 1024 + 512, kAllShared = 227 * 1024;

/// Launches with the ring's depth and the number of blocks chosen.
template <class Tile, int groups, int panels>
Status launchStream(LinearLaunch launch, cudaStream_t stream) {
  constexpr uint32_t stageBytes = ringStageBytes<Tile>(panels);
  const int operandBytes =
      groups == 1 ? static_cast<int>(residentBytes<typename Tile::Activations>(launch.cols, launch.tokens)) : 0;
  const uint32_t fixed = StreamShared(0, sumsBytes<Tile, groups, panels>(launch.tokens), operandBytes).total;
  uint32_t stages = Tile::ringBytes / stageBytes;
  const bool beside = launch.gated || (Tile::Activations::parts == 2 && launch.norm.kind >= 0);
  const uint32_t wanted = beside ? kUnderHalfShared : kOverHalfShared;
  if (fixed + stages * stageBytes > wanted && fixed + 2 * stageBytes <= wanted)
    stages = (wanted - fixed) / stageBytes;
  while (stages > 2 && fixed + stages * stageBytes > kAllShared)
    --stages;
  launch.stages = static_cast<int>(stages);
  uint32_t bytes = fixed + stages * stageBytes;
  if (!beside && bytes < kOverHalfShared)
    bytes = kOverHalfShared;
  const auto kernel = linear_stream_kernel<Tile, groups, panels>;
  if (const Status status = allowShared(kernel, bytes))
    return status;
  // One block a multiprocessor, also where some have no work: they keep its place.
  const int64_t blocks = multiprocessors();
  return mcc::cuda::launch(kernel, dim3(static_cast<unsigned>(min(blocks, kLogitPartials))), dim3(kStreamThreads<Tile>),
                           bytes, stream, launch);
}

/// Launches for 1 to 16 tokens. Two panels at a time share their activations, where there are enough for every block.
template <class Tile>
Status launchStreamTokens(const LinearLaunch &launch, cudaStream_t stream) {
  if (!launch.operand)
    return launch.gated || launch.panels >= 16 * multiprocessors() ? launchStream<Tile, 1, 2>(launch, stream)
                                                                   : launchStream<Tile, 1, 1>(launch, stream);
  constexpr int few = Tile::Activations::groupsOf(8), many = Tile::Activations::groupsOf(16);
  return launch.tokens <= 8 ? launchStream<Tile, few, 2>(launch, stream) : launchStream<Tile, many, 2>(launch, stream);
}

} // namespace mcc::cuda
