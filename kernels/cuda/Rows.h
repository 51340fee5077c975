// Launchers of the kernels that work row by row (kernels/KernelTable.def): embed, positions, norm, rotary and the
// element-wise activate, gate, add, clamp, scale and xielu; and unpack, which serves a library's GEMM.
#pragma once

#include "kernels/Format.h"
#include "kernels/cuda/Launch.h"

namespace mcc::cuda {

/// y[t, :] = scale * table[ids[t], :]; table packed [rows, cols].
struct Embed {
  Format format = Format::BF16;
  const uint8_t *table = nullptr;
  float *y = nullptr;
  int64_t rows = 0, cols = 0, yStride = 0;
  float scale = 1.0f;
};
Status launchEmbed(const Step &step, const Embed &embed, cudaStream_t stream);

/// y[t, :] = x[t, :] + table[position + t + offset, :]; table packed [rows, cols]; y may be x.
struct Positions {
  Format format = Format::BF16;
  const float *x = nullptr;
  const uint8_t *table = nullptr;
  float *y = nullptr;
  int64_t rows = 0, cols = 0, xStride = 0, yStride = 0, offset = 0;
};
Status launchPositions(const Step &step, const Positions &positions, cudaStream_t stream);

/// y = x normalised in each of `groups` equal parts of a row by itself; the norm's weight and bias are [cols] where the
/// groups have their own, else [cols / groups]. y may be x.
struct NormRows {
  Norm norm;
  const float *x = nullptr;
  float *y = nullptr;
  int64_t cols = 0, xStride = 0, yStride = 0;
  int64_t groups = 1;
  bool groupWeights = true;
};
Status launchNorm(const Step &step, const NormRows &rows, cudaStream_t stream);

/// cosSin [tokens][2][pairs].
struct Rotary {
  const float *frequencies = nullptr; ///< [pairs], or [2][pairs] where `original` is set
  float *cosSin = nullptr;
  int64_t pairs = 0;
  float factor = 1.0f;
  int64_t original = 0; ///< longer sequences take the second frequencies; needs the step's length
};
Status launchRotary(const Step &step, const Rotary &rotary, cudaStream_t stream);

/// An element-wise kernel over [tokens][cols]: activate y = activation(a); gate y = activation(a) * b; add y = a + b;
/// clamp y = min(max(a, -number), number), a NaN kept; scale y = number * a; xielu y = xielu(a) with b its parameters [4].
struct Elementwise {
  const float *a = nullptr, *b = nullptr;
  float *y = nullptr; ///< may be a or b
  int64_t cols = 0, aStride = 0, bStride = 0, yStride = 0;
  int64_t activation = 0;
  float number = 0.0f;
};
Status launchActivate(const Step &step, const Elementwise &elementwise, cudaStream_t stream);
Status launchGate(const Step &step, const Elementwise &elementwise, cudaStream_t stream);
Status launchAdd(const Step &step, const Elementwise &elementwise, cudaStream_t stream);
Status launchClamp(const Step &step, const Elementwise &elementwise, cudaStream_t stream);
Status launchScale(const Step &step, const Elementwise &elementwise, cudaStream_t stream);
Status launchXielu(const Step &step, const Elementwise &elementwise, cudaStream_t stream);

/// Unpacks panels into plain row-major bf16 [rows][cols], rounding to nearest: the operand of a library's GEMM.
/// `gated`: W holds alternating gate and up panels of `rows` rows each; the gate rows come first, then the up rows.
struct Unpack {
  Format format = Format::BF16;
  const uint8_t *weight = nullptr;
  uint16_t *out = nullptr;
  int64_t rows = 0, cols = 0;
  bool gated = false;
};
Status launchUnpack(const Unpack &unpack, cudaStream_t stream);

} // namespace mcc::cuda
