// Convolution and pooling of images in plain scalar loops (KernelTable.def: conv2d, pool2d).
//
// Images are dense [batch, channels, height, width]. Everything is double between the inputs and the rounded result.
#pragma once

#include "kernels/Activation.h"

#include <cstdint>

namespace mcc::reference {

/// One axis of a window that moves over an image: output i reads the cells i * stride + k * dilation - pad.
struct WindowAxis {
  int64_t in, out, kernel, stride = 1, dilation = 1;
  int64_t padBegin = 0, padEnd = 0; ///< `padEnd` matters to a mean that counts pads
  int64_t cell(int64_t i, int64_t k) const { return i * stride + k * dilation - padBegin; }
};

struct Conv2d {
  int64_t batch, channels, outChannels, groups = 1;
  WindowAxis height, width;
  const float *x;
  const float *weight;                           ///< [outChannels, channels / groups, height.kernel, width.kernel]
  const float *scale = nullptr, *bias = nullptr; ///< [outChannels]
  const float *residual = nullptr;               ///< as y
  Activation activation = Activation::None;
};
/// y is [batch, outChannels, height.out, width.out].
void conv2d(const Conv2d &conv, float *y);

struct Pool2d {
  enum Kind : int64_t { Max = 0, Mean = 1 };
  Kind kind;
  int64_t planes;
  WindowAxis height, width;
  bool includePad = false;
  const float *x; ///< [planes, height.in, width.in]
};
/// y is [planes, height.out, width.out].
void pool2d(const Pool2d &pool, float *y);

} // namespace mcc::reference
