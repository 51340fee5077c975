// `linear` for many tokens: the operands of the GEMM (linear_gemm.cu), in the workspace, and its launches.
//
// Activations are normalised and split once, a block a token, into the tiles that the GEMM's shared memory holds.
// Weights in bf16 are multiplied where they are. Of every other format a stretch of panels at a time is turned into
// bf16, one part that rounds them where activations are rounded too, otherwise two that keep 16 bits (all of an f16's
// 11, of a quant times its scale at least as many as the products need); the stretch is as long as fills whole rounds
// of the device's tiles within kScratchBytes, most of which stays in the second-level cache.
#include "kernels/cuda/linear_gemm.cuh"
#include "kernels/cuda/panel_decode.cuh"
#include "kernels/cuda/split.cuh"

namespace mcc::cuda {

namespace {

// Bytes of unpacked weights, unless 32 panels take more.
constexpr int64_t kScratchBytes = int64_t{64} << 20;
constexpr int kLeastPanels = 32, kUnpackThreads = 256;

// Where 8 columns of a token lie in the tiles.
__device__ __forceinline__ uint4 *placeOf(const ActivationTiles &to, int part, int token, int column) {
  const int inTile = token % kGemmTokens, piece = column % kGemmCols / 8 ^ inTile % 8,
            row = part * to.tokenTiles + token / kGemmTokens;
  const int64_t tile = static_cast<int64_t>(row) * to.colTiles + column / kGemmCols;
  return reinterpret_cast<uint4 *>(to.tiles + (tile * kGemmTokens + inTile) * kGemmCols + piece * 8);
}

// Splits 8 columns of a token into the tiles. `kParts` is to.parts, so that parts stay in registers and those that
// nobody asks for are not computed.
template <int kParts>
__device__ __forceinline__ void storeEight(const ActivationTiles &to, int token, int column, const float (&values)[8]) {
  uint16_t bits[kParts][8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const Parts parts = split(values[i]);
#pragma unroll
    for (int part = 0; part < kParts; ++part)
      bits[part][i] = parts.part[part];
  }
#pragma unroll
  for (int part = 0; part < kParts; ++part)
    *placeOf(to, part, token, column) = eightOf(bits[part]);
}

// Eight neighbours of a row, zeros from `cols` on; `aligned` where 16-byte loads are possible.
__device__ __forceinline__ void loadEight(const float *row, int column, int cols, bool aligned, float (&values)[8]) {
  const float4 first = load4(row, column, cols, aligned), second = load4(row, column + 4, cols, aligned);
  values[0] = first.x, values[1] = first.y, values[2] = first.z, values[3] = first.w;
  values[4] = second.x, values[5] = second.y, values[6] = second.z, values[7] = second.w;
}

// A row of kHeldColumns columns, or the beginning of a longer one, stays in registers between the passes of its norm.
constexpr int kHeldEights = 2, kRowEights = kRowThreads * 8, kHeldColumns = kHeldEights * kRowEights;

// A thread's columns of the first `width` of a row of `cols`, by eights: those held, then those that are read again.
template <class Use>
__device__ __forceinline__ void forEights(const float *row, int cols, int width, bool aligned,
                                          float (&held)[kHeldEights][8], Use use) {
  const int mine = threadIdx.x * 8;
#pragma unroll
  for (int k = 0; k < kHeldEights; ++k)
    use(k * kRowEights + mine, held[k]);
#pragma unroll 1
  for (int column = kHeldColumns + mine; column < width; column += kRowEights) {
    float values[8];
    loadEight(row, column, cols, aligned, values);
    use(column, values);
  }
}

// Mean (0 for RMS) and factor of a row's norm, by the block's kRowThreads threads in a fixed order.
__device__ __forceinline__ float2 statisticsOf(const Norm &norm, const float *row, int cols, bool aligned,
                                               float (&held)[kHeldEights][8], float *scratch) {
  float mean = 0.0f, sum = 0.0f, squares = 0.0f;
  if (norm.kind == 1) {
    forEights(row, cols, cols, aligned, held, [&](int, const float (&values)[8]) {
#pragma unroll
      for (int i = 0; i < 8; ++i)
        sum = __fadd_rn(sum, values[i]);
    });
    mean = row_sum(sum, scratch, threadIdx.x) / static_cast<float>(cols);
  }
  forEights(row, cols, cols, aligned, held, [&](int column, const float (&values)[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float apart = column + i < cols ? values[i] - mean : 0.0f;
      squares = fmaf(apart, apart, squares);
    }
  });
  return {mean, 1.0f / sqrtf(row_sum(squares, scratch + kRowThreads / 32, threadIdx.x) / static_cast<float>(cols) + norm.eps)};
}

// One block a token of the tiles: normalised, split, zeros where there is no token or column.
template <int kParts>
__global__ __launch_bounds__(kRowThreads, 4) void activation_tiles_kernel(Norm norm, const float *x, ActivationTiles to,
                                                                          int cols, int64_t xStride, int tokens) {
  __shared__ float scratch[kRowThreads / 16];
  if (threadIdx.x == 0)
    ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  const int token = blockIdx.x, width = to.colTiles * kGemmCols, mine = threadIdx.x * 8;
  const float *row = x + token * xStride;
  // A padding token's row is as if it had no columns: zeros.
  const int present = token < tokens ? cols : 0;
  const bool aligned = aligned16(row);
  float held[kHeldEights][8];
#pragma unroll
  for (int k = 0; k < kHeldEights; ++k)
    loadEight(row, k * kRowEights + mine, present, aligned, held[k]);
  float2 statistics = {0.0f, 1.0f};
  if (norm.kind < 0)
    norm.weight = norm.bias = nullptr;
  else if (present > 0)
    statistics = statisticsOf(norm, row, present, aligned, held, scratch);
  const bool weightAligned = aligned16(norm.weight), biasAligned = aligned16(norm.bias);
  forEights(row, present, width, aligned, held, [&](int column, float (&values)[8]) {
    if (column >= width)
      return;
    float weights[8], biases[8];
    if (norm.weight)
      loadEight(norm.weight, column, present, weightAligned, weights);
    if (norm.bias)
      loadEight(norm.bias, column, present, biasAligned, biases);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      float value = (values[i] - statistics.x) * statistics.y;
      value = norm.weight ? __fmul_rn(value, weights[i]) : value;
      value = norm.bias ? __fadd_rn(value, biases[i]) : value;
      values[i] = column + i < present ? value : 0.0f;
    }
    storeEight<kParts>(to, token, column, values);
  });
}

// The same without a norm: a thread takes 8 columns of a token. Grid: (blocks of eights, tokens of the tiles).
template <int kParts>
__global__ __launch_bounds__(kUnpackThreads) void plain_tiles_kernel(const float *x, ActivationTiles to, int cols,
                                                                     int64_t xStride, int tokens) {
  if (threadIdx.x == 0)
    ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  const int column = (blockIdx.x * kUnpackThreads + threadIdx.x) * 8, token = blockIdx.y;
  if (column >= to.colTiles * kGemmCols)
    return;
  float values[8] = {};
  if (token < tokens) {
    const float *row = x + token * xStride;
    loadEight(row, column, cols, aligned16(row), values);
  }
  storeEight<kParts>(to, token, column, values);
}

// Panels of a format to panels of bf16. Grid: (blocks of half columns, panels).
template <class PanelFormat>
__global__ __launch_bounds__(kUnpackThreads) void unpack_panels_kernel(const uint8_t *from, int64_t fromBytes,
                                                                       uint8_t *to, int64_t toBytes, int64_t partBytes,
                                                                       int parts, int cols) {
  if (threadIdx.x == 0)
    ptx::griddepcontrol_launch_dependents();
  const int half = blockIdx.x * kUnpackThreads + threadIdx.x, column = half / 2, row = half % 2 * 8;
  uint16_t values[2][8];
  if (column < cols) {
    const uint8_t *panel = from + blockIdx.y * fromBytes;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const Parts two = split(PanelFormat::value(panel, row + i, column));
      values[0][i] = two.part[0], values[1][i] = two.part[1];
    }
  }
  ptx::griddepcontrol_wait();
  if (column >= cols)
    return;
#pragma unroll
  for (int part = 0; part < 2; ++part)
    if (part < parts)
      *reinterpret_cast<uint4 *>(to + part * partBytes + blockIdx.y * toBytes + half * int64_t{16}) =
          eightOf(values[part]);
}

