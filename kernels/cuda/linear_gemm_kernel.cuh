// The kernel of linear_gemm.cu: a GEMM on warpgroup matrix products, weights straight from bf16 panels.
//
// y [tokens, rows] f32 = activations [tokens, cols] (1 to 3 bf16 parts) x panels. A block computes 128 tokens x 16
// panels (8 or 4 where that fills the device better), 64 columns at a time through a ring of shared memory. A tile of
// activations comes as 16 KiB of consecutive bytes by one bulk copy. Of weights 128 threads copy 16 bytes at a time and
// exchange the halves of 32-byte columns, as the tensor cores want an operand whose 16 rows are consecutive (a tensor
// copy does that too, at 32 bytes a step: 1.16 us a stage instead of 0.84, measured). Two warpgroups of 64 tokens
// multiply; parts of a column are added one after the other into one accumulator. Blocks stay and take every n-th tile,
// tokens first, so that the copies of the next tile run under the epilogue, which goes through shared memory a warp at
// a time to whole cache lines, by code that is small enough for the instruction cache.
//
// Shared: 48 KiB a stage (1 part, 16 panels), 4 stages, and 20 KiB of the epilogue. Registers: 208 a multiplying
// thread, 128 of them sums. Expected: 80% of what the tensor cores reach (790 TFLOP/s on H200) over the parts.
#pragma once

#include "kernels/cuda/linear_gemm.cuh"
#include "kernels/cuda/ptx_sm90.cuh"

