// The kernel of linear_gemm.cu: a GEMM on warpgroup matrix products, weights straight from bf16 panels.
//
// y [tokens, rows] f32 = activations [tokens, cols] (1 to 3 bf16 parts) x panels. A block computes 128 tokens x 16 panels
// (8 or 4 where that fills the device better), 64 columns at a time through a ring of shared memory. One thread copies:
// a tile of activations is 16 KiB of consecutive bytes; weights come by one tensor copy of 16 rows x 64 columns x the
// panels, which exchanges the halves of 32-byte columns as the tensor cores want an operand whose 16 rows are
// consecutive. Two warpgroups of 64 tokens multiply; parts of a column are added one after the other into one
// accumulator. Two blocks of a cluster take neighbouring tiles of tokens and fetch half of the weights each, for both.
// Blocks stay and take every n-th tile, tokens first, so that the copies of the next tile run under the epilogue, which
// goes through shared memory a warp at a time to whole cache lines.
//
// Shared: 48 KiB a stage (1 part, 16 panels), 4 stages, and 20 KiB of the epilogue. Registers: 208 a multiplying
// thread, 128 of them sums. Expected: 80% of what the tensor cores reach (790 TFLOP/s on H200) over the parts.
#pragma once

#include "kernels/cuda/linear_gemm.cuh"
#include "kernels/cuda/ptx_sm90.cuh"

#include <cuda.h>
#include <cstdlib>

