// The kernel of linear_gemm.cu: a GEMM on warpgroup matrix products, weights straight from bf16 panels.
//
// y [tokens, rows] f32 = activations [tokens, cols] (1 to 3 bf16 parts) x panels, 64 columns at a time through a ring of
// shared memory. A block computes 256 tokens x 8 panels where there is 1 part of each, in clusters of two that share
// their tokens: each block copies half of the activations to both, so that a stage costs 32 KiB of reads from the
// second-level cache, whose throughput is the bound of 128 tokens x 16 panels (48 KiB). With more parts, or few tokens,
// a block computes 128 tokens x 16, 8 or 4 panels by itself.
// A tile of activations comes as 16 KiB of consecutive bytes by one bulk copy. Of weights 128 threads copy 16 bytes at
// a time and exchange the halves of 32-byte columns, as the tensor cores want an operand whose 16 rows are consecutive
// (a tensor copy does that too, at 32 bytes a step: 1.16 us a stage instead of 0.84, measured). Two warpgroups multiply;
// parts of a column are added one after the other into one accumulator. Blocks stay and take every n-th tile, tokens
// first, so that the copies of the next tile run under the epilogue (linear_gemm_store.cuh).
//
// Shared: 48 KiB a stage (1 part), 4 stages, and 20 KiB of the epilogue. Registers: 208 a multiplying thread, 128 of
// them sums. Expected: 80% of what the tensor cores reach (790 TFLOP/s on H200) over the parts.
#pragma once

#include "kernels/cuda/linear_gemm_store.cuh"
#include "kernels/cuda/ptx_sm90.cuh"