template <int kParts>
Status launchActivations(const LinearLaunch &launch, const ActivationTiles &tiles, cudaStream_t stream) {
  const unsigned tokens = static_cast<unsigned>(tiles.tokenTiles * kGemmTokens);
  if (launch.norm.kind < 0 && tokens <= 65535)
    return mcc::cuda::launch(
        plain_tiles_kernel<kParts>,
        dim3(static_cast<unsigned>(divideUp(int64_t{tiles.colTiles} * kGemmCols / 8, kUnpackThreads)), tokens),
        dim3(kUnpackThreads), 0, stream, launch.x, tiles, launch.cols, launch.xStride, launch.tokens);
  return mcc::cuda::launch(activation_tiles_kernel<kParts>, dim3(tokens), dim3(kRowThreads), 0, stream, launch.norm,
                           launch.x, tiles, launch.cols, launch.xStride, launch.tokens);
}

Status launchActivations(const LinearLaunch &launch, const ActivationTiles &tiles, cudaStream_t stream) {
  return tiles.parts == 1   ? launchActivations<1>(launch, tiles, stream)
         : tiles.parts == 2 ? launchActivations<2>(launch, tiles, stream)
                            : launchActivations<3>(launch, tiles, stream);
}

Status launchUnpack(Format format, const LinearLaunch &launch, uint8_t *to, int64_t toBytes, int parts,
                    cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(divideUp(int64_t{2} * launch.cols, kUnpackThreads)),
                  static_cast<unsigned>(launch.panels));
  return withPanelFormat(format, [&]<class PanelFormat>() {
    return mcc::cuda::launch(unpack_panels_kernel<PanelFormat>, grid, dim3(kUnpackThreads), 0, stream, launch.weight,
                             launch.panelBytes, to, toBytes, toBytes * launch.panels, parts, launch.cols);
  });
}

