// How each format's weights lie in a packed panel, and their decoding to 16 floats per column.
//
// A panel is 16 rows, lane = row. Columns come in order, in groups of `groupCols` that share their scales and
// are decoded `stepCols` at a time. A format's `Group` holds one group's scales in registers; `decode(column, out)`
// gives the values of the step that starts at `column` of the group, exactly those of kernels/reference.
// kernels/pack writes these layouts; a block of `blockCols` columns takes exactly 16 times the bytes of the format's block.
//
// Products of an f16 scale and a quant below 2^13 are exact in f32, so a fused and a separate multiply-add agree;
// Q6_K, whose products are not, subtracts its offset as an integer.
#pragma once

#include "kernels/cpu/Vector.h"

namespace mcc::cpu {

/// Reads 16 IEEE half floats.
MCC_INLINE F32x16 loadHalves(const uint8_t *from) {
  return __builtin_convertvector(loadVector<F16x16>(from), F32x16);
}

/// Reads 16 bytes as unsigned numbers.
MCC_INLINE U32x16 loadBytes(const uint8_t *from) { return __builtin_convertvector(loadVector<U8x16>(from), U32x16); }

/// Converts numbers below 2^31 to floats.
MCC_INLINE F32x16 toFloat(U32x16 numbers) { return __builtin_convertvector(bitsAs<I32x16>(numbers), F32x16); }

/// Bytes of a packed panel of `cols` columns.
template <class PanelFormat>
constexpr int64_t panelBytes(int64_t cols) {
  return (cols / PanelFormat::blockCols * PanelFormat::blockBytes + 63) / 64 * 64;
}

/// [column][16] f32.
struct PanelF32 {
  static constexpr int64_t blockCols = 1, blockBytes = 64;
  static constexpr int64_t groupCols = 1, stepCols = 1, panelsInFlight = 4;
  F32x16 value;
  MCC_INLINE PanelF32 load(const uint8_t *panel, int64_t group) { return {loadVector<F32x16>(panel + group * blockBytes)}; }
  MCC_INLINE_MEMBER void decode(int64_t, F32x16 (&out)[stepCols]) const { out[0] = value; }
};

/// [column][16] f16.
struct PanelF16 {
  static constexpr int64_t blockCols = 1, blockBytes = 32;
  static constexpr int64_t groupCols = 1, stepCols = 1, panelsInFlight = 4;
  F32x16 value;
  MCC_INLINE PanelF16 load(const uint8_t *panel, int64_t group) { return {loadHalves(panel + group * blockBytes)}; }
  MCC_INLINE_MEMBER void decode(int64_t, F32x16 (&out)[stepCols]) const { out[0] = value; }
};

/// [column][16] bf16.
struct PanelBF16 {
  static constexpr int64_t blockCols = 1, blockBytes = 32;
  static constexpr int64_t groupCols = 1, stepCols = 1, panelsInFlight = 4;
  F32x16 value;
  MCC_INLINE PanelBF16 load(const uint8_t *panel, int64_t group) {
    const U32x16 bits = __builtin_convertvector(loadVector<U16x16>(panel + group * blockBytes), U32x16);
    return {bitsAs<F32x16>(bits << 16)};
  }
  MCC_INLINE_MEMBER void decode(int64_t, F32x16 (&out)[stepCols]) const { out[0] = value; }
};

/// Block of 32 columns: d f16 [16], then int8 [column][16].
struct PanelQ8_0 {
  static constexpr int64_t blockCols = 32, blockBytes = 544;
  static constexpr int64_t groupCols = 32, stepCols = 1, panelsInFlight = 4;
  F32x16 scale;
  const uint8_t *quants;
  MCC_INLINE PanelQ8_0 load(const uint8_t *panel, int64_t group) {
    const uint8_t *block = panel + group * blockBytes;
    return {loadHalves(block), block + 32};
  }
  MCC_INLINE_MEMBER void decode(int64_t column, F32x16 (&out)[stepCols]) const {
    const I32x16 q = __builtin_convertvector(loadVector<I8x16>(quants + column * 16), I32x16);
    out[0] = scale * __builtin_convertvector(q, F32x16);
  }
};

/// Block of 32 columns: scale f32 [16], then E4M3 bytes [column][16]. Their bits, moved up by seven, are the half float of
/// their value / 256 (subnormals too), so that the scale takes a factor of 256: exact, a power of two.
struct PanelF8 {
  static constexpr int64_t blockCols = 32, blockBytes = 576;
  static constexpr int64_t groupCols = 32, stepCols = 1, panelsInFlight = 4;
  F32x16 scale;
  const uint8_t *elements;
  MCC_INLINE PanelF8 load(const uint8_t *panel, int64_t group) {
    const uint8_t *block = panel + group * blockBytes;
    return {loadVector<F32x16>(block) * 256.0f, block + 64};
  }
  MCC_INLINE_MEMBER void decode(int64_t column, F32x16 (&out)[stepCols]) const {
    const U16x16 bits = __builtin_convertvector(loadVector<U8x16>(elements + column * 16), U16x16);
    out[0] = scale * __builtin_convertvector(bitsAs<F16x16>((bits & 127) << 7 | (bits & 128) << 8), F32x16);
  }
};

/// The affine formats of 32 columns, value = scale q + offset. Nibbles are [pair][16]: column 2p low, 2p+1 high;
/// the fifth bits, where there are any, are u32 [16], bit = column.
template <int64_t bits>
struct AffinePanel {
  static constexpr int64_t groupCols = 32, stepCols = 2, panelsInFlight = 4;
  F32x16 scale, offset;
  U32x16 fifth;
  const uint8_t *quants;
  MCC_INLINE_MEMBER void decode(int64_t column, F32x16 (&out)[stepCols]) const {
    const U32x16 pair = loadBytes(quants + column * 8);
    U32x16 low = pair & 15, high = pair >> 4;
    if constexpr (bits == 5) {
      const U32x16 extra = fifth >> static_cast<uint32_t>(column);
      low |= (extra & 1) << 4;
      high |= (extra & 2) << 3;
    }
    out[0] = scale * toFloat(low) + offset;
    out[1] = scale * toFloat(high) + offset;
  }
};

/// Block: d f16 [16], nibbles; value d (q - 8).
struct PanelQ4_0 : AffinePanel<4> {
  static constexpr int64_t blockCols = 32, blockBytes = 288;
  MCC_INLINE AffinePanel<4> load(const uint8_t *panel, int64_t group) {
    const uint8_t *block = panel + group * blockBytes;
    const F32x16 scale = loadHalves(block);
    return {scale, scale * -8.0f, U32x16{}, block + 32};
  }
};

/// Block: d f16 [16], m f16 [16], nibbles; value d q + m.
struct PanelQ4_1 : AffinePanel<4> {
  static constexpr int64_t blockCols = 32, blockBytes = 320;
  MCC_INLINE AffinePanel<4> load(const uint8_t *panel, int64_t group) {
    const uint8_t *block = panel + group * blockBytes;
    return {loadHalves(block), loadHalves(block + 32), U32x16{}, block + 64};
  }
};

/// Block: d f16 [16], fifth bits, nibbles; value d (q - 16).
struct PanelQ5_0 : AffinePanel<5> {
  static constexpr int64_t blockCols = 32, blockBytes = 352;
  MCC_INLINE AffinePanel<5> load(const uint8_t *panel, int64_t group) {
    const uint8_t *block = panel + group * blockBytes;
    const F32x16 scale = loadHalves(block);
    return {scale, scale * -16.0f, loadVector<U32x16>(block + 32), block + 96};
  }
};

/// Block: d f16 [16], m f16 [16], fifth bits, nibbles; value d q + m.
struct PanelQ5_1 : AffinePanel<5> {
  static constexpr int64_t blockCols = 32, blockBytes = 384;
  MCC_INLINE AffinePanel<5> load(const uint8_t *panel, int64_t group) {
    const uint8_t *block = panel + group * blockBytes;
    return {loadHalves(block), loadHalves(block + 32), loadVector<U32x16>(block + 64), block + 128};
  }
};

/// The 6-bit scales and minima of Q4_K and Q5_K: bytes [12][16], per lane as ggml's `scales[12]`.
struct SixBitScales {
  U32x16 scale, minimum;
  MCC_INLINE SixBitScales load(const uint8_t *bytes, int64_t part) {
    const U32x16 first = loadBytes(bytes + (part < 4 ? part : part + 4) * 16);
    if (part < 4)
      return {first & 63, loadBytes(bytes + (part + 4) * 16) & 63};
    const U32x16 scaleTop = loadBytes(bytes + (part - 4) * 16) >> 6, minimumTop = loadBytes(bytes + part * 16) >> 6;
    return {(first & 15) | (scaleTop << 4), (first >> 4) | (minimumTop << 4)};
  }
};

/// Block of 256 columns: d, dmin f16 [16], scales [12][16], then 8 parts of 32 columns: nibbles. Value (d sc) q - dmin m.
struct PanelQ4_K : AffinePanel<4> {
  static constexpr int64_t blockCols = 256, blockBytes = 2304;
  MCC_INLINE AffinePanel<4> load(const uint8_t *panel, int64_t group) {
    const uint8_t *block = panel + (group / 8) * blockBytes;
    const int64_t part = group % 8;
    const SixBitScales six = SixBitScales::load(block + 64, part);
    return {loadHalves(block) * toFloat(six.scale), -(loadHalves(block + 32) * toFloat(six.minimum)), U32x16{},
            block + 256 + part * 256};
  }
};

/// As Q4_K, each part preceded by its fifth bits.
struct PanelQ5_K : AffinePanel<5> {
  static constexpr int64_t blockCols = 256, blockBytes = 2816;
  MCC_INLINE AffinePanel<5> load(const uint8_t *panel, int64_t group) {
    const uint8_t *block = panel + (group / 8) * blockBytes;
    const int64_t part = group % 8;
    const SixBitScales six = SixBitScales::load(block + 64, part);
    const uint8_t *quants = block + 256 + part * 320;
    return {loadHalves(block) * toFloat(six.scale), -(loadHalves(block + 32) * toFloat(six.minimum)),
            loadVector<U32x16>(quants), quants + 64};
  }
};

/// Block of 256 columns: d f16 [16], int8 scales [16][16], then 16 parts of 16 columns: upper two bits u32 [16]
/// (bits 2c, 2c+1 for column c), nibbles. Value (d sc) (q - 32).
struct PanelQ6_K {
  static constexpr int64_t blockCols = 256, blockBytes = 3360;
  static constexpr int64_t groupCols = 16, stepCols = 2, panelsInFlight = 4;
  F32x16 scale;
  U32x16 upper;
  const uint8_t *quants;
  MCC_INLINE PanelQ6_K load(const uint8_t *panel, int64_t group) {
    const uint8_t *block = panel + (group / 16) * blockBytes;
    const int64_t part = group % 16;
    const I32x16 factor = __builtin_convertvector(loadVector<I8x16>(block + 32 + part * 16), I32x16);
    const uint8_t *quants = block + 288 + part * 192;
    return {loadHalves(block) * __builtin_convertvector(factor, F32x16), loadVector<U32x16>(quants), quants + 64};
  }
  MCC_INLINE_MEMBER void decode(int64_t column, F32x16 (&out)[stepCols]) const {
    const U32x16 pair = loadBytes(quants + column * 8), top = upper >> static_cast<uint32_t>(2 * column);
    const U32x16 low = (pair & 15) | ((top & 3) << 4), high = (pair >> 4) | ((top & 12) << 2);
    out[0] = scale * __builtin_convertvector(bitsAs<I32x16>(low) - 32, F32x16);
    out[1] = scale * __builtin_convertvector(bitsAs<I32x16>(high) - 32, F32x16);
  }
};

} // namespace mcc::cpu