namespace mcc::cuda {

constexpr int kConsumerWarps = 8, kConsumers = kConsumerWarps * 32, kCopyThreads = 128;
constexpr int kThreads = kConsumers + kCopyThreads;
constexpr int kPanelStageBytes = kGemmCols * 32;
static_assert(kCopyThreads == 2 * kGemmCols, "a copying thread takes half a column of each panel");
constexpr int kMaxStages = 8;
constexpr int kSharedBytes = 227 * 1024;
// Barriers, then the epilogue's pieces, then stages at a multiple of 1 KiB.
constexpr int kBarrierBytes = 2 * kMaxStages * 8;
constexpr int kFixedBytes = kBarrierBytes + kConsumerWarps * kPieceBytes + 1024;
// Tiles of tokens that are taken together, panels by panels: their activations stay in the second-level cache.
constexpr int kTokenTilesTogether = 16;

// A kernel's constants: tiles of 128 tokens and panels that a block takes together, parts of an activation and of a
// weight. Two tiles of tokens are shared by a cluster of two blocks.
template <int kTokenTiles, int kPanels, int kParts, int kWeightParts>
struct Tiling {
  static constexpr int tokenTiles = kTokenTiles, panels = kPanels, parts = kParts, weightParts = kWeightParts;
  static constexpr int cluster = tokenTiles;
  // Activations may be approximated where operands are rounded.
  static constexpr bool approximate = parts == 1 && weightParts == 1;
  // Parts i and j of a product with i + j < most are multiplied.
  static constexpr int most = parts > weightParts ? parts : weightParts;
  static constexpr int weightOffset = parts * tokenTiles * static_cast<int>(kActivationTileBytes);
  static constexpr int weightBytes = panels * kPanelStageBytes;
  static constexpr int stageBytes = weightOffset + weightParts * weightBytes;
  static constexpr int room = (kSharedBytes - kFixedBytes) / stageBytes;
  static constexpr int stages = room < kMaxStages ? room : kMaxStages;
  // Stages whose weights are under way when the copying threads wait for one. A stage is given back once the products
  // of the next have begun, so that with two stages there is none to fill meanwhile.
  static constexpr int ahead = stages >= 3 ? 1 : 0;
  static_assert(stages >= 2 && panels % 2 == 0);
};

// Tiles of a cluster: `tokenTurns` of the tiling's tokens times `panelTurns` of its panels, for each block.
struct GemmPlan {
  ActivationTiles x;
  WeightPanels weights;
  int tokenTurns, panelTurns;
};

// Where a block's tile begins.
struct Tile {
  int tokenTile, panel;
};

// The tile of the cluster's turn `index`: groups of 16 tiles of tokens, in a group panels by panels.
template <class T>
__device__ __forceinline__ Tile tileAt(const GemmPlan &plan, int index, int rank) {
  constexpr int most = kTokenTilesTogether / T::tokenTiles;
  const int perGroup = most * plan.panelTurns, group = index / perGroup,
            together = min(most, plan.tokenTurns - group * most), inGroup = index - group * perGroup;
  return {(group * most + inGroup % together) * T::tokenTiles, (inGroup / together * T::cluster + rank) * T::panels};
}

#ifdef MCC_SM90A

// The block's ring and barriers, by shared address.
struct Ring {
  uint32_t barriers, stages;
  __device__ explicit Ring(uint32_t base)
      : barriers(base), stages((base + kBarrierBytes + kConsumerWarps * kPieceBytes + 1023) / 1024 * 1024) {}
  __device__ uint32_t full(int stage) const { return barriers + stage * 8; }
  __device__ uint32_t empty(int stage) const { return barriers + (kMaxStages + stage) * 8; }
};

// A place in the ring and the parity of its round.
struct Turn {
  int stage = 0;
  uint32_t parity = 0;
  __device__ __forceinline__ void advance(int stages) {
    if (++stage == stages)
      stage = 0, parity ^= 1;
  }
};

// Starts the copy of a stage's activations, whose bytes `full` will count: in a cluster this block's tile of tokens, to
// all blocks. Past the last tile of tokens it is copied again; what comes of it is not stored.
template <class T>
__device__ __forceinline__ void copyActivations(const GemmPlan &plan, uint32_t stage, uint32_t full, int tokenTile,
                                                int colTile, int rank) {
  ptx::mbarrier_arrive_expect_tx(full, T::weightOffset);
  const int from = min(tokenTile + rank, plan.x.tokenTiles - 1);
#pragma unroll
  for (int part = 0; part < T::parts; ++part) {
    const uint16_t *tile =
        plan.x.tiles + ((static_cast<int64_t>(part) * plan.x.tokenTiles + from) * plan.x.colTiles + colTile) *
                           (kActivationTileBytes / 2);
    const uint32_t to = stage + (part * T::tokenTiles + rank) * static_cast<int>(kActivationTileBytes);
    if constexpr (T::cluster > 1)
      ptx::cp_async_bulk_multicast(to, tile, kActivationTileBytes, full, (1 << T::cluster) - 1);
    else
      ptx::cp_async_bulk(to, tile, kActivationTileBytes, full);
  }
}

// Stages before a tile's last when its residual is asked for in the second-level cache: early enough to be there, late
// enough not to have left.
constexpr int kResidualAhead = 16;

// Asks for the residual of a tile, which the epilogue would wait for.
template <class T>
__device__ __forceinline__ void fetchResidual(const LinearLaunch &launch, const Tile &tile) {
  if (!launch.residual)
    return;
  constexpr int lineFloats = 32, lines = T::panels * kPanel / lineFloats;
  const int row = (launch.gated ? tile.panel / 2 : tile.panel) * kPanel + threadIdx.x % lines * lineFloats;
  for (int i = (threadIdx.x - kConsumers) / lines; i < T::tokenTiles * kGemmTokens; i += kCopyThreads / lines)
    if (const int token = tile.tokenTile * kGemmTokens + i; token < launch.tokens && row < launch.rows)
      ptx::prefetch_l2(launch.residual + token * launch.residualStride + row);
}

// Starts the copies of a stage's weights, halves exchanged where bit 2 of the column is set; zeros where there is no
// panel or column.
template <class T>
__device__ __forceinline__ void copyWeights(const LinearLaunch &launch, const GemmPlan &plan, uint32_t stage, int panel,
                                            int colTile) {
  const int thread = threadIdx.x - kConsumers, half = thread % 2, inTile = thread / 2,
            column = colTile * kGemmCols + inTile;
  const uint32_t to = stage + T::weightOffset + inTile * 32 + (half ^ (inTile >> 2 & 1)) * 16;
#pragma unroll
  for (int part = 0; part < T::weightParts; ++part) {
    const uint8_t *from = plan.weights.panels +
                          (static_cast<int64_t>(part) * plan.weights.count + panel) * plan.weights.panelBytes +
                          column * int64_t{32} + half * 16;
#pragma unroll 8
    for (int p = 0; p < T::panels; ++p) {
      const bool present = panel + p < launch.panels && column < launch.cols;
      ptx::cp_async_or_zero(to + part * T::weightBytes + p * kPanelStageBytes,
                            present ? from + p * plan.weights.panelBytes : plan.weights.panels, present);
    }
  }
  ptx::cp_async_commit_group();
}

// Says that this thread's copies of a stage have landed and may be read by matrix products.
__device__ __forceinline__ void publish(uint32_t full) {
  ptx::fence_proxy_async();
  ptx::mbarrier_arrive(full);
}

// A copying thread's life.
template <class T>
__device__ __forceinline__ void produce(const LinearLaunch &launch, const GemmPlan &plan, const Ring &ring, int rank) {
  Turn turn;
  int before = -1; // the stage that is under way
  for (int index = blockIdx.x / T::cluster; index < plan.tokenTurns * plan.panelTurns;
       index += gridDim.x / T::cluster) {
    const Tile tile = tileAt<T>(plan, index, rank);
    for (int colTile = 0; colTile < plan.x.colTiles; ++colTile) {
      const uint32_t stage = ring.stages + turn.stage * T::stageBytes;
      if (colTile == max(plan.x.colTiles - kResidualAhead, 0))
        fetchResidual<T>(launch, tile);
      ptx::mbarrier_wait(ring.empty(turn.stage), turn.parity ^ 1);
      if (threadIdx.x == kConsumers)
        copyActivations<T>(plan, stage, ring.full(turn.stage), tile.tokenTile, colTile, rank);
      copyWeights<T>(launch, plan, stage, tile.panel, colTile);
      ptx::cp_async_wait_group<T::ahead>();
      if (T::ahead == 0)
        publish(ring.full(turn.stage));
      else if (before >= 0)
        publish(ring.full(before));
      before = turn.stage;
      turn.advance(T::stages);
    }
  }
  ptx::cp_async_wait_group<0>();
  if (T::ahead > 0 && before >= 0)
    publish(ring.full(before));
}

// Starts one stage's products for a warpgroup: sums of T::tokenTiles times 64 tokens.
template <class T>
__device__ __forceinline__ void startProducts(float (&sums)[T::tokenTiles][T::panels * 8], uint32_t stage, int group,
                                              bool first) {
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < kGemmCols / 16; ++step)
#pragma unroll
    for (int j = 0; j < T::weightParts; ++j) {
      const uint64_t right = ptx::operand(stage + T::weightOffset + j * T::weightBytes + step * 512, kPanelStageBytes,
                                          256, ptx::Swizzle::Bytes32);
#pragma unroll
      for (int i = 0; i < (T::parts < T::most - j ? T::parts : T::most - j); ++i)
#pragma unroll
        for (int m = 0; m < T::tokenTiles; ++m) {
          const uint32_t at = stage + i * T::tokenTiles * static_cast<int>(kActivationTileBytes) +
                              (group * T::tokenTiles + m) * 64 * kGemmCols * 2 + step * 32;
          ptx::wgmma(sums[m], ptx::operand(at, 16, 1024, ptx::Swizzle::Bytes128), right,
                     !first || step > 0 || i + j > 0);
        }
    }
  ptx::wgmma_commit_group();
}

