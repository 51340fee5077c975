// What every kernel computes, in plain scalar loops: the yardstick of tests and of the interpreter.
//
// Weights are f32, as Dequantize gives them; sums run in double and are rounded once. No threads, no packing.
// Strides are in elements; rows are tokens unless said.
#pragma once

#include "kernels/Activation.h"

#include <cstdint>

namespace mcc::reference {

/// A norm, as KernelTable.def's `kind` says: -1 none, 0 RMS, 1 layer norm. Weight and bias may be null.
struct Norm {
  int64_t kind = -1;
  const float *weight = nullptr;
  const float *bias = nullptr;
  float eps = 0.0f;
};

/// Returns activation(x).
double activate(double x, Activation activation);

/// Returns xIELU of x (KernelTable.def, `xielu`) with parameters [4] as stored: p, m, b, e.
double xielu(double x, const float *parameters);

/// Returns x within [-limit, limit]; a NaN stays one.
double clamp(double x, double limit);

/// Returns the nearest bfloat16, ties to even; x is finite.
float roundToBFloat16(float x);

/// y[0, cols) = the normalised x[0, cols), which may be the same array; copies where the kind is -1.
void norm(const Norm &norm, const float *x, float *y, int64_t cols);

/// As above for each of `groups` equal parts by itself; weight and bias are [cols] where the groups have their own, else shared.
void groupNorm(const Norm &norm, const float *x, float *y, int64_t cols, int64_t groups, bool groupWeights);

/// y[t, :] = x[t, :] + table[first + t, :] for rows of `cols`; table is [rows, cols].
void addPositions(const float *x, const float *table, float *y, int64_t tokens, int64_t cols, int64_t first);

/// One linear layer; see KernelTable.def.
struct Linear {
  int64_t tokens, rows, cols;
  const float *x;
  int64_t xStride;
  const float *weight;             ///< [rows, cols]; the gate's where `up` is set
  const float *up = nullptr;       ///< [rows, cols]: y = activation(gate) * up
  const float *bias = nullptr;     ///< [rows]
  const float *upBias = nullptr;   ///< [rows]
  const float *residual = nullptr; ///< rows of `residualStride`
  int64_t residualStride = 0;
  Norm norm = {};
  Activation activation = Activation::None;
  float scale = 1.0f;
};

/// y[token * yStride + row] = scale * (activation(norm(x) W^T + bias) (* up)) + residual.
void linear(const Linear &linear, float *y, int64_t yStride);

/// cosSin = [tokens][2][pairs] for positions from `position` on; the angle is rounded to f32 first, as the table says.
void rotary(const float *frequencies, float *cosSin, int64_t tokens, int64_t position, int64_t pairs, float factor);

/// Rotates the first 2 * pairs entries of `head` in place; pairing 0: (i, i + pairs), 1: (2i, 2i + 1).
void rotate(float *head, const float *cosSin, int64_t pairs, int64_t pairing);

/// One query head over keys and values [positions][headDim], positions [first, last] taking part.
struct Attention {
  const float *q, *keys, *values;
  int64_t headDim, first, last;
  float scale, softcap;
  float slope = 0.0f;        ///< added per position of the key
  bool slopeRounded = false; ///< slope, position and product are rounded to bfloat16
  const float *sink = nullptr; ///< one more logit without a value
};

/// Returns the first position that a query at `last` sees: of the last `window` and in its own `chunk`; 0 limits nothing.
int64_t firstPosition(int64_t last, int64_t window, int64_t chunk);

/// y[0, headDim) = softmax(scale q k^T, capped, plus the slope's term) v.
void attend(const Attention &attention, float *y);

/// Returns the lowest index of the largest value, or -1 where any is NaN.
int64_t argmax(const float *values, int64_t count);

} // namespace mcc::reference
