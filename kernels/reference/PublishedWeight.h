// Exact values of weights as published quantised checkpoints store them: GPTQ, AWQ, FP8, MXFP4.
//
// Each struct points at the tensors that hold one matrix [rows, cols] (outputs, inputs); each function writes whole
// rows of it, any number from any place, so that a matrix is never unpacked as a whole. All values are f32; every
// product is rounded once, nothing is fused. Multi-byte integers are little-endian. The caller has checked all sizes
// and indices.
#pragma once

#include "kernels/Format.h"

#include <cstdint>

namespace mcc {

/// Numbers in f32, f16 or bf16 at any alignment.
struct Scalars {
  const uint8_t *data = nullptr;
  Format format = Format::F32;
  float at(int64_t index) const;
};

/// GPTQ: `quants` is i32 [cols * bits / 32, rows], elements of a row following each other from the low bits up; `zeros`
/// is i32 [groups, rows * bits / 32], packed along rows in the same way; value = scale * (quant - zero).
struct GptqWeight {
  int64_t rows = 0, cols = 0;
  int bits = 4;          ///< 4 or 8
  int64_t groupSize = 0; ///< inputs that share a scale and a zero
  const uint8_t *quants = nullptr, *zeros = nullptr;
  const uint8_t *groups = nullptr; ///< i32 [cols]: the group of every input; null: input / groupSize
  Scalars scales;                  ///< [groups, rows]
  bool zerosLessOne = true;        ///< the first version of the format stores zero - 1, modulo 2^bits
};
void dequantizeRows(const GptqWeight &weight, int64_t row, int64_t count, float *out);

/// AWQ ("gemm"): `quants` is i32 [cols, rows / 8] and `zeros` i32 [groups, rows / 8], where the nibbles of a word, from
/// the low end, belong to its rows 0, 2, 4, 6, 1, 3, 5, 7; value = (quant - zero) * scale.
struct AwqWeight {
  int64_t rows = 0, cols = 0;
  int64_t groupSize = 0;
  const uint8_t *quants = nullptr, *zeros = nullptr;
  Scalars scales; ///< [groups, rows]
};
void dequantizeRows(const AwqWeight &weight, int64_t row, int64_t count, float *out);

/// FP8 (E4M3), with a scale for every block of blockRows x blockCols (the last ones may be cut off):
/// value = element * scale.
struct Fp8Weight {
  int64_t rows = 0, cols = 0;
  const uint8_t *elements = nullptr; ///< [rows, cols]
  int64_t blockRows = 1, blockCols = 1;
  Scalars scales; ///< [ceil(rows / blockRows), ceil(cols / blockCols)]
};
void dequantizeRows(const Fp8Weight &weight, int64_t row, int64_t count, float *out);

/// Returns whether rows of `weight` can be stored as Format::F8, whose scales are for 32 columns.
bool fitsF8(const Fp8Weight &weight);

/// Writes rows as Format::F8: the same values. A block with a NaN among its elements becomes one of NaN.
void storeRowsAsF8(const Fp8Weight &weight, int64_t row, int64_t count, uint8_t *out);

/// gpt-oss's MXFP4 experts, read as transposed matrices: `blocks` is [experts, out, in / 32, 16], each byte holding two
/// E2M1 elements of `in`, the low nibble first; `scales` is [experts, out, in / 32] of 2^(byte - 127). Rows here are
/// [experts * in] of `out` columns, as the model's parameter lies.
struct Mxfp4Weight {
  int64_t out = 0, in = 0; ///< of one expert; in is a multiple of 32
  const uint8_t *blocks = nullptr, *scales = nullptr;
};
void dequantizeRows(const Mxfp4Weight &weight, int64_t row, int64_t count, float *out);

/// Returns the value of an E4M3 byte (the variant without infinities: only 0x7f and 0xff are NaN).
float e4m3ToFloat(uint8_t bits);

} // namespace mcc
