// conv2d and pool2d, one thread an output, sums in the CPU's order (kernels/cpu/Image.cpp): bound by the first-level
// cache.
#include "kernels/cuda/Image.h"

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/math.cuh"

namespace mcc::cuda {
namespace {

constexpr int kImageThreads = 256;
constexpr int64_t kLanes = 16;

// The number of this thread's output.
__device__ __forceinline__ int64_t enterImage() {
  if (threadIdx.x == 0)
    ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  return static_cast<int64_t>(blockIdx.x) * kImageThreads + threadIdx.x;
}

__global__ __launch_bounds__(kImageThreads) void conv2d_kernel(const __grid_constant__ Conv2d c) {
  const int64_t at = enterImage();
  if (at >= c.batch * c.outChannels * c.outHeight * c.outWidth)
    return;
  const int64_t j = at % c.outWidth, i = at / c.outWidth % c.outHeight,
                out = at / c.outWidth / c.outHeight % c.outChannels,
                image = at / c.outWidth / c.outHeight / c.outChannels;
  const int64_t perGroup = c.channels / c.groups, columns = perGroup * c.kernelH * c.kernelW,
                first = out / (c.outChannels / c.groups) * perGroup;
  const float *weight = c.weight + out / kLanes * kLanes * columns + out % kLanes;
  const float *planes = c.x + (image * c.channels + first) * c.height * c.width;
  float sum = 0.0f;
  for (int64_t channel = 0; channel < perGroup; ++channel)
    for (int64_t ky = 0; ky < c.kernelH; ++ky) {
      const int64_t row = i * c.strideH + ky * c.dilationH - c.padTop;
      if (row < 0 || row >= c.height)
        continue;
      const float *cells = planes + (channel * c.height + row) * c.width;
      const float *taps = weight + (channel * c.kernelH + ky) * c.kernelW * kLanes;
      for (int64_t kx = 0; kx < c.kernelW; ++kx)
        if (const int64_t column = j * c.strideW + kx * c.dilationW - c.padLeft; column >= 0 && column < c.width)
          sum = fmaf(taps[kx * kLanes], cells[column], sum);
    }
  if (c.scale)
    sum = __fmul_rn(sum, c.scale[out]);
  if (c.bias)
    sum = __fadd_rn(sum, c.bias[out]);
  if (c.residual)
    sum = __fadd_rn(sum, c.residual[at]);
  c.y[at] = activate(sum, c.activation);
}

__global__ __launch_bounds__(kImageThreads) void pool2d_kernel(const __grid_constant__ Pool2d p) {
  const int64_t at = enterImage();
  if (at >= p.planes * p.outHeight * p.outWidth)
    return;
  const int64_t j = at % p.outWidth, i = at / p.outWidth % p.outHeight;
  const float *plane = p.x + at / p.outWidth / p.outHeight * p.height * p.width;
  float largest = -INFINITY, sum = 0.0f;
  int64_t cells = 0, rowsWithPads = 0, columnsWithPads = 0;
  for (int64_t ky = 0; ky < p.kernelH; ++ky) {
    const int64_t row = i * p.strideH + ky * p.dilationH - p.padTop;
    rowsWithPads += row < p.height + p.padBottom;
    columnsWithPads = 0;
    for (int64_t kx = 0; kx < p.kernelW; ++kx) {
      const int64_t column = j * p.strideW + kx * p.dilationW - p.padLeft;
      columnsWithPads += column < p.width + p.padRight;
      if (row < 0 || row >= p.height || column < 0 || column >= p.width)
        continue;
      const float value = plane[row * p.width + column];
      largest = value != value || value > largest ? value : largest;
      sum = __fadd_rn(sum, value);
      ++cells;
    }
  }
  const int64_t count = p.includePad ? rowsWithPads * columnsWithPads : cells;
  p.y[at] = p.kind == 0 ? largest : sum / static_cast<float>(count);
}

// Blocks for so many outputs; 0 where the device cannot count them.
unsigned blocksFor(int64_t outputs) {
  const int64_t blocks = divideUp(outputs, kImageThreads);
  return outputs < 1 || blocks > INT32_MAX ? 0 : static_cast<unsigned>(blocks);
}

} // namespace

Status launchConv2d(const Conv2d &c, cudaStream_t stream) {
  const unsigned blocks = blocksFor(c.batch * c.outChannels * c.outHeight * c.outWidth);
  if (blocks == 0 || c.groups < 1 || c.channels % c.groups != 0 || c.outChannels % c.groups != 0)
    return kInvalidValue;
  return launch(conv2d_kernel, dim3(blocks), dim3(kImageThreads), 0, stream, c);
}

Status launchPool2d(const Pool2d &p, cudaStream_t stream) {
  const unsigned blocks = blocksFor(p.planes * p.outHeight * p.outWidth);
  if (blocks == 0)
    return kInvalidValue;
  return launch(pool2d_kernel, dim3(blocks), dim3(kImageThreads), 0, stream, p);
}

} // namespace mcc::cuda
