// `linear` for many tokens in bf16: a tiled GEMM on tensor cores straight from packed panels.
//
// A block computes 128 weight rows (8 panels) x 128 tokens, 64 columns at a time through three stages of shared memory
// filled by cp.async. Eight warps of 32 rows x 64 tokens; a gate and its up panel fall to one warp. Panels are an
// operand with consecutive rows, which ldmatrix transposes. Activations come as 1 to 3 bf16 planes (split.cuh) written
// by a kernel before: 1 rounds them, 2 keep 16 bits, 3 all. Planes of a column are added one after the other into one
// accumulator.
//
// 16-byte pieces are swizzled so that ldmatrix meets no bank twice. 96 KiB shared (1 plane), two blocks a
// multiprocessor. Expected: half of the tensor cores' rate at one plane, that over the planes else.
#include "kernels/cuda/linear_epilogue.cuh"
#include "kernels/cuda/split.cuh"

namespace mcc::cuda {

namespace {

constexpr int kTileRows = 128, kTileTokens = 128, kTileCols = 64, kTileThreads = 256, kStages = 3;
constexpr int kTilePanels = kTileRows / kPanel;
constexpr int kWeightBytes = kTileRows * kTileCols * 2, kPlaneBytes = kTileTokens * kTileCols * 2;

// What the multiplying kernel reads besides the launch.
struct Planes {
  const uint16_t *rows; // [plane][token][stride]
  int64_t stride;       // a multiple of kTileCols, zeros from `cols` on
};

// Address of a 16-byte piece of the weights' stage: 8 rows of column `column` of panel `panel`.
__device__ __forceinline__ uint32_t weightPiece(uint32_t stage, int panel, int column, int half) {
  return stage + (panel * kTileCols + column) * 32 + (half ^ (column >> 2 & 1)) * 16;
}

// Address of 8 columns of a token.
__device__ __forceinline__ uint32_t planePiece(uint32_t plane, int token, int eighth) {
  return plane + token * (kTileCols * 2) + (eighth ^ (token & 7)) * 16;
}

template <int planes>
__device__ __forceinline__ void loadStage(const LinearLaunch &launch, const Planes &x, uint32_t stage, int panel,
                                          int token, int column) {
  for (int i = threadIdx.x; i < kWeightBytes / 16; i += kTileThreads) {
    const int half = i % 2, c = i / 2 % kTileCols, p = i / 2 / kTileCols;
    const bool present = panel + p < launch.panels && column + c < launch.cols;
    const uint8_t *from =
        present ? launch.weight + (panel + p) * launch.panelBytes + static_cast<int64_t>(column + c) * 32 + half * 16
                : launch.weight;
    ptx::cp_async_or_zero(weightPiece(stage, p, c, half), from, present);
  }
#pragma unroll
  for (int plane = 0; plane < planes; ++plane)
    for (int i = threadIdx.x; i < kPlaneBytes / 16; i += kTileThreads) {
      const int eighth = i % 8, t = i / 8;
      const bool present = token + t < launch.tokens;
      const int64_t row = static_cast<int64_t>(plane) * launch.tokens + (present ? token + t : 0);
      ptx::cp_async_or_zero(planePiece(stage + kWeightBytes + plane * kPlaneBytes, t, eighth),
                            x.rows + row * x.stride + column + eighth * 8, present);
    }
}

// One stage's products for a warp: panels 2 `across`, 2 `across` + 1 and tokens from 64 `down`.
template <int planes>
__device__ __forceinline__ void multiplyStage(uint32_t stage, int across, int down, int lane, float (&sums)[2][8][4]) {
#pragma unroll
  for (int column = 0; column < kTileCols; column += 16) {
    uint32_t weights[2][4];
#pragma unroll
    for (int p = 0; p < 2; ++p)
      ptx::ldmatrix_x4_trans(weights[p],
                             weightPiece(stage, across * 2 + p, column + lane % 8 + lane / 16 * 8, lane / 8 % 2));
#pragma unroll
    for (int plane = 0; plane < planes; ++plane)
#pragma unroll
      for (int pair = 0; pair < 4; ++pair) {
        // Matrices: tokens 0-7 and 8-15 of the pair, columns 0-7, then 8-15.
        uint32_t x[4];
        ptx::ldmatrix_x4(x, planePiece(stage + kWeightBytes + plane * kPlaneBytes, down * 64 + pair * 16 + lane % 16,
                                       column / 8 + lane / 16));
#pragma unroll
        for (int p = 0; p < 2; ++p) {
          ptx::mma_m16n8k16(sums[p][2 * pair], weights[p], x[0], x[2]);
          ptx::mma_m16n8k16(sums[p][2 * pair + 1], weights[p], x[1], x[3]);
        }
      }
  }
}

// Stores a warp's outputs.
__device__ __forceinline__ void finishTile(const LinearLaunch &launch, int panel, int token, int lane,
                                           const float (&sums)[2][8][4]) {
  const int perUnit = launch.gated ? 2 : 1;
#pragma unroll
  for (int p = 0; p < 2; ++p) {
    if (launch.gated && p == 1)
      continue;
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int inPanel = lane / 4 + i / 2 * 8, row = (panel + p) / perUnit * kPanel + inPanel;
        const int t = token + n * 8 + lane % 4 * 2 + i % 2;
        if (panel + p < launch.panels && row < launch.rows && t < launch.tokens)
          launch.y[t * launch.yStride + row] = finishSums(launch, sums[p][n][i], sums[1][n][i], inPanel, row, t);
      }
  }
}

// Grid: (tiles of tokens, tiles of rows).
template <int planes>
__global__ __launch_bounds__(kTileThreads,
                             planes == 1 ? 2 : 1) void linear_tile_kernel(const __grid_constant__ LinearLaunch launch,
                                                                          const __grid_constant__ Planes x) {
  extern __shared__ __align__(128) uint8_t shared[];
  constexpr int stageBytes = kWeightBytes + planes * kPlaneBytes;
  const uint32_t base = ptx::shared_address(shared);
  const int panel = blockIdx.y * kTilePanels, token = blockIdx.x * kTileTokens;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, across = warp % 4, down = warp / 4;
  const int stages = static_cast<int>(divideUp(launch.cols, kTileCols));
  if (threadIdx.x == 0)
    ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  float sums[2][8][4] = {};
#pragma unroll
  for (int ahead = 0; ahead < kStages - 1; ++ahead) {
    if (ahead < stages)
      loadStage<planes>(launch, x, base + ahead * stageBytes, panel, token, ahead * kTileCols);
    ptx::cp_async_commit_group();
  }
  for (int stage = 0; stage < stages; ++stage) {
    ptx::cp_async_wait_group<kStages - 2>();
    __syncthreads();
    const int next = stage + kStages - 1;
    if (next < stages)
      loadStage<planes>(launch, x, base + next % kStages * stageBytes, panel, token, next * kTileCols);
    ptx::cp_async_commit_group();
    multiplyStage<planes>(base + stage % kStages * stageBytes, across, down, lane, sums);
  }
  finishTile(launch, panel + across * 2, token + down * 64, lane, sums);
}

// One block a token: normalised and split into planes.
__global__ __launch_bounds__(kRowThreads) void split_planes_kernel(Norm norm, const float *x, uint16_t *rows, int cols,
                                                                   int64_t xStride, int64_t stride, int tokens,
                                                                   int planes) {
  __shared__ float scratch[kRowThreads / 16];
  if (threadIdx.x == 0)
    ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  const int64_t token = blockIdx.x;
  const auto put = [&](int64_t column, float4 v) {
    const Parts parts[4] = {split(v.x), split(v.y), split(v.z), split(v.w)};
    for (int plane = 0; plane < planes; ++plane)
      *reinterpret_cast<ushort4 *>(rows + (plane * static_cast<int64_t>(tokens) + token) * stride + column) = {
          parts[0].part[plane], parts[1].part[plane], parts[2].part[plane], parts[3].part[plane]};
  };
  normalise_row(norm, x + token * xStride, cols, scratch, threadIdx.x, put);
  for (int64_t column = divideUp(cols, 4) * 4 + 4 * threadIdx.x; column < stride; column += 4 * kRowThreads)
    put(column, {0.0f, 0.0f, 0.0f, 0.0f});
}

template <int planes>
Status start(const LinearLaunch &launch, const Planes &x, cudaStream_t stream) {
  constexpr size_t bytes = kStages * (kWeightBytes + planes * kPlaneBytes);
  const auto kernel = linear_tile_kernel<planes>;
  if (const Status status = allowShared(kernel, bytes))
    return status;
  const dim3 grid(static_cast<unsigned>(divideUp(launch.tokens, kTileTokens)),
                  static_cast<unsigned>(divideUp(launch.panels, kTilePanels)));
  return mcc::cuda::launch(kernel, grid, dim3(kTileThreads), bytes, stream, launch, x);
}

} // namespace

int64_t tileWorkspaceBytes(int64_t tokens, int64_t cols, int planes) {
  return planes * tokens * divideUp(cols, kTileCols) * kTileCols * 2;
}

Status launchTiles(const LinearLaunch &launch, int planes, uint8_t *workspace, cudaStream_t stream) {
  const int64_t stride = divideUp(launch.cols, kTileCols) * kTileCols;
  uint16_t *rows = reinterpret_cast<uint16_t *>(workspace);
  if (const Status status = mcc::cuda::launch(split_planes_kernel, dim3(static_cast<unsigned>(launch.tokens)),
                                              dim3(kRowThreads), 0, stream, launch.norm, launch.x, rows, launch.cols,
                                              launch.xStride, stride, launch.tokens, planes))
    return status;
  switch (planes) {
  case 1:
    return start<1>(launch, {rows, stride}, stream);
  case 2:
    return start<2>(launch, {rows, stride}, stream);
  default:
    return start<3>(launch, {rows, stride}, stream);
  }
}

} // namespace mcc::cuda
