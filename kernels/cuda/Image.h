// Launchers of conv2d and pool2d (kernels/KernelTable.def). Images are dense f32 [batch, channels, height, width]; the
// step's tokens are not looked at.
#pragma once

#include "kernels/cuda/Launch.h"

namespace mcc::cuda {

/// weight is packed f32 [outChannels, channels / groups * kernelH * kernelW]; scale and bias f32 [outChannels],
/// residual as y; all three may be null.
struct Conv2d {
  const float *x = nullptr, *weight = nullptr, *scale = nullptr, *bias = nullptr, *residual = nullptr;
  float *y = nullptr;
  int64_t batch = 0, channels = 0, height = 0, width = 0, outChannels = 0, outHeight = 0, outWidth = 0, kernelH = 0,
          kernelW = 0, strideH = 0, strideW = 0, padTop = 0, padLeft = 0, dilationH = 0, dilationW = 0, groups = 0,
          activation = 0;
};
Status launchConv2d(const Conv2d &conv, cudaStream_t stream);

struct Pool2d {
  const float *x = nullptr; ///< [planes, height, width]
  float *y = nullptr;       ///< [planes, outHeight, outWidth]
  int64_t kind = 0, planes = 0, height = 0, width = 0, outHeight = 0, outWidth = 0, kernelH = 0, kernelW = 0,
          strideH = 0, strideW = 0, padTop = 0, padLeft = 0, padBottom = 0, padRight = 0, dilationH = 0, dilationW = 0,
          includePad = 0;
};
Status launchPool2d(const Pool2d &pool, cudaStream_t stream);

} // namespace mcc::cuda