namespace mcc::cuda {

constexpr int kConsumerWarps = 8, kThreads = 384;
constexpr int kPanelStageBytes = kGemmCols * 32;
// Floats from one token to the next in a warp's piece of the epilogue: 40, so that no bank is met twice.
constexpr int kPieceStride = 40, kPieceBytes = 16 * kPieceStride * 4;
constexpr int kMaxStages = 8;
constexpr int kSharedBytes = 227 * 1024;
// Barriers, then the epilogue's pieces, then stages at a multiple of 1 KiB.
constexpr int kBarrierBytes = 2 * kMaxStages * 8;
constexpr int kFixedBytes = kBarrierBytes + kConsumerWarps * kPieceBytes + 1024;
// Tiles of tokens that are taken together, panels by panels: their activations stay in the second-level cache.
constexpr int kTokenTilesTogether = 16;

// A kernel's constants: panels of a tile, blocks of a cluster, parts of an activation and of a weight.
template <int kPanels, int kCluster, int kParts, int kWeightParts>
struct Tiling {
  static constexpr int panels = kPanels, cluster = kCluster, parts = kParts, weightParts = kWeightParts;
  // Parts i and j of a product with i + j < most are multiplied.
  static constexpr int most = parts > weightParts ? parts : weightParts;
  static constexpr int weightOffset = parts * static_cast<int>(kActivationTileBytes);
  static constexpr int weightBytes = panels * kPanelStageBytes;
  static constexpr int stageBytes = weightOffset + weightParts * weightBytes;
  static constexpr int room = (kSharedBytes - kFixedBytes) / stageBytes;
  static constexpr int stages = room < kMaxStages ? room : kMaxStages;
  static_assert(stages >= 2 && panels % (2 * cluster) == 0);
};

struct GemmPlan {
  ActivationTiles x;
  int panelTiles;
  int partPanels; // panels of a part
};

// Where a tile lies.
struct Tile {
  int tokenTile, panelTile;
};

// The tile of turn `index`: groups of 16 tiles of tokens, in a group panels by panels. A cluster's blocks have
// neighbouring tiles of tokens; `tokenTiles` is a multiple of the cluster.
__device__ __forceinline__ Tile tileAt(int index, int tokenTiles, int panelTiles) {
  const int perGroup = kTokenTilesTogether * panelTiles, group = index / perGroup,
            together = min(kTokenTilesTogether, tokenTiles - group * kTokenTilesTogether),
            inGroup = index - group * perGroup;
  return {group * kTokenTilesTogether + inGroup % together, inGroup / together};
}

#ifdef MCC_SM90A

// The block's ring and barriers, by shared address.
struct Ring {
  uint32_t barriers, pieces, stages;
  __device__ explicit Ring(uint32_t base)
      : barriers(base), pieces(base + kBarrierBytes),
        stages((base + kBarrierBytes + kConsumerWarps * kPieceBytes + 1023) / 1024 * 1024) {}
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

// Copies one stage: the block's activations, and its share of the weights to the whole cluster.
template <class T>
__device__ __forceinline__ void copyStage(const GemmPlan &plan, const CUtensorMap &weights, uint32_t stage,
                                          uint32_t full, const Tile &tile, int colTile, uint32_t rank) {
  const int tokenTile = min(tile.tokenTile, plan.x.tokenTiles - 1);
  ptx::mbarrier_arrive_expect_tx(full, static_cast<uint32_t>(T::stageBytes));
  for (int part = 0; part < T::parts; ++part) {
    const int64_t at = (static_cast<int64_t>(part) * plan.x.tokenTiles + tokenTile) * plan.x.colTiles + colTile;
    ptx::cp_async_bulk(stage + part * static_cast<int>(kActivationTileBytes),
                       plan.x.tiles + at * (kActivationTileBytes / 2), kActivationTileBytes, full);
  }
  constexpr int share = T::panels / T::cluster;
  uint32_t to = stage + T::weightOffset + rank * (share * kPanelStageBytes);
  int panel = tile.panelTile * T::panels + static_cast<int>(rank) * share;
  for (int part = 0; part < T::weightParts; ++part) {
    if constexpr (T::cluster == 1)
      ptx::cp_async_bulk_tensor_3d(to, &weights, 0, colTile * kGemmCols, panel, full);
    else
      ptx::cp_async_bulk_tensor_3d(to, &weights, 0, colTile * kGemmCols, panel, full, (1 << T::cluster) - 1);
    to += T::weightBytes;
    panel += plan.partPanels;
  }
}

// One stage's products for a warpgroup.
template <class T>
__device__ __forceinline__ void multiplyStage(float (&sums)[T::panels * 8], uint32_t stage, int group,
                                              bool first) {
  const uint32_t weights = stage + T::weightOffset;
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < kGemmCols / 16; ++step)
#pragma unroll
    for (int j = 0; j < T::weightParts; ++j) {
      const uint64_t right = ptx::operand(weights + j * T::weightBytes + step * 512, kPanelStageBytes, 256,
                                          ptx::Swizzle::Bytes32);
#pragma unroll
      for (int i = 0; i < (T::parts < T::most - j ? T::parts : T::most - j); ++i) {
        const uint32_t at = stage + i * static_cast<int>(kActivationTileBytes) + group * 8192 + step * 32;
        ptx::wgmma(sums, ptx::operand(at, 16, 1024, ptx::Swizzle::Bytes128), right, !first || step > 0 || i + j > 0);
      }
    }
  ptx::wgmma_commit_group();
}

// Finishes and stores 4 consecutive rows of a token.
__device__ __forceinline__ void storeQuad(const LinearLaunch &launch, float4 sum, float4 up, int inPanel, int row,
                                          int token) {
  if (token >= launch.tokens || row >= launch.rows)
    return;
  const float sums[4] = {sum.x, sum.y, sum.z, sum.w}, ups[4] = {up.x, up.y, up.z, up.w};
  float values[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    values[i] = row + i < launch.rows ? finishSums(launch, sums[i], ups[i], inPanel + i, row + i, token) : 0.0f;
  float *to = launch.y + token * launch.yStride + row;
  if (row + 4 <= launch.rows && aligned16(to)) {
    *reinterpret_cast<float4 *>(to) = {values[0], values[1], values[2], values[3]};
    return;
  }
  for (int i = 0; i < 4 && row + i < launch.rows; ++i)
    to[i] = values[i];
}

// A warp's 16 tokens x 32 weight rows, which are two panels, from its piece of shared memory.
__device__ __forceinline__ void storePiece(const LinearLaunch &launch, const float *piece, int panel, int token,
                                           int lane) {
  const auto quad = [&](int t, int column) {
    return *reinterpret_cast<const float4 *>(piece + t * kPieceStride + column);
  };
  if (launch.gated) {
#pragma unroll 1
    for (int t = lane / 4; t < 16; t += 8)
      storeQuad(launch, quad(t, lane % 4 * 4), quad(t, kPanel + lane % 4 * 4), lane % 4 * 4,
                panel / 2 * kPanel + lane % 4 * 4, token + t);
    return;
  }
#pragma unroll 1
  for (int t = lane / 8; t < 16; t += 4) {
    const float4 sum = quad(t, lane % 8 * 4);
    storeQuad(launch, sum, sum, lane % 4 * 4, panel * kPanel + lane % 8 * 4, token + t);
  }
}

// Stores a warpgroup's tile.
template <class T>
__device__ __forceinline__ void storeTile(const LinearLaunch &launch, const float (&sums)[T::panels * 8], uint32_t pieces,
                                          int panel, int token) {
  extern __shared__ __align__(1024) uint8_t shared[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float *piece = reinterpret_cast<float *>(shared + (pieces - ptx::shared_address(shared)) + warp * kPieceBytes);
#pragma unroll
  for (int pair = 0; pair < T::panels / 2; ++pair) {
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        *reinterpret_cast<float2 *>(piece + (lane / 4 + half * 8) * kPieceStride + j * 8 + lane % 4 * 2) = {
            sums[(pair * 4 + j) * 4 + half * 2], sums[(pair * 4 + j) * 4 + half * 2 + 1]};
    __syncwarp();
    if (panel + pair * 2 < launch.panels)
      storePiece(launch, piece, panel + pair * 2, token, lane);
    __syncwarp();
  }
}

// The copying thread's life.
template <class T>
__device__ __forceinline__ void produce(const GemmPlan &plan, const CUtensorMap &weights, const Ring &ring, int first,
                                        int step, int tiles, int tokenTiles, uint32_t rank) {
  Turn turn;
  for (int index = first; index < tiles; index += step) {
    const Tile tile = tileAt(index, tokenTiles, plan.panelTiles);
    for (int colTile = 0; colTile < plan.x.colTiles; ++colTile) {
      ptx::mbarrier_wait(ring.empty(turn.stage), turn.parity ^ 1);
      copyStage<T>(plan, weights, ring.stages + turn.stage * T::stageBytes, ring.full(turn.stage), tile,
                                 colTile, rank);
      turn.advance(T::stages);
    }
  }
}

// Says that this warp has read a stage: to every block that copies into it.
template <class T>
__device__ __forceinline__ void release(uint32_t empty) {
  const int lane = threadIdx.x % 32;
  if constexpr (T::cluster == 1) {
    if (lane == 0)
      ptx::mbarrier_arrive(empty);
  } else {
    if (lane < T::cluster)
      ptx::mbarrier_arrive_cluster(empty, lane);
  }
}

// A multiplying warpgroup's life.
template <class T>
__device__ __forceinline__ void consume(const LinearLaunch &launch, const GemmPlan &plan, const Ring &ring, int first,
                                        int step, int tiles, int tokenTiles) {
  const int group = threadIdx.x / 128, warp = threadIdx.x / 32;
  Turn turn;
  float sums[T::panels * 8];
  for (int index = first; index < tiles; index += step) {
    int before = -1;
    for (int colTile = 0; colTile < plan.x.colTiles; ++colTile) {
      ptx::mbarrier_wait(ring.full(turn.stage), turn.parity);
      multiplyStage<T>(sums, ring.stages + turn.stage * T::stageBytes, group, colTile == 0);
      if (before >= 0) {
        ptx::wgmma_wait_group<1>();
        release<T>(ring.empty(before));
      }
      before = turn.stage;
      turn.advance(T::stages);
    }
    ptx::wgmma_wait_group<0>();
    ptx::hold(sums);
    release<T>(ring.empty(before));
    const Tile tile = tileAt(index, tokenTiles, plan.panelTiles);
    storeTile<T>(launch, sums, ring.pieces, tile.panelTile * T::panels,
                      tile.tokenTile * kGemmTokens + group * 64 + warp % 4 * 16);
  }
}

#endif // MCC_SM90A

// Grid: clusters that stay; two multiplying warpgroups and one that copies.
template <class T>
__global__ __launch_bounds__(kThreads, 1) void linear_gemm_kernel(const __grid_constant__ LinearLaunch launch,
                                                                  const __grid_constant__ GemmPlan plan,
                                                                  const __grid_constant__ CUtensorMap weights) {
#ifdef MCC_SM90A
  extern __shared__ __align__(1024) uint8_t shared[];
  const Ring ring(ptx::shared_address(shared));
  const uint32_t rank = T::cluster == 1 ? 0 : ptx::cluster_ctarank();
  if (threadIdx.x == 0) {
    ptx::griddepcontrol_launch_dependents();
    for (int stage = 0; stage < T::stages; ++stage) {
      ptx::mbarrier_init(ring.full(stage), 1);
      ptx::mbarrier_init(ring.empty(stage), kConsumerWarps * T::cluster);
    }
    ptx::fence_mbarrier_init();
  }
  if constexpr (T::cluster == 1)
    __syncthreads();
  else
    ptx::barrier_cluster();
  const int tokenTiles = (plan.x.tokenTiles + T::cluster - 1) / T::cluster * T::cluster, tiles = tokenTiles * plan.panelTiles;
  if (threadIdx.x >= kConsumerWarps * 32) {
    ptx::setmaxnreg_dec<88>();
    if (threadIdx.x == kConsumerWarps * 32) {
      ptx::prefetch_tensormap(&weights);
      ptx::griddepcontrol_wait();
      produce<T>(plan, weights, ring, blockIdx.x, gridDim.x, tiles, tokenTiles, rank);
    }
  } else {
    ptx::setmaxnreg_inc<208>();
    ptx::griddepcontrol_wait();
    consume<T>(launch, plan, ring, blockIdx.x, gridDim.x, tiles, tokenTiles);
  }
  // A block's shared memory must outlive its neighbour's copies and arrivals.
  if constexpr (T::cluster > 1) {
    __syncwarp();
    ptx::barrier_cluster();
  }
#endif
}

// linear_gemm.cu: panels as a tensor [panel][column][16], copied `panels` x 64 x 16 at a time; false where the driver
// refuses.
bool describePanels(const WeightPanels &weights, int64_t cols, int panels, CUtensorMap &map);

template <class T>
Status start(const LinearLaunch &launch, const ActivationTiles &tiles, const WeightPanels &weights, cudaStream_t stream) {
  CUtensorMap map;
  if (!describePanels(weights, launch.cols, T::panels / T::cluster, map))
    return kInvalidValue;
  const GemmPlan plan = {tiles, static_cast<int>(divideUp(launch.panels, T::panels)), weights.count};
  constexpr size_t bytes = kFixedBytes + T::stages * T::stageBytes;
  const auto kernel = linear_gemm_kernel<T>;
  if (const Status status = allowShared(kernel, bytes))
    return status;
  const int64_t turns = divideUp(tiles.tokenTiles, T::cluster) * T::cluster * plan.panelTiles,
                blocks = multiprocessors() / T::cluster * T::cluster;
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {T::cluster, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(turns < blocks ? turns : blocks));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = bytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = T::cluster > 1 ? 2 : 1;
  return cudaLaunchKernelEx(&config, kernel, launch, plan, map);
}

// Panels of a tile: the widest tile is the most efficient one, narrower ones may fill the device better.
inline int tilePanels(int64_t tokenTiles, int64_t panels) {
  constexpr int choices[] = {16, 8, 4};
  // Time of a tile relative to its panels.
  constexpr double cost[] = {1.0, 1.2, 1.6};
  int best = choices[0];
  static const char *forced = getenv("MCC_GEMM_PANELS"); // EXPERIMENT
  if (forced) return atoi(forced);
  double least = 0;
  for (int i = 0; i < 3; ++i) {
    const int64_t tiles = tokenTiles * divideUp(panels, choices[i]);
    const double time = static_cast<double>(divideUp(tiles, multiprocessors())) * choices[i] * cost[i];
    if (i == 0 || time < least)
      least = time, best = choices[i];
  }
  return best;
}

template <int cluster, int parts, int weightParts>
Status startParts(const LinearLaunch &launch, const ActivationTiles &tiles, const WeightPanels &weights,
                  cudaStream_t stream) {
  // Two stages of the widest tile must fit.
  constexpr int widest = parts + 2 * weightParts < 7 ? 16 : 8;
  const int panels = tilePanels(tiles.tokenTiles, launch.panels);
  if (panels >= widest)
    return start<Tiling<widest, cluster, parts, weightParts>>(launch, tiles, weights, stream);
  if (panels == 8)
    return start<Tiling<8, cluster, parts, weightParts>>(launch, tiles, weights, stream);
  return start<Tiling<4, cluster, parts, weightParts>>(launch, tiles, weights, stream);
}

/// Starts the kernel of these parts.
template <int parts, int weightParts>
Status startGemm(const LinearLaunch &launch, const ActivationTiles &tiles, const WeightPanels &weights,
                 cudaStream_t stream) {
  static const bool alone = getenv("MCC_GEMM_ALONE"); // EXPERIMENT
  return tiles.tokenTiles > 1 && !alone ? startParts<2, parts, weightParts>(launch, tiles, weights, stream)
                              : startParts<1, parts, weightParts>(launch, tiles, weights, stream);
}

} // namespace mcc::cuda
