// The row kernels and unpack: one thread an element, or one block a row where rows are summed.
//
// All are bound by launch and memory latency at a few tokens. Sines and cosines are the accurate ones, of p * f in f32.
#include "kernels/cuda/Rows.h"

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/panel_decode.cuh"

namespace mcc::cuda {

namespace {

constexpr int kThreads = 256;

__device__ __forceinline__ void enter() {
  if (threadIdx.x == 0)
    ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
}

// Grid: (columns, tokens).
template <class PanelFormat>
__global__ void embed_kernel(const uint8_t *table, const int32_t *ids, float *y, int64_t rows, int64_t cols,
                             int64_t yStride, float scale) {
  enter();
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x, token = blockIdx.y, id = ids[token];
  if (column >= cols)
    return;
  // A token outside the table, as after a NaN, reads nothing: its row is NaN, and so is every logit after it.
  const bool known = id >= 0 && id < rows;
  const float value =
      known ? PanelFormat::value(table + id / 16 * panelBytes<PanelFormat>(cols), static_cast<int>(id % 16), column)
            : __int_as_float(0x7fc00000);
  y[token * yStride + column] = scale * value;
}

// Grid: (columns, tokens).
template <class PanelFormat>
__global__ void positions_kernel(Positions p, const int32_t *position) {
  enter();
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x, token = blockIdx.y;
  const int64_t row = *position + token + p.offset;
  if (column >= p.cols)
    return;
  const bool known = row >= 0 && row < p.rows;
  const float value = known ? PanelFormat::value(p.table + row / 16 * panelBytes<PanelFormat>(p.cols),
                                                 static_cast<int>(row % 16), column)
                            : __int_as_float(0x7fc00000);
  p.y[token * p.yStride + column] = __fadd_rn(p.x[token * p.xStride + column], value);
}

// Grid: (groups, tokens).
__global__ __launch_bounds__(kRowThreads) void norm_kernel(NormRows rows) {
  __shared__ float scratch[kRowThreads / 16];
  enter();
  const int64_t cols = rows.cols / rows.groups, first = blockIdx.x * cols, own = rows.groupWeights ? first : 0;
  Norm norm = rows.norm;
  norm.weight = norm.weight ? norm.weight + own : nullptr;
  norm.bias = norm.bias ? norm.bias + own : nullptr;
  float *row = rows.y + blockIdx.y * rows.yStride + first;
  const bool aligned = aligned16(row);
  normalise_row(norm, rows.x + blockIdx.y * rows.xStride + first, cols, scratch, threadIdx.x,
                [&](int64_t column, float4 v) {
                  if (aligned && column + 4 <= cols) {
                    *reinterpret_cast<float4 *>(row + column) = v;
                    return;
                  }
                  const float values[4] = {v.x, v.y, v.z, v.w};
                  for (int64_t i = 0; i < 4 && column + i < cols; ++i)
                    row[column + i] = values[i];
                });
}

__global__ void rotary_kernel(Rotary rotary, Step step) {
  enter();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x, token = blockIdx.y, pairs = rotary.pairs;
  if (i >= pairs)
    return;
  const int64_t position = *step.position;
  const bool isLong = rotary.original > 0 && (position + step.tokens > rotary.original || *step.length > rotary.original);
  const float angle = static_cast<float>(position + token) * rotary.frequencies[(isLong ? pairs : 0) + i];
  rotary.cosSin[token * 2 * pairs + i] = rotary.factor * cosf(angle);
  rotary.cosSin[token * 2 * pairs + pairs + i] = rotary.factor * sinf(angle);
}

enum class Operation { Activate, Gate, Add, Clamp, Scale, Xielu };

template <Operation operation>
__global__ void elementwise_kernel(Elementwise e) {
  enter();
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x, token = blockIdx.y;
  if (column >= e.cols)
    return;
  float value = e.a[token * e.aStride + column];
  if constexpr (operation == Operation::Activate || operation == Operation::Gate)
    value = activate(value, e.activation);
  if constexpr (operation == Operation::Gate)
    value = __fmul_rn(value, e.b[token * e.bStride + column]);
  if constexpr (operation == Operation::Add)
    value = __fadd_rn(value, e.b[token * e.bStride + column]);
  if constexpr (operation == Operation::Clamp) // comparisons keep a NaN
    value = value > e.number ? e.number : value < -e.number ? -e.number : value;
  if constexpr (operation == Operation::Scale)
    value = __fmul_rn(value, e.number);
  if constexpr (operation == Operation::Xielu)
    value = xielu(value, e.b);
  e.y[token * e.yStride + column] = value;
}

// Grid: (blocks of 64 columns, panels). 16 rows x 64 columns go through shared memory, so that reads run along the
// panel and writes along the rows.
template <class PanelFormat>
__global__ void unpack_kernel(Unpack unpack) {
  __shared__ __nv_bfloat16 tile[16][66];
  enter();
  const int64_t panel = blockIdx.y, first = static_cast<int64_t>(blockIdx.x) * 64;
  const uint8_t *weights = unpack.weight + panel * panelBytes<PanelFormat>(unpack.cols);
  for (int i = threadIdx.x; i < 16 * 64; i += kThreads)
    if (first + i / 16 < unpack.cols)
      tile[i % 16][i / 16] = __float2bfloat16_rn(PanelFormat::value(weights, i % 16, first + i / 16));
  __syncthreads();
  const int64_t unit = unpack.gated ? panel / 2 : panel, start = unpack.gated && panel % 2 ? unpack.rows : 0;
  for (int i = threadIdx.x; i < 16 * 64; i += kThreads) {
    const int64_t row = unit * 16 + i / 64, column = first + i % 64;
    if (row < unpack.rows && column < unpack.cols)
      unpack.out[(start + row) * unpack.cols + column] = __bfloat16_as_ushort(tile[i / 64][i % 64]);
  }
}

dim3 gridOf(int64_t cols, int64_t tokens) {
  return dim3(static_cast<unsigned>(divideUp(cols, kThreads)), static_cast<unsigned>(tokens));
}

bool usable(const Step &step, int64_t cols) { return step.tokens >= 1 && step.tokens < 65536 && cols >= 1; }

template <Operation operation>
Status launchElementwise(const Step &step, const Elementwise &elementwise, cudaStream_t stream) {
  if (!usable(step, elementwise.cols))
    return kInvalidValue;
  return launch(elementwise_kernel<operation>, gridOf(elementwise.cols, step.tokens), dim3(kThreads), 0, stream,
                elementwise);
}

} // namespace

Status launchEmbed(const Step &step, const Embed &embed, cudaStream_t stream) {
  if (!usable(step, embed.cols) || embed.cols % formatInfo(embed.format).blockElems != 0 || !step.ids)
    return kInvalidValue;
  return withPanelFormat(embed.format, [&]<class PanelFormat>() {
    return launch(embed_kernel<PanelFormat>, gridOf(embed.cols, step.tokens), dim3(kThreads), 0, stream, embed.table,
                  step.ids, embed.y, embed.rows, embed.cols, embed.yStride, embed.scale);
  });
}

Status launchPositions(const Step &step, const Positions &positions, cudaStream_t stream) {
  if (!usable(step, positions.cols) || positions.cols % formatInfo(positions.format).blockElems != 0 || !step.position)
    return kInvalidValue;
  return withPanelFormat(positions.format, [&]<class PanelFormat>() {
    return launch(positions_kernel<PanelFormat>, gridOf(positions.cols, step.tokens), dim3(kThreads), 0, stream,
                  positions, step.position);
  });
}

Status launchNorm(const Step &step, const NormRows &rows, cudaStream_t stream) {
  if (!usable(step, rows.cols) || rows.groups < 1 || rows.cols % rows.groups != 0)
    return kInvalidValue;
  const dim3 grid(static_cast<unsigned>(rows.groups), static_cast<unsigned>(step.tokens));
  return launch(norm_kernel, grid, dim3(kRowThreads), 0, stream, rows);
}

Status launchRotary(const Step &step, const Rotary &rotary, cudaStream_t stream) {
  if (!usable(step, rotary.pairs) || !step.position || (rotary.original > 0 && !step.length))
    return kInvalidValue;
  return launch(rotary_kernel, gridOf(rotary.pairs, step.tokens), dim3(kThreads), 0, stream, rotary, step);
}

Status launchActivate(const Step &step, const Elementwise &elementwise, cudaStream_t stream) {
  return launchElementwise<Operation::Activate>(step, elementwise, stream);
}

Status launchGate(const Step &step, const Elementwise &elementwise, cudaStream_t stream) {
  return launchElementwise<Operation::Gate>(step, elementwise, stream);
}

Status launchAdd(const Step &step, const Elementwise &elementwise, cudaStream_t stream) {
  return launchElementwise<Operation::Add>(step, elementwise, stream);
}

Status launchClamp(const Step &step, const Elementwise &elementwise, cudaStream_t stream) {
  return launchElementwise<Operation::Clamp>(step, elementwise, stream);
}

Status launchScale(const Step &step, const Elementwise &elementwise, cudaStream_t stream) {
  return launchElementwise<Operation::Scale>(step, elementwise, stream);
}

Status launchXielu(const Step &step, const Elementwise &elementwise, cudaStream_t stream) {
  return launchElementwise<Operation::Xielu>(step, elementwise, stream);
}

Status launchUnpack(const Unpack &unpack, cudaStream_t stream) {
  const int64_t panels = divideUp(unpack.rows, 16) * (unpack.gated ? 2 : 1);
  if (unpack.rows < 1 || unpack.cols < 1 || unpack.cols % formatInfo(unpack.format).blockElems != 0 || panels > 65535)
    return kInvalidValue;
  return withPanelFormat(unpack.format, [&]<class PanelFormat>() {
    return launch(unpack_kernel<PanelFormat>,
                  dim3(static_cast<unsigned>(divideUp(unpack.cols, 64)), static_cast<unsigned>(panels)), dim3(kThreads),
                  0, stream, unpack);
  });
}

} // namespace mcc::cuda