// Says to every block of the cluster that this warp has read a stage.
template <class T>
__device__ __forceinline__ void release(uint32_t empty) {
  if (const uint32_t lane = threadIdx.x % 32; T::cluster > 1 && lane < T::cluster)
    ptx::mbarrier_arrive_cluster(ptx::mapa(empty, lane));
  else if (T::cluster == 1 && lane == 0)
    ptx::mbarrier_arrive(empty);
}

// A multiplying warp's life.
template <class T>
__device__ __forceinline__ void consume(const LinearLaunch &launch, const GemmPlan &plan, const Ring &ring,
                                        float *pieces, int rank) {
  const int group = threadIdx.x / 128, warp = threadIdx.x / 32;
  Turn turn;
  float sums[T::tokenTiles][T::panels * 8];
  for (int index = blockIdx.x / T::cluster; index < plan.tokenTurns * plan.panelTurns;
       index += gridDim.x / T::cluster) {
    int before = -1; // the stage whose products may be under way
    for (int colTile = 0; colTile < plan.x.colTiles; ++colTile) {
      ptx::mbarrier_wait(ring.full(turn.stage), turn.parity);
      startProducts<T>(sums, ring.stages + turn.stage * T::stageBytes, group, colTile == 0);
      if (before >= 0) {
        ptx::wgmma_wait_group<1>();
        release<T>(ring.empty(before));
      }
      before = turn.stage;
      turn.advance(T::stages);
    }
    const Tile tile = tileAt<T>(plan, index, rank);
    const auto ready = [&] {
      ptx::wgmma_wait_group<0>();
#pragma unroll
      for (int m = 0; m < T::tokenTiles; ++m)
        ptx::hold(sums[m]);
      release<T>(ring.empty(before));
    };
    float *piece = pieces + warp * (kPieceBytes / 4);
    const int token = tile.tokenTile * kGemmTokens + group * T::tokenTiles * 64 + warp % 4 * 16;
    if (launch.gated)
      storeTile<T::approximate, true>(launch, sums, piece, tile.panel, token, ready);
    else
      storeTile<T::approximate, false>(launch, sums, piece, tile.panel, token, ready);
  }
}

#endif // MCC_SM90A

