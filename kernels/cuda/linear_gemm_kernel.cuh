// The kernel of linear_gemm.cu: a GEMM on warpgroup matrix products, weights from bf16 panels as they are stored.
//
// y^T [rows, tokens] f32 = panels x activations (1 to 3 bf16 parts)^T. A block computes 8 panels x 256 tokens (128 or 64
// where that fills the device better), 64 columns at a time through a ring of shared memory. One warp copies, in
// consecutive bytes only: 16 KiB for 128 tokens of activations, 2 KiB a panel. Two warpgroups multiply 4 panels each, a
// panel a warp: ldmatrix transposes its 16 x 16 pieces to a register operand, one stage ahead of the products; the
// activations are the operand from shared memory. (As an operand in shared memory a panel would have to be swizzled,
// and tensor copies that do so move 32 bytes at a time: 397 TFLOP/s at most, measured.) Parts of a column are added one
// after the other into one accumulator. The two blocks of a cluster take neighbouring panels of the same 256 tokens and
// fetch half of the activations each, for both. Blocks stay and take every n-th tile, tokens first, so that copies of
// the next tile run under the epilogue, which goes through shared memory a warp at a time.
//
// Shared: 48 KiB a stage (1 part, 256 tokens), 4 stages, and 20 KiB of the epilogue. Registers: 232 a multiplying
// thread, 128 of them sums. Expected: 80% of what the tensor cores reach (790 TFLOP/s on H200) over the parts.
#pragma once

#include "kernels/cuda/linear_gemm.cuh"
#include "kernels/cuda/ptx_sm90.cuh"

