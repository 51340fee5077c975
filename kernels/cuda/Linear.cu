// Chooses the kernel of a `linear` or `logits` launch, cuts its tokens into slices, prepares their rows; and argmax.
//
// Up to two tokens of moderate width are normalised and split by the multiplying kernel itself; more by a kernel of one
// block a token before it, into the workspace. The numbers are the same either way.
#include "kernels/cuda/Linear.h"

#include "kernels/cuda/linear_gemm.cuh"
#include "kernels/cuda/linear_stream.cuh"
#include "kernels/cuda/panel_decode.cuh"

namespace mcc::cuda {

namespace {

constexpr int64_t kSliceTokens = 16;
// Bytes of split activations that a block keeps for itself.
constexpr int64_t kResidentBytes = 98304;

bool isScaled(Format format) { return format == Format::Q8_0 || format == Format::F8 || format == Format::Q4_0; }

bool onTensorCores(Format format) {
  return format == Format::BF16 || format == Format::F16 || isScaled(format);
}

// What a format's tile has for activations, as a visitor of its type.
template <class Visit>
auto withActivations(Format format, Visit visit) {
  return isScaled(format) ? visit(TwoHalves()) : visit(ThreeBfloats());
}

bool resident(Format format, int64_t tokens, int64_t cols) {
  return withActivations(format, [&]<class Activations>(Activations) {
    return tokens <= Activations::residentTokens && residentBytes<Activations>(cols, tokens) <= kResidentBytes;
  });
}

// Bytes of an operand in the workspace without what its steps have beside.
template <class Activations>
int64_t operandBytes(int64_t tokens, int64_t cols) {
  return divideUp(cols, kStepCols) * 2 * Activations::groupsOf(tokens) * 32 * static_cast<int64_t>(sizeof(uint2));
}

// One block a token: normalised rows, f32 [tokens][cols].
__global__ __launch_bounds__(kRowThreads) void normalise_rows_kernel(Norm norm, const float *x, float *y, int cols,
                                                                     int64_t xStride) {
  __shared__ float scratch[kRowThreads / 16];
  if (threadIdx.x == 0)
    ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  float *row = y + static_cast<int64_t>(blockIdx.x) * cols;
  normalise_row(norm, x + blockIdx.x * xStride, cols, scratch, threadIdx.x, [&](int64_t column, float4 v) {
    const float values[4] = {v.x, v.y, v.z, v.w};
    for (int64_t i = 0; i < 4 && column + i < cols; ++i)
      row[column + i] = values[i];
  });
}

// One block a token, absent ones too, whose numbers are zero: normalised and split, [tile][group][lane][4].
template <class Tile>
__global__ __launch_bounds__(kMultiplying<Tile>) void split_rows_kernel(Norm norm, const float *x, uint16_t *operand, void *infos,
                                                                 int cols, int64_t xStride, int tokens, int groups) {
  using Activations = typename Tile::Activations;
  __shared__ float scratch[kSplitScratch / 2];
  if (threadIdx.x == 0)
    ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  const int token = blockIdx.x;
  const auto place = [&](int column, int part) {
    const int64_t group = static_cast<int64_t>(column / 16) * groups + Activations::groupOf(part, token, groups);
    return operand + (group * 32 + Activations::columnOf(part, token) * 4) * 4 + dealt<Tile::dealing>(column % 16);
  };
  const auto placeInfo = [&](int step) {
    return static_cast<typename Activations::Info *>(infos) + static_cast<int64_t>(step) * gridDim.x + token;
  };
  if (token < tokens)
    return splitRow<Tile>(norm, x + token * xStride, cols, scratch, threadIdx.x, place, placeInfo);
  for (int column = 4 * threadIdx.x; column < static_cast<int>(divideUp(cols, kStepCols)) * kStepCols;
       column += 4 * kMultiplying<Tile>)
    Activations::template put<Tile>(column, float4{0.0f, 0.0f, 0.0f, 0.0f}, threadIdx.x, place, placeInfo);
}

// Points `launch` at split rows in the workspace.
template <class Tile>
Status splitRows(LinearLaunch &launch, uint8_t *workspace, cudaStream_t stream) {
  using Activations = typename Tile::Activations;
  const int groups = Activations::groupsOf(launch.tokens);
  launch.operand = reinterpret_cast<const uint2 *>(workspace);
  uint8_t *infos = workspace + operandBytes<Activations>(launch.tokens, launch.cols);
  launch.infos = infos;
  return mcc::cuda::launch(split_rows_kernel<Tile>, dim3(Activations::capacity(groups)), dim3(kMultiplying<Tile>), 0, stream,
                           launch.norm, launch.x, reinterpret_cast<uint16_t *>(workspace), static_cast<void *>(infos),
                           launch.cols, launch.xStride, launch.tokens, groups);
}

Status splitRows(Format format, LinearLaunch &launch, uint8_t *workspace, cudaStream_t stream) {
  switch (format) {
  case Format::Q8_0:
    return splitRows<TileQ8_0>(launch, workspace, stream);
  case Format::F8:
    return splitRows<TileF8>(launch, workspace, stream);
  case Format::Q4_0:
    return splitRows<TileQ4_0>(launch, workspace, stream);
  default:
    return splitRows<TileBF16>(launch, workspace, stream);
  }
}

Status normaliseRows(LinearLaunch &launch, uint8_t *workspace, cudaStream_t stream) {
  float *rows = reinterpret_cast<float *>(workspace);
  const Status status = mcc::cuda::launch(normalise_rows_kernel, dim3(launch.tokens), dim3(kRowThreads), 0, stream,
                                          launch.norm, launch.x, rows, launch.cols, launch.xStride);
  launch.x = rows;
  launch.xStride = launch.cols;
  return status;
}

Status launchSlice(Format format, LinearLaunch launch, uint8_t *workspace, cudaStream_t stream) {
  if (!onTensorCores(format)) {
    if (launch.norm.kind >= 0)
      if (const Status status = normaliseRows(launch, workspace, stream))
        return status;
    return launchChain(format, launch, stream);
  }
  if (!resident(format, launch.tokens, launch.cols))
    if (const Status status = splitRows(format, launch, workspace, stream))
      return status;
  switch (format) {
  case Format::BF16:
    return launchStreamBF16(launch, stream);
  case Format::F16:
    return launchStreamF16(launch, stream);
  case Format::Q8_0:
    return launchStreamQ8_0(launch, stream);
  case Format::F8:
    return launchStreamF8(launch, stream);
  default:
    return launchStreamQ4_0(launch, stream);
  }
}

bool usable(const Linear &linear) {
  const int64_t block = formatInfo(linear.format).blockElems;
  return linear.rows > 0 && linear.cols > 0 && linear.cols % block == 0 && linear.rows < (int64_t{1} << 30) &&
         linear.cols < (int64_t{1} << 24) && linear.x && linear.weight && linear.y &&
         reinterpret_cast<uintptr_t>(linear.weight) % 64 == 0 &&
         reinterpret_cast<uintptr_t>(linear.workspace) % 16 == 0;
}

bool needsWorkspace(const Linear &linear, int64_t tokens) {
  return onTensorCores(linear.format) ? !resident(linear.format, tokens, linear.cols) : linear.norm.kind >= 0;
}

// What all slices of a launch share.
LinearLaunch describe(const Linear &linear) {
  const FormatInfo &format = formatInfo(linear.format);
  LinearLaunch launch = {};
  launch.weight = linear.weight;
  launch.panelBytes = (linear.cols / format.blockElems * format.blockBytes * kPanel + 63) / 64 * 64;
  launch.panels = static_cast<int>(divideUp(linear.rows, kPanel) * (linear.gated ? 2 : 1));
  launch.cols = static_cast<int>(linear.cols);
  launch.rows = static_cast<int>(linear.rows);
  launch.bias = linear.bias;
  launch.xStride = linear.xStride;
  launch.yStride = linear.yStride;
  launch.residualStride = linear.residualStride;
  launch.activation = linear.activation;
  launch.gated = linear.gated;
  launch.norm = linear.norm;
  launch.scale = linear.scale;
  return launch;
}

Status launchPrefill(const Step &step, const Linear &linear, cudaStream_t stream) {
  if (linear.prefillParts > 3 || !linear.workspace || step.tokens > (int64_t{1} << 20))
    return kInvalidValue;
  LinearLaunch launch = describe(linear);
  launch.tokens = static_cast<int>(step.tokens);
  launch.x = linear.x, launch.y = linear.y, launch.residual = linear.residual;
  if (gemmAvailable())
    return launchPrefillGemm(linear.format, launch, linear.prefillParts, linear.workspace, stream);
  return launchTiles(launch, linear.prefillParts, linear.workspace, stream);
}

// Whether the launch goes to a GEMM: other formats than bf16 pay for being unpacked first.
bool isPrefill(const Linear &linear, int64_t tokens) {
  if (linear.prefillParts < 1 || tokens <= kSliceTokens)
    return false;
  return linear.format == Format::BF16 || (tokens > 2 * kSliceTokens && gemmAvailable());
}

// Merges the blocks' bests; entries that no block used have index -1.
__global__ void argmax_kernel(Argmax argmax, const int32_t *stepPosition, int tokens) {
  __shared__ Partial warps[kLogitPartials / 32];
  if (threadIdx.x == 0)
    ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  const auto mergeWarp = [](Partial best) {
    for (int apart = 16; apart > 0; apart /= 2)
      best = better(best,
                    {__shfl_down_sync(0xffffffffu, best.value, apart), __shfl_down_sync(0xffffffffu, best.index, apart),
                     __shfl_down_sync(0xffffffffu, best.sawNaN, apart), 0});
    return best;
  };
  const Partial best = mergeWarp(argmax.partials[threadIdx.x]);
  if (threadIdx.x % 32 == 0)
    warps[threadIdx.x / 32] = best;
  __syncthreads();
  if (threadIdx.x >= 32)
    return;
  const Partial all = mergeWarp(threadIdx.x < kLogitPartials / 32 ? warps[threadIdx.x] : Partial{0.0f, -1, 0, 0});
  if (threadIdx.x != 0)
    return;
  const int32_t token = all.sawNaN ? -1 : all.index;
  *argmax.token = token;
  const int32_t position = argmax.ring || argmax.position ? *stepPosition : 0;
  if (argmax.position)
    *argmax.position = position + tokens;
  if (argmax.ring)
    *reinterpret_cast<volatile int32_t *>(argmax.ring + ((position + tokens - 1) & argmax.ringMask)) = token;
}

} // namespace

int64_t linearWorkspaceBytes(int64_t tokens, int64_t cols, int prefillParts) {
  // Three parts take more than two and what they have beside.
  const int64_t slice = operandBytes<ThreeBfloats>(tokens < kSliceTokens ? tokens : kSliceTokens, cols);
  if (prefillParts < 1 || tokens <= kSliceTokens)
    return slice;
  const int64_t tiles = gemmAvailable() ? prefillWorkspaceBytes(tokens, cols, prefillParts)
                                        : tileWorkspaceBytes(tokens, cols, prefillParts);
  return slice > tiles ? slice : tiles;
}

Status launchLinear(const Step &step, const Linear &linear, cudaStream_t stream) {
  if (!usable(linear) || step.tokens < 1)
    return kInvalidValue;
  if (isPrefill(linear, step.tokens))
    return launchPrefill(step, linear, stream);
  for (int64_t first = 0; first < step.tokens; first += kSliceTokens) {
    const int64_t tokens = step.tokens - first < kSliceTokens ? step.tokens - first : kSliceTokens;
    if (needsWorkspace(linear, tokens) && !linear.workspace)
      return kInvalidValue;
    LinearLaunch launch = describe(linear);
    launch.tokens = static_cast<int>(tokens);
    launch.x = linear.x + first * linear.xStride;
    launch.y = linear.y + first * linear.yStride;
    launch.residual = linear.residual ? linear.residual + first * linear.residualStride : nullptr;
    if (const Status status = launchSlice(linear.format, launch, linear.workspace, stream))
      return status;
  }
  return cudaSuccess;
}

Status launchLogits(const Step &step, const Logits &logits, cudaStream_t stream) {
  const Linear &linear = logits.linear;
  if (!usable(linear) || step.tokens < 1 || !logits.partials || linear.gated || linear.activation != 0 ||
      linear.scale != 1.0f || linear.residual || (needsWorkspace(linear, 1) && !linear.workspace))
    return kInvalidValue;
  LinearLaunch launch = describe(linear);
  launch.tokens = 1;
  launch.x = linear.x + (step.tokens - 1) * linear.xStride;
  launch.y = linear.y;
  launch.partials = logits.partials;
  launch.scale = logits.scale;
  launch.softcap = logits.softcap;
  return launchSlice(linear.format, launch, linear.workspace, stream);
}

Status launchArgmax(const Step &step, const Argmax &argmax, cudaStream_t stream) {
  if (!argmax.partials || !argmax.token || ((argmax.ring || argmax.position) && !step.position))
    return kInvalidValue;
  return mcc::cuda::launch(argmax_kernel, dim3(1), dim3(kLogitPartials), 0, stream, argmax, step.position,
                           static_cast<int>(step.tokens));
}

} // namespace mcc::cuda