// Grid: blocks that stay; two multiplying warpgroups and one that copies.
template <class T>
__global__ __launch_bounds__(kThreads, 1) void linear_gemm_kernel(const __grid_constant__ LinearLaunch launch,
                                                                  const __grid_constant__ GemmPlan plan) {
#ifdef MCC_SM90A
  extern __shared__ __align__(1024) uint8_t shared[];
  const Ring ring(ptx::shared_address(shared));
  const int rank = T::cluster > 1 ? static_cast<int>(ptx::cluster_ctarank()) : 0;
  if (threadIdx.x == 0) {
    ptx::griddepcontrol_launch_dependents();
    for (int stage = 0; stage < T::stages; ++stage) {
      ptx::mbarrier_init(ring.full(stage), kCopyThreads + 1);
      ptx::mbarrier_init(ring.empty(stage), kConsumerWarps * T::cluster);
    }
    ptx::fence_mbarrier_init();
  }
  // In a cluster, barriers must be there before another block uses them, and as long as one may.
  const auto together = [] {
    if constexpr (T::cluster > 1)
      ptx::barrier_cluster();
    else
      __syncthreads();
  };
  together();
  if (threadIdx.x >= kConsumers) {
    ptx::setmaxnreg_dec<88>();
    ptx::griddepcontrol_wait();
    produce<T>(launch, plan, ring, rank);
  } else {
    ptx::setmaxnreg_inc<208>();
    ptx::griddepcontrol_wait();
    consume<T>(launch, plan, ring, reinterpret_cast<float *>(shared + kBarrierBytes), rank);
  }
  if constexpr (T::cluster > 1)
    together();
#endif
}

template <class T>
Status start(const LinearLaunch &launch, const ActivationTiles &tiles, const WeightPanels &weights,
             cudaStream_t stream) {
  const GemmPlan plan = {tiles, weights, static_cast<int>(divideUp(tiles.tokenTiles, T::tokenTiles)),
                         static_cast<int>(divideUp(launch.panels, T::panels * T::cluster))};
  constexpr size_t bytes = kFixedBytes + T::stages * T::stageBytes;
  const auto kernel = linear_gemm_kernel<T>;
  if (const Status status = allowShared(kernel, bytes))
    return status;
  const int turns = plan.tokenTurns * plan.panelTurns, clusters = multiprocessors() / T::cluster;
  return mcc::cuda::launchInClusters(T::cluster, kernel,
                                     dim3(static_cast<unsigned>((turns < clusters ? turns : clusters) * T::cluster)),
                                     dim3(kThreads), bytes, stream, launch, plan);
}

// A choice of tile: 128 tokens and panels, and the time of a panel relative to that of the largest.
struct TileChoice {
  int tokenTiles, panels;
  double cost;
};

// The tile that is soonest done with: the largest one is the most efficient, smaller ones may fill the device better.
inline TileChoice chooseTile(int64_t tokenTiles, int64_t panels, bool clusters) {
  constexpr TileChoice choices[] = {{2, 8, 1.0}, {1, 16, 1.2}, {1, 8, 1.4}, {1, 4, 1.9}};
  TileChoice best = choices[1];
  double least = 0;
  for (const TileChoice &choice : choices) {
    if (choice.tokenTiles > 1 && !clusters)
      continue;
    const int64_t turns = divideUp(tokenTiles, choice.tokenTiles) * divideUp(panels, choice.panels * choice.tokenTiles),
                  rounds = divideUp(turns, multiprocessors() / choice.tokenTiles);
    const double time = static_cast<double>(rounds * choice.tokenTiles * choice.panels) * choice.cost;
    if (least == 0 || time < least)
      least = time, best = choice;
  }
  return best;
}

/// Starts the kernel of these parts.
template <int parts, int weightParts>
Status startGemm(const LinearLaunch &launch, const ActivationTiles &tiles, const WeightPanels &weights,
                 cudaStream_t stream) {
  // Two stages of the widest tile must fit.
  constexpr int widest = parts + 2 * weightParts < 7 ? 16 : 8;
  constexpr bool clusters = parts == 1 && weightParts == 1;
  const TileChoice tile = chooseTile(tiles.tokenTiles, launch.panels, clusters);
  if constexpr (clusters)
    if (tile.tokenTiles == 2)
      return start<Tiling<2, 8, 1, 1>>(launch, tiles, weights, stream);
  if (tile.panels >= widest)
    return start<Tiling<1, widest, parts, weightParts>>(launch, tiles, weights, stream);
  if (tile.panels == 8)
    return start<Tiling<1, 8, parts, weightParts>>(launch, tiles, weights, stream);
  return start<Tiling<1, 4, parts, weightParts>>(launch, tiles, weights, stream);
}

} // namespace mcc::cuda
