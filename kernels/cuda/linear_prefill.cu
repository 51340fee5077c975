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

// One block a token of the tiles: normalised, split, zeros where there is no token or column. `kParts` is to.parts, so
// that parts stay in registers and those that nobody asks for are not computed.
template <int kParts>
__global__ __launch_bounds__(kRowThreads, 4) void activation_tiles_kernel(Norm norm, const float *x, ActivationTiles to,
                                                                       int cols, int64_t xStride, int tokens) {
  __shared__ float scratch[8];
  if (threadIdx.x == 0)
    ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  const int token = blockIdx.x, inTile = token % kGemmTokens;
  const int64_t tokenTile = token / kGemmTokens;
  const auto put = [&](int64_t column, float4 v) {
    const Parts parts[4] = {split(v.x), split(v.y), split(v.z), split(v.w)};
    const int inRow = static_cast<int>(column % kGemmCols), piece = inRow / 8 ^ inTile % 8;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const int64_t tile = (part * static_cast<int64_t>(to.tokenTiles) + tokenTile) * to.colTiles + column / kGemmCols;
      *reinterpret_cast<ushort4 *>(to.tiles + (tile * kGemmTokens + inTile) * kGemmCols + piece * 8 + inRow % 8) = {
          parts[0].part[part], parts[1].part[part], parts[2].part[part], parts[3].part[part]};
    }
  };
  if (token < tokens)
    normalise_row(norm, x + token * xStride, cols, scratch, threadIdx.x, put);
  for (int64_t column = token < tokens ? divideUp(cols, 4) * 4 + 4 * threadIdx.x : 4 * threadIdx.x;
       column < static_cast<int64_t>(to.colTiles) * kGemmCols; column += 4 * kRowThreads)
    put(column, {0.0f, 0.0f, 0.0f, 0.0f});
}

// The same without a norm: a thread takes 8 columns of a token. Grid: (blocks of eights, tokens of the tiles).
template <int kParts>
__global__ __launch_bounds__(kUnpackThreads) void plain_tiles_kernel(const float *x, ActivationTiles to, int cols,
                                                                     int64_t xStride, int tokens) {
  if (threadIdx.x == 0)
    ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  const int column = (blockIdx.x * kUnpackThreads + threadIdx.x) * 8, token = blockIdx.y, inTile = token % kGemmTokens;
  if (column >= to.colTiles * kGemmCols)
    return;
  float4 quads[2] = {};
  if (token < tokens) {
    const float *row = x + token * xStride;
    const bool aligned = aligned16(row);
    quads[0] = load4(row, column, cols, aligned), quads[1] = load4(row, column + 4, cols, aligned);
  }
  const float values[8] = {quads[0].x, quads[0].y, quads[0].z, quads[0].w,
                           quads[1].x, quads[1].y, quads[1].z, quads[1].w};
  uint16_t bits[kParts][8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const Parts parts = split(values[i]);
#pragma unroll
    for (int part = 0; part < kParts; ++part)
      bits[part][i] = parts.part[part];
  }
  const int piece = column % kGemmCols / 8 ^ inTile % 8;
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    const int64_t tile =
        (part * static_cast<int64_t>(to.tokenTiles) + token / kGemmTokens) * to.colTiles + column / kGemmCols;
    *reinterpret_cast<uint4 *>(to.tiles + (tile * kGemmTokens + inTile) * kGemmCols + piece * 8) = eightOf(bits[part]);
  }
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