namespace mcc::cuda {

constexpr int kConsumerWarps = 8, kThreads = 384, kTilePanels = 8, kSteps = kGemmCols / 16;
constexpr int kPanelStageBytes = kGemmCols * 32;
// Tokens of a warp's piece of the epilogue, and floats from one to the next: no bank is met twice.
constexpr int kPieceTokens = 32, kPieceStride = 20, kPieceBytes = kPieceTokens * kPieceStride * 4;
constexpr int kMaxStages = 8;
constexpr int kSharedBytes = 227 * 1024;
// Barriers, 16 zero bytes, the epilogue's pieces, then stages at a multiple of 1 KiB.
constexpr int kZeroBytes = 16, kBarrierBytes = 2 * kMaxStages * 8;
constexpr int kFixedBytes = kBarrierBytes + kZeroBytes + kConsumerWarps * kPieceBytes + 1024;
// Barriers of the block: one for each pair of warps.
constexpr uint32_t kPairBarrier = 1;
// Tiles of 128 tokens that are taken together, panels by panels: their activations stay in the second-level cache.
constexpr int kTokenTilesTogether = 16;

// A kernel's constants: tokens of a tile, blocks of a cluster, parts of an activation and of a weight.
template <int kTokens, int kCluster, int kParts, int kWeightParts>
struct Tiling {
  static constexpr int tokens = kTokens, cluster = kCluster, parts = kParts, weightParts = kWeightParts;
  // Parts i and j of a product with i + j < most are multiplied.
  static constexpr int most = parts > weightParts ? parts : weightParts;
  static constexpr int activationBytes = tokens * kGemmCols * 2; // of a part
  static constexpr int weightOffset = parts * activationBytes, weightBytes = kTilePanels * kPanelStageBytes;
  static constexpr int stageBytes = weightOffset + weightParts * weightBytes;
  static constexpr int room = (kSharedBytes - kFixedBytes) / stageBytes;
  static constexpr int stages = room < kMaxStages ? room : kMaxStages;
  static_assert(stages >= 2 && (cluster == 1 || (cluster == 2 && tokens == 256)));
};

struct GemmPlan {
  ActivationTiles x;
  WeightPanels weights;
  int tokenTiles, panelTiles; // of the kernel's size; panelTiles a multiple of the cluster
};

// Where a tile lies.
struct Tile {
  int tokenTile, panelTile;
};

// The tile of a cluster's turn: groups of tiles of tokens, in a group panels by panels; neighbours of a cluster have
// the same tokens.
template <class T>
__device__ __forceinline__ Tile tileAt(const GemmPlan &plan, int turn, uint32_t rank) {
  constexpr int most = kTokenTilesTogether * kGemmTokens / T::tokens;
  const int panelTurns = plan.panelTiles / T::cluster, perGroup = most * panelTurns, group = turn / perGroup,
            together = min(most, plan.tokenTiles - group * most), inGroup = turn - group * perGroup;
  return {group * most + inGroup % together, inGroup / together * T::cluster + static_cast<int>(rank)};
}

#ifdef MCC_SM90A

// The block's ring and barriers, by shared address.
struct Ring {
  uint32_t barriers, zeros, pieces, stages;
  __device__ explicit Ring(uint32_t base)
      : barriers(base), zeros(base + kBarrierBytes), pieces(zeros + kZeroBytes),
        stages((pieces + kConsumerWarps * kPieceBytes + 1023) / 1024 * 1024) {}
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

// A stage's activations: this block's, or its half of the cluster's to both.
template <class T>
__device__ __forceinline__ void copyActivations(const GemmPlan &plan, uint32_t stage, uint32_t full, int tokenTile,
                                                int colTile, uint32_t rank) {
  // In units of the workspace's tiles, 128 tokens; of an absent tile the last one is as good.
  const int first = tokenTile * T::tokens / kGemmTokens, half = tokenTile * T::tokens % kGemmTokens;
  for (int part = 0; part < T::parts; ++part)
    for (int k = 0; k < (T::tokens + kGemmTokens - 1) / kGemmTokens; ++k) {
      if (T::cluster == 2 && k != static_cast<int>(rank))
        continue;
      const int64_t tile = (static_cast<int64_t>(part) * plan.x.tokenTiles + min(first + k, plan.x.tokenTiles - 1)) *
                               plan.x.colTiles +
                           colTile;
      const uint16_t *from = plan.x.tiles + tile * (kActivationTileBytes / 2) + half * kGemmCols;
      constexpr int bytes = T::tokens < kGemmTokens ? T::activationBytes : static_cast<int>(kActivationTileBytes);
      const uint32_t to = stage + part * T::activationBytes + k * bytes;
      if constexpr (T::cluster == 2)
        ptx::cp_async_bulk(to, from, bytes, full, 3);
      else
        ptx::cp_async_bulk(to, from, bytes, full);
    }
}

// The copying warp's life.
template <class T>
__device__ __forceinline__ void produce(const LinearLaunch &launch, const GemmPlan &plan, const Ring &ring, int first,
                                        int step, int turns, uint32_t rank) {
  const int lane = threadIdx.x % 32, part = lane / kTilePanels, p = lane % kTilePanels;
  Turn turn;
  for (int index = first; index < turns; index += step) {
    const Tile tile = tileAt<T>(plan, index, rank);
    const int panels = min(kTilePanels, launch.panels - tile.panelTile * kTilePanels);
    const int64_t panel = static_cast<int64_t>(part) * plan.weights.count + tile.panelTile * kTilePanels + p;
    const uint8_t *from = plan.weights.panels + panel * plan.weights.panelBytes;
    for (int colTile = 0; colTile < plan.x.colTiles; ++colTile) {
      const uint32_t stage = ring.stages + turn.stage * T::stageBytes, full = ring.full(turn.stage);
      const int bytes = min(kGemmCols, launch.cols - colTile * kGemmCols) * 32;
      ptx::mbarrier_wait(ring.empty(turn.stage), turn.parity ^ 1);
      if (lane == 0) {
        ptx::mbarrier_arrive_expect_tx(full, T::weightOffset + max(panels, 0) * T::weightParts * bytes);
        copyActivations<T>(plan, stage, full, tile.tokenTile, colTile, rank);
      }
      __syncwarp();
      if (part < T::weightParts && p < panels)
        ptx::cp_async_bulk(stage + T::weightOffset + part * T::weightBytes + p * kPanelStageBytes,
                           from + colTile * int64_t{kPanelStageBytes}, bytes, full);
      turn.advance(T::stages);
    }
  }
}

// A warp's panel of a stage: 16 rows x 64 columns in 16 x 16 pieces, as the products' register operand.
template <class T>
struct Fragments {
  uint32_t piece[T::weightParts][kSteps][4];