int weightPartsOf(int parts) { return parts > 1 ? 2 : 1; }

// Bytes of a panel's column in the scratch, and panels that it holds.
int64_t scratchPanels(int64_t cols, int weightParts) {
  const int64_t fit = kScratchBytes / (cols * 32 * weightParts) / kLeastPanels * kLeastPanels;
  return fit > kLeastPanels ? fit : kLeastPanels;
}

// Panels of a stretch: whole tiles, as many as fit, and of those numbers the one that leaves least of the device idle.
int64_t stretchPanels(int64_t tokenTiles, int64_t panels, int64_t most) {
  if (panels <= most)
    return panels;
  int64_t best = most;
  double highest = 0;
  for (int64_t count = kLeastPanels; count <= most; count += kLeastPanels) {
    const int64_t tiles = tokenTiles * (count / 16), rounds = divideUp(tiles, multiprocessors());
    const double busy = static_cast<double>(tiles) / static_cast<double>(rounds * multiprocessors());
    if (busy >= highest)
      highest = busy, best = count;
  }
  return best;
}

// The launch's panels from `first` on, at most `count`.
LinearLaunch stretchOf(const LinearLaunch &launch, int64_t first, int64_t count) {
  LinearLaunch part = launch;
  const int64_t row = first / (launch.gated ? 2 : 1) * kPanel;
  part.weight += first * launch.panelBytes;
  part.panels = static_cast<int>(count < launch.panels - first ? count : launch.panels - first);
  part.rows = static_cast<int>(launch.rows - row);
  part.bias = launch.bias ? launch.bias + first * kPanel : nullptr;
  part.residual = launch.residual ? launch.residual + row : nullptr;
  part.y += row;
  return part;
}

} // namespace

int64_t prefillWorkspaceBytes(int64_t tokens, int64_t cols, int parts) {
  const int64_t least = cols * 32 * weightPartsOf(parts) * kLeastPanels;
  return activationTileBytes(tokens, cols, parts) + (least > kScratchBytes ? least : kScratchBytes);
}

Status launchPrefillGemm(Format format, const LinearLaunch &launch, int parts, uint8_t *workspace,
                         cudaStream_t stream) {
  const ActivationTiles tiles = {reinterpret_cast<uint16_t *>(workspace), parts,
                                 static_cast<int>(divideUp(launch.tokens, kGemmTokens)),
                                 static_cast<int>(divideUp(launch.cols, kGemmCols))};
  if (const Status status = launchActivations(launch, tiles, stream))
    return status;
  if (format == Format::BF16)
    return launchGemm(launch, tiles, {launch.weight, launch.panelBytes, 1, launch.panels}, stream);
  uint8_t *scratch = workspace + activationTileBytes(launch.tokens, launch.cols, parts);
  const int weightParts = weightPartsOf(parts);
  const int64_t panelBytes = int64_t{32} * launch.cols,
                count = stretchPanels(tiles.tokenTiles, launch.panels, scratchPanels(launch.cols, weightParts));
  for (int64_t first = 0; first < launch.panels; first += count) {
    const LinearLaunch part = stretchOf(launch, first, count);
    if (const Status status = launchUnpack(format, part, scratch, panelBytes, weightParts, stream))
      return status;
    if (const Status status = launchGemm(part, tiles, {scratch, panelBytes, weightParts, part.panels}, stream))
      return status;
  }
  return cudaSuccess;
}

} // namespace mcc::cuda
