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

#include "kernels/cuda/linear_stream_finish.cuh"
#include "kernels/cuda/linear_stream_operand.cuh"

namespace mcc::cuda {

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