namespace mcc::cuda {

constexpr int kConsumerWarps = 8, kConsumers = kConsumerWarps * 32, kCopyThreads = 128;
constexpr int kThreads = kConsumers + kCopyThreads;
constexpr int kPanelStageBytes = kGemmCols * 32;
static_assert(kCopyThreads == 2 * kGemmCols, "a copying thread takes half a column of each panel");
// Floats from one token to the next in a warp's piece of the epilogue: 40, so that no bank is met twice.
constexpr int kPieceStride = 40, kPieceBytes = 16 * kPieceStride * 4;
constexpr int kMaxStages = 8;
constexpr int kSharedBytes = 227 * 1024;
// Barriers, then the epilogue's pieces, then stages at a multiple of 1 KiB.
constexpr int kBarrierBytes = 2 * kMaxStages * 8;
constexpr int kFixedBytes = kBarrierBytes + kConsumerWarps * kPieceBytes + 1024;
// Tiles of tokens that are taken together, panels by panels: their activations stay in the second-level cache.
constexpr int kTokenTilesTogether = 16;

// A kernel's constants: panels of a tile, parts of an activation and of a weight.
template <int kPanels, int kParts, int kWeightParts>
struct Tiling {
  static constexpr int panels = kPanels, parts = kParts, weightParts = kWeightParts;
  // Parts i and j of a product with i + j < most are multiplied.
  static constexpr int most = parts > weightParts ? parts : weightParts;
  static constexpr int weightOffset = parts * static_cast<int>(kActivationTileBytes);
  static constexpr int weightBytes = panels * kPanelStageBytes;
  static constexpr int stageBytes = weightOffset + weightParts * weightBytes;
  static constexpr int room = (kSharedBytes - kFixedBytes) / stageBytes;
  static constexpr int stages = room < kMaxStages ? room : kMaxStages;
  // Stages whose weights are under way when the copying threads wait for one. A stage is given back once the products
  // of the next have begun, so that with two stages there is none to fill meanwhile.
  static constexpr int ahead = stages >= 3 ? 1 : 0;
  static_assert(stages >= 2 && panels % 2 == 0);
};

struct GemmPlan {
  ActivationTiles x;
  WeightPanels weights;
  int panelTiles;
};

// Where a tile lies.
struct Tile {
  int tokenTile, panelTile;
};

// The tile of turn `index`: groups of 16 tiles of tokens, in a group panels by panels.
__device__ __forceinline__ Tile tileAt(const GemmPlan &plan, int index) {
  const int perGroup = kTokenTilesTogether * plan.panelTiles, group = index / perGroup,
            together = min(kTokenTilesTogether, plan.x.tokenTiles - group * kTokenTilesTogether),
            inGroup = index - group * perGroup;
  return {group * kTokenTilesTogether + inGroup % together, inGroup / together};
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

// Starts the copy of a stage's activations, whose bytes `full` will count.
template <class T>
__device__ __forceinline__ void copyActivations(const GemmPlan &plan, uint32_t stage, uint32_t full, int tokenTile,
                                                int colTile) {
  ptx::mbarrier_arrive_expect_tx(full, T::weightOffset);
#pragma unroll
  for (int part = 0; part < T::parts; ++part) {
    const int64_t tile = (static_cast<int64_t>(part) * plan.x.tokenTiles + tokenTile) * plan.x.colTiles + colTile;
    ptx::cp_async_bulk(stage + part * static_cast<int>(kActivationTileBytes),
                       plan.x.tiles + tile * (kActivationTileBytes / 2), kActivationTileBytes, full);
  }
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
#pragma unroll 4
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
__device__ __forceinline__ void produce(const LinearLaunch &launch, const GemmPlan &plan, const Ring &ring, int tiles) {
  Turn turn;
  int before = -1; // the stage that is under way
  for (int index = blockIdx.x; index < tiles; index += gridDim.x) {
    const Tile tile = tileAt(plan, index);
    for (int colTile = 0; colTile < plan.x.colTiles; ++colTile) {
      const uint32_t stage = ring.stages + turn.stage * T::stageBytes;
      ptx::mbarrier_wait(ring.empty(turn.stage), turn.parity ^ 1);
      if (threadIdx.x == kConsumers)
        copyActivations<T>(plan, stage, ring.full(turn.stage), tile.tokenTile, colTile);
      copyWeights<T>(launch, plan, stage, tile.panelTile * T::panels, colTile);
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

// Starts one stage's products for a warpgroup.
template <class T>
__device__ __forceinline__ void startProducts(float (&sums)[T::panels * 8], uint32_t stage, int group, bool first) {
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < kGemmCols / 16; ++step)
#pragma unroll
    for (int j = 0; j < T::weightParts; ++j) {
      const uint64_t right = ptx::operand(stage + T::weightOffset + j * T::weightBytes + step * 512, kPanelStageBytes,
                                          256, ptx::Swizzle::Bytes32);
#pragma unroll
      for (int i = 0; i < (T::parts < T::most - j ? T::parts : T::most - j); ++i) {
        const uint32_t at = stage + i * static_cast<int>(kActivationTileBytes) + group * 8192 + step * 32;
        ptx::wgmma(sums, ptx::operand(at, 16, 1024, ptx::Swizzle::Bytes128), right, !first || step > 0 || i + j > 0);
      }
    }
  ptx::wgmma_commit_group();
}

// Stores `rows` numbers, at most 4.
__device__ __forceinline__ void storeQuad(float *to, float4 v, int rows) {
  if (rows >= 4 && aligned16(to)) {
    *reinterpret_cast<float4 *>(to) = v;
    return;
  }
  const float values[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (i < rows)
      to[i] = values[i];
}

__device__ __forceinline__ float4 quadAt(const float *piece, int token, int column) {
  return *reinterpret_cast<const float4 *>(piece + token * kPieceStride + column);
}

// A warp's 16 tokens x 32 weight rows from its piece of shared memory, with no activation: residuals are read together,
// before the first result is stored, since they may lie where that goes.
__device__ __forceinline__ void storePlain(const LinearLaunch &launch, const float *piece, int panel, int token) {
  const int lane = threadIdx.x % 32, row = panel * kPanel + lane % 8 * 4, rows = launch.rows - row, first = lane / 8;
  if (rows <= 0)
    return;
  const float4 zero = {0.0f, 0.0f, 0.0f, 0.0f};
  const auto load = [&](const float *from) { return load4(from, 0, rows, aligned16(from)); };
  const float4 bias = launch.bias ? load(launch.bias + row) : zero;
  float4 residuals[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int at = token + first + 4 * k;
    residuals[k] =
        launch.residual && at < launch.tokens ? load(launch.residual + at * launch.residualStride + row) : zero;
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int at = token + first + 4 * k;
    const float4 sum = quadAt(piece, first + 4 * k, lane % 8 * 4);
    const auto finish = [&](float value, float itsBias, float residual) {
      value = __fmul_rn(launch.bias ? __fadd_rn(value, itsBias) : value, launch.scale);
      return launch.residual ? __fadd_rn(value, residual) : value;
    };
    if (at < launch.tokens)
      storeQuad(launch.y + at * launch.yStride + row,
                {finish(sum.x, bias.x, residuals[k].x), finish(sum.y, bias.y, residuals[k].y),
                 finish(sum.z, bias.z, residuals[k].z), finish(sum.w, bias.w, residuals[k].w)},
                rows);
  }
}

// The same with an activation or a gate: 32 weight rows are two panels, or a gate and its up panel.
__device__ __forceinline__ void storeActivated(const LinearLaunch &launch, const float *piece, int panel, int token) {
  const int lane = threadIdx.x % 32, quads = launch.gated ? 4 : 8, column = lane % quads * 4,
            row = (launch.gated ? panel / 2 : panel) * kPanel + column, rows = launch.rows - row;
#pragma unroll 1
  for (int t = lane / quads; t < 16 && rows > 0 && token + t < launch.tokens; t += 32 / quads) {
    const float4 gate = quadAt(piece, t, column), up = quadAt(piece, t, launch.gated ? kPanel + column : column);
    const float gates[4] = {gate.x, gate.y, gate.z, gate.w}, ups[4] = {up.x, up.y, up.z, up.w};
    float values[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      values[i] = i < rows ? finishSums(launch, gates[i], ups[i], column % kPanel + i, row + i, token + t) : 0.0f;
    storeQuad(launch.y + (token + t) * launch.yStride + row, {values[0], values[1], values[2], values[3]}, rows);
  }
}

// Puts the sums of panels 2 `pair` and 2 `pair` + 1 into the warp's piece, [token][row]. A switch, since registers have
// no index at run time.
template <int pair, int count>
__device__ __forceinline__ void putPair(const float (&sums)[count], float *piece, int wanted) {
  if constexpr (pair * 16 < count) {
    if (wanted != pair)
      return putPair<pair + 1>(sums, piece, wanted);
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 16; i += 2)
      *reinterpret_cast<float2 *>(piece + (lane / 4 + i / 2 % 2 * 8) * kPieceStride + i / 4 * 8 +
                                  lane % 4 * 2) = {sums[pair * 16 + i], sums[pair * 16 + i + 1]};
  }
}

// Stores a warp's tile of 16 tokens, two panels at a time.
template <class T>
__device__ __forceinline__ void storeTile(const LinearLaunch &launch, const float (&sums)[T::panels * 8], float *piece,
                                          int panel, int token) {
  const bool plain = !launch.gated && launch.activation == static_cast<int64_t>(Activation::None);
#pragma unroll 1
  for (int pair = 0; pair < T::panels / 2 && panel + 2 * pair < launch.panels; ++pair) {
    putPair<0>(sums, piece, pair);
    __syncwarp();
    if (plain)
      storePlain(launch, piece, panel + 2 * pair, token);
    else
      storeActivated(launch, piece, panel + 2 * pair, token);
    __syncwarp();
  }
}

// Says that this warp has read a stage.
__device__ __forceinline__ void release(uint32_t empty) {
  if (threadIdx.x % 32 == 0)
    ptx::mbarrier_arrive(empty);
}

// A multiplying warp's life.
template <class T>
__device__ __forceinline__ void consume(const LinearLaunch &launch, const GemmPlan &plan, const Ring &ring,
                                        float *pieces, int tiles) {
  const int group = threadIdx.x / 128, warp = threadIdx.x / 32;
  Turn turn;
  float sums[T::panels * 8];
  for (int index = blockIdx.x; index < tiles; index += gridDim.x) {
    int before = -1; // the stage whose products may be under way
    for (int colTile = 0; colTile < plan.x.colTiles; ++colTile) {
      ptx::mbarrier_wait(ring.full(turn.stage), turn.parity);
      startProducts<T>(sums, ring.stages + turn.stage * T::stageBytes, group, colTile == 0);
      if (before >= 0) {
        ptx::wgmma_wait_group<1>();
        release(ring.empty(before));
      }
      before = turn.stage;
      turn.advance(T::stages);
    }
    ptx::wgmma_wait_group<0>();
    ptx::hold(sums);
    release(ring.empty(before));
    const Tile tile = tileAt(plan, index);
    storeTile<T>(launch, sums, pieces + warp * (kPieceBytes / 4), tile.panelTile * T::panels,
                 tile.tokenTile * kGemmTokens + group * 64 + warp % 4 * 16);
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
  if (threadIdx.x == 0) {
    ptx::griddepcontrol_launch_dependents();
    for (int stage = 0; stage < T::stages; ++stage) {
      ptx::mbarrier_init(ring.full(stage), kCopyThreads + 1);
      ptx::mbarrier_init(ring.empty(stage), kConsumerWarps);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  const int tiles = plan.x.tokenTiles * plan.panelTiles;
  if (threadIdx.x >= kConsumers) {
    ptx::setmaxnreg_dec<88>();
    ptx::griddepcontrol_wait();
    produce<T>(launch, plan, ring, tiles);
  } else {
    ptx::setmaxnreg_inc<208>();
    ptx::griddepcontrol_wait();
    consume<T>(launch, plan, ring, reinterpret_cast<float *>(shared + kBarrierBytes), tiles);
  }
#endif
}

template <class T>
Status start(const LinearLaunch &launch, const ActivationTiles &tiles, const WeightPanels &weights,
             cudaStream_t stream) {
  const GemmPlan plan = {tiles, weights, static_cast<int>(divideUp(launch.panels, T::panels))};
  constexpr size_t bytes = kFixedBytes + T::stages * T::stageBytes;
  const auto kernel = linear_gemm_kernel<T>;
  if (const Status status = allowShared(kernel, bytes))
    return status;
  const int turns = tiles.tokenTiles * plan.panelTiles, blocks = multiprocessors();
  return mcc::cuda::launch(kernel, dim3(static_cast<unsigned>(turns < blocks ? turns : blocks)), dim3(kThreads), bytes,
                           stream, launch, plan);
}

// Panels of a tile: the widest tile is the most efficient one, narrower ones may fill the device better.
inline int tilePanels(int64_t tokenTiles, int64_t panels) {
  constexpr int choices[] = {16, 8, 4};
  // Time of a tile relative to its panels.
  constexpr double cost[] = {1.0, 1.2, 1.6};
  int best = choices[0];
  double least = 0;
  for (int i = 0; i < 3; ++i) {
    const int64_t tiles = tokenTiles * divideUp(panels, choices[i]);
    const double time = static_cast<double>(divideUp(tiles, multiprocessors())) * choices[i] * cost[i];
    if (i == 0 || time < least)
      least = time, best = choices[i];
  }
  return best;
}

/// Starts the kernel of these parts.
template <int parts, int weightParts>
Status startGemm(const LinearLaunch &launch, const ActivationTiles &tiles, const WeightPanels &weights,
                 cudaStream_t stream) {
  // Two stages of the widest tile must fit.
  constexpr int widest = parts + 2 * weightParts < 7 ? 16 : 8;
  const int panels = tilePanels(tiles.tokenTiles, launch.panels);
  if (panels >= widest)
    return start<Tiling<widest, parts, weightParts>>(launch, tiles, weights, stream);
  if (panels == 8)
    return start<Tiling<8, parts, weightParts>>(launch, tiles, weights, stream);
  return start<Tiling<4, parts, weightParts>>(launch, tiles, weights, stream);
}

} // namespace mcc::cuda