  // `columns` of the stage exist. Of a matrix of 8 columns the upper four come from the other half of the rows, so that
  // its 16-byte rows lie in different banks; then lanes exchange what is theirs.
  __device__ __forceinline__ void load(uint32_t panel, int columns, uint32_t zeros) {
    const int lane = threadIdx.x % 32, inStep = lane % 8 + lane / 16 * 8, half = (lane / 8 ^ lane / 4) % 2;
#pragma unroll
    for (int j = 0; j < T::weightParts; ++j)
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const int column = step * 16 + inStep;
        uint32_t(&out)[4] = piece[j][step];
        uint32_t in[4];
        ptx::ldmatrix_x4_trans(in, column < columns ? panel + j * T::weightBytes + column * 32 + half * 16 : zeros);
        const bool exchanged = lane % 4 >= 2;
        out[0] = exchanged ? in[1] : in[0], out[1] = exchanged ? in[0] : in[1];
        out[2] = exchanged ? in[3] : in[2], out[3] = exchanged ? in[2] : in[3];
      }
  }
};

// Starts one stage's products for a warpgroup.
template <class T>
__device__ __forceinline__ void startProducts(float (&sums)[T::tokens / 2], const Fragments<T> &weights, uint32_t stage,
                                              bool first) {
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < kSteps; ++step)
#pragma unroll
    for (int j = 0; j < T::weightParts; ++j)
#pragma unroll
      for (int i = 0; i < (T::parts < T::most - j ? T::parts : T::most - j); ++i)
        ptx::wgmma<0>(sums, weights.piece[j][step],
                      ptx::operand(stage + i * T::activationBytes + step * 32, 16, 1024, ptx::Swizzle::Bytes128),
                      !first || step > 0 || i + j > 0);
  ptx::wgmma_commit_group();
}

