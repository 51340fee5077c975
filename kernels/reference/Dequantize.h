// Exact values of stored weights: the definition that every packed format and kernel is tested against.
#pragma once

#include "kernels/Format.h"

#include <cstdint>

namespace mcc {

/// Writes the `elems` numbers stored in `in` as floats. `elems` must be a whole number of blocks. The result is
/// bit-equal to ggml's own dequantisation: each product and sum is rounded to f32, nothing is fused.
void dequantize(Format format, const uint8_t *in, float *out, int64_t elems);

/// Returns the value of an IEEE half (any bits; a NaN stays a NaN).
float halfToFloat(uint16_t half);

} // namespace mcc