// Four consecutive rows of a token but for the residual: bias, activation, gate and scale as finishSums.
__device__ __forceinline__ float4 finishQuad(const LinearLaunch &launch, float4 sum, float4 up, int inPanel, int row) {
  const float sums[4] = {sum.x, sum.y, sum.z, sum.w}, ups[4] = {up.x, up.y, up.z, up.w};
  LinearLaunch part = launch;
  part.residual = nullptr;
  float values[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    values[i] = row + i < launch.rows ? finishSums(part, sums[i], ups[i], inPanel + i, row + i, 0) : 0.0f;
  return {values[0], values[1], values[2], values[3]};
}

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

// Stores 32 tokens of a panel, or of a gate and its up panel, of which each of two warps takes 16 tokens. `gate` and
// `up` are in shared memory.
template <bool gated>
__device__ __forceinline__ void storePiece(const LinearLaunch &launch, const float *gate, const float *up, int panel,
                                           int token) {
  constexpr int kQuads = gated ? 2 : 4;
  const int lane = threadIdx.x % 32, inPanel = lane % 4 * 4, row = (gated ? panel / 2 : panel) * kPanel + inPanel,
            first = lane / 4 + (gated ? panel % 2 * 16 : 0), rows = launch.rows - row;
  if (rows <= 0)
    return;
  float4 residual[kQuads];
#pragma unroll
  for (int k = 0; k < kQuads; ++k) {
    residual[k] = {0.0f, 0.0f, 0.0f, 0.0f};
    const int at = token + first + k * 8;
    if (launch.residual && at < launch.tokens) {
      const float *from = launch.residual + at * launch.residualStride + row;
      residual[k] = load4(from, 0, rows, aligned16(from));
    }
  }
#pragma unroll
  for (int k = 0; k < kQuads; ++k) {
    const int inPiece = first + k * 8, at = token + inPiece;
    const float4 sum = *reinterpret_cast<const float4 *>(gate + inPiece * kPieceStride + inPanel);
    float4 v = finishQuad(launch, sum, gated ? *reinterpret_cast<const float4 *>(up + inPiece * kPieceStride + inPanel) : sum,
                          inPanel, row);
    if (launch.residual)
      v = {__fadd_rn(v.x, residual[k].x), __fadd_rn(v.y, residual[k].y), __fadd_rn(v.z, residual[k].z),
           __fadd_rn(v.w, residual[k].w)};
    if (at < launch.tokens)
      storeQuad(launch.y + at * launch.yStride + row, v, rows);
  }
}

// Stores a warp's tile, 32 tokens at a time through its piece of shared memory, where lanes put theirs as [token][row].
template <class T>
__device__ __forceinline__ void storeTile(const LinearLaunch &launch, const float (&sums)[T::tokens / 2], float *pieces,
                                          int panel, int token) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float *piece = pieces + warp * (kPieceBytes / 4);
  const auto meet = [&] {
    if (launch.gated)
      ptx::bar_sync(kPairBarrier + warp / 2, 64);
    else
      __syncwarp();
  };
#pragma unroll
  for (int chunk = 0; chunk < T::tokens / kPieceTokens; ++chunk) {
#pragma unroll
    for (int i = 0; i < 16; ++i)
      piece[(i / 4 * 8 + lane % 4 * 2 + i % 2) * kPieceStride + lane / 4 + i / 2 % 2 * 8] = sums[chunk * 16 + i];
    meet();
    if (launch.gated)
      storePiece<true>(launch, pieces + warp / 2 * (kPieceBytes / 2), pieces + (warp | 1) * (kPieceBytes / 4), panel,
                       token + chunk * kPieceTokens);
    else
      storePiece<false>(launch, piece, piece, panel, token + chunk * kPieceTokens);
    meet();
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

// A multiplying warp's way through the ring.
template <class T>
struct Consumer {
  const LinearLaunch &launch;
  const GemmPlan &plan;
  const Ring &ring;
  Turn turn;
  int before = -1; // the stage whose products are under way
  float sums[T::tokens / 2];

  __device__ __forceinline__ uint32_t stage() const { return ring.stages + turn.stage * T::stageBytes; }

  // Waits for the stage of column tile `colTile` and loads this warp's weights.
  __device__ __forceinline__ void load(Fragments<T> &weights, int colTile) const {
    ptx::mbarrier_wait(ring.full(turn.stage), turn.parity);
    weights.load(stage() + T::weightOffset + threadIdx.x / 32 * kPanelStageBytes, launch.cols - colTile * kGemmCols,
                 ring.zeros);
  }

  // Multiplies the stage whose weights `now` holds and loads those of the next into `next`.
  __device__ __forceinline__ void advance(const Fragments<T> &now, Fragments<T> &next, int colTile) {
    startProducts<T>(sums, now, stage(), colTile == 0);
    ptx::wgmma_wait_group<1>();
    if (before >= 0)
      release<T>(ring.empty(before));
    before = turn.stage;
    turn.advance(T::stages);
    if (colTile + 1 < plan.x.colTiles)
      load(next, colTile + 1);
  }

  __device__ __forceinline__ void multiplyTile() {
    Fragments<T> even, odd;
    load(even, 0);
    for (int colTile = 0; colTile < plan.x.colTiles; colTile += 2) {
      advance(even, odd, colTile);
      if (colTile + 1 < plan.x.colTiles)
        advance(odd, even, colTile + 1);
    }
    ptx::wgmma_wait_group<0>();
    ptx::hold(sums);
    release<T>(ring.empty(before));
    before = -1;
  }
};

#endif // MCC_SM90A

// Grid: clusters that stay; two multiplying warpgroups and one that copies.
template <class T>
__global__ __launch_bounds__(kThreads, 1) void linear_gemm_kernel(const __grid_constant__ LinearLaunch launch,
                                                                  const __grid_constant__ GemmPlan plan) {
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
    *reinterpret_cast<uint4 *>(shared + kBarrierBytes) = {0, 0, 0, 0};
  }
  if constexpr (T::cluster == 1)
    __syncthreads();
  else
    ptx::barrier_cluster();
  const int turns = plan.tokenTiles * plan.panelTiles / T::cluster, first = blockIdx.x / T::cluster,
            step = gridDim.x / T::cluster;
  if (threadIdx.x >= kConsumerWarps * 32) {
    ptx::setmaxnreg_dec<40>();
    if (threadIdx.x < kConsumerWarps * 32 + 32) {
      ptx::griddepcontrol_wait();
      produce<T>(launch, plan, ring, first, step, turns, rank);
    }
  } else {
    ptx::setmaxnreg_inc<232>();
    ptx::griddepcontrol_wait();
    Consumer<T> consumer = {launch, plan, ring};
    for (int index = first; index < turns; index += step) {
      consumer.multiplyTile();
      const Tile tile = tileAt<T>(plan, index, rank);
      storeTile<T>(launch, consumer.sums, reinterpret_cast<float *>(shared + kBarrierBytes + kZeroBytes),
                   tile.panelTile * kTilePanels + threadIdx.x / 32, tile.tokenTile * T::tokens);
    }
  }
  // A block's shared memory must outlive its neighbour's copies and arrivals.
  if constexpr (T::cluster > 1) {
    __syncwarp();
    ptx::barrier_cluster();
  }
#endif
}

template <class T>
Status start(const LinearLaunch &launch, const ActivationTiles &tiles, const WeightPanels &weights,
             cudaStream_t stream) {
  const GemmPlan plan = {tiles, weights, static_cast<int>(divideUp(launch.tokens, T::tokens)),
                         static_cast<int>(divideUp(launch.panels, kTilePanels * T::cluster) * T::cluster)};
  constexpr size_t bytes = kFixedBytes + T::stages * T::stageBytes;
  const auto kernel = linear_gemm_kernel<T>;
  if (const Status status = allowShared(kernel, bytes))
    return status;
  const int64_t turns = static_cast<int64_t>(plan.tokenTiles) * plan.panelTiles,
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
  return cudaLaunchKernelEx(&config, kernel, launch, plan);
}

// Tokens of a tile: the widest tile is the most efficient one, narrower ones may fill the device better.
inline int tileTokens(int64_t tokens, int64_t panels, int widest) {
  if (tokens <= 64)
    return 64;
  const auto time = [&](int64_t wide) {
    const int64_t tiles = divideUp(tokens, wide) * divideUp(panels, kTilePanels);
    return divideUp(tiles, multiprocessors()) * wide;
  };
  // A tile of 128 tokens takes more than half of the time of one of 256.
  return widest == 256 && time(256) * 5 <= time(128) * 6 ? 256 : 128;
}

/// Starts the kernel of these parts.
template <int parts, int weightParts>
Status startGemm(const LinearLaunch &launch, const ActivationTiles &tiles, const WeightPanels &weights,
                 cudaStream_t stream) {
  // What two stages in shared memory and the operands in registers leave room for.
  constexpr int widest = parts + weightParts <= 3 && weightParts == 1 ? 256 : 128;
  switch (tileTokens(launch.tokens, launch.panels, widest)) {
  case 256:
    return start<Tiling<widest, widest == 256 ? 2 : 1, parts, weightParts>>(launch, tiles, weights, stream);
  case 128:
    return start<Tiling<128, 1, parts, weightParts>>(launch, tiles, weights, stream);
  default:
    return start<Tiling<64, 1, parts, weightParts>>(launch, tiles, weights, stream);
  }
}

} // namespace mcc::cuda
