// Dequantisation of every format in plain scalar code, one function per block layout.
//
// Layouts are those of GGUF; multi-byte fields are little-endian. The order of operations is part of the format:
// (d*scale)*q - (dmin*min), each step rounded to f32, which is why this file is compiled without contraction.
#include "kernels/reference/Dequantize.h"

#include "kernels/reference/PublishedWeight.h"

#include <bit>
#include <cstring>

namespace mcc {

float halfToFloat(uint16_t half) {
  uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  uint32_t magnitude = half & 0x7fff;
  if (magnitude >= 0x7c00) // infinity or NaN
    return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude >= 0x400) // normal: the exponent's bias goes from 15 to 127
    return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
  float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(subnormal));
}

namespace {

uint32_t read16(const uint8_t *in) { return static_cast<uint32_t>(in[0] | in[1] << 8); }

uint32_t read32(const uint8_t *in) { return read16(in) | read16(in + 2) << 16; }

float readHalf(const uint8_t *in) { return halfToFloat(static_cast<uint16_t>(read16(in))); }

void blockF32(const uint8_t *in, float *out) { *out = std::bit_cast<float>(read32(in)); }

void blockF16(const uint8_t *in, float *out) { *out = readHalf(in); }

void blockBf16(const uint8_t *in, float *out) { *out = std::bit_cast<float>(read16(in) << 16); }

/// d, then 16 bytes: low nibbles are elements 0..15, high nibbles 16..31.
void blockQ4_0(const uint8_t *in, float *out) {
  float d = readHalf(in);
  const uint8_t *quants = in + 2;
  for (int j = 0; j < 16; ++j) {
    out[j] = static_cast<float>((quants[j] & 15) - 8) * d;
    out[j + 16] = static_cast<float>((quants[j] >> 4) - 8) * d;
  }
}

/// d, m, nibbles as in q4_0.
void blockQ4_1(const uint8_t *in, float *out) {
  float d = readHalf(in), m = readHalf(in + 2);
  const uint8_t *quants = in + 4;
  for (int j = 0; j < 16; ++j) {
    out[j] = static_cast<float>(quants[j] & 15) * d + m;
    out[j + 16] = static_cast<float>(quants[j] >> 4) * d + m;
  }
}

/// The 5-bit value of element `index`: nibbles as in q4_0, bit `index` of `high` on top.
int fiveBits(const uint8_t *quants, uint32_t high, int index) {
  int nibble = index < 16 ? quants[index] & 15 : quants[index - 16] >> 4;
  return nibble | static_cast<int>(high >> index & 1) << 4;
}

/// d, 32 high bits, nibbles.
void blockQ5_0(const uint8_t *in, float *out) {
  float d = readHalf(in);
  uint32_t high = read32(in + 2);
  for (int j = 0; j < 32; ++j)
    out[j] = static_cast<float>(fiveBits(in + 6, high, j) - 16) * d;
}

/// d, m, 32 high bits, nibbles.
void blockQ5_1(const uint8_t *in, float *out) {
  float d = readHalf(in), m = readHalf(in + 2);
  uint32_t high = read32(in + 4);
  for (int j = 0; j < 32; ++j)
    out[j] = static_cast<float>(fiveBits(in + 8, high, j)) * d + m;
}

/// d, 32 signed bytes.
void blockQ8_0(const uint8_t *in, float *out) {
  float d = readHalf(in);
  for (int j = 0; j < 32; ++j)
    out[j] = static_cast<float>(static_cast<int8_t>(in[2 + j])) * d;
}

struct ScaleAndMin {
  int scale, min;
};

/// The 6-bit scale and min of sub-block `j` out of the 12 packed bytes of q4_k and q5_k.
ScaleAndMin unpackScale(const uint8_t *packed, int j) {
  if (j < 4)
    return {packed[j] & 63, packed[j + 4] & 63};
  return {(packed[j + 4] & 15) | packed[j - 4] >> 6 << 4, packed[j + 4] >> 4 | packed[j] >> 6 << 4};
}

/// Nibble `l` of sub-block `s`: each 32 bytes hold two sub-blocks, low nibbles first.
int superNibble(const uint8_t *quants, int s, int l) { return quants[s / 2 * 32 + l] >> (s % 2 * 4) & 15; }

/// d, dmin, scales and mins of 8 sub-blocks of 32, nibbles.
void blockQ4_K(const uint8_t *in, float *out) {
  float d = readHalf(in), dmin = readHalf(in + 2);
  for (int s = 0; s < 8; ++s) {
    ScaleAndMin sub = unpackScale(in + 4, s);
    float scale = d * static_cast<float>(sub.scale), min = dmin * static_cast<float>(sub.min);
    for (int l = 0; l < 32; ++l)
      out[s * 32 + l] = scale * static_cast<float>(superNibble(in + 16, s, l)) - min;
  }
}

/// As q4_k, with 32 bytes of high bits before the nibbles: bit `s` of byte `l` belongs to element `l` of sub-block `s`.
void blockQ5_K(const uint8_t *in, float *out) {
  float d = readHalf(in), dmin = readHalf(in + 2);
  const uint8_t *high = in + 16, *quants = in + 48;
  for (int s = 0; s < 8; ++s) {
    ScaleAndMin sub = unpackScale(in + 4, s);
    float scale = d * static_cast<float>(sub.scale), min = dmin * static_cast<float>(sub.min);
    for (int l = 0; l < 32; ++l) {
      int quant = superNibble(quants, s, l) | (high[l] >> s & 1) << 4;
      out[s * 32 + l] = scale * static_cast<float>(quant) - min;
    }
  }
}

/// 128 bytes of low nibbles, 64 of high bit pairs, 16 signed scales, d. In each half of 128 elements, group g of 32
/// takes nibbles from byte g%2*32+l (high nibbles for g >= 2) and bits 2g, 2g+1 of the pair byte l.
void blockQ6_K(const uint8_t *in, float *out) {
  float d = readHalf(in + 208);
  for (int half = 0; half < 2; ++half) {
    const uint8_t *low = in + half * 64, *high = in + 128 + half * 32, *scales = in + 192 + half * 8;
    for (int g = 0; g < 4; ++g)
      for (int l = 0; l < 32; ++l) {
        int nibble = low[g % 2 * 32 + l] >> (g / 2 * 4) & 15;
        int quant = (nibble | (high[l] >> (2 * g) & 3) << 4) - 32;
        float scale = d * static_cast<float>(static_cast<int8_t>(scales[2 * g + l / 16]));
        out[half * 128 + g * 32 + l] = scale * static_cast<float>(quant);
      }
  }
}

/// A scale in f32, 32 E4M3 elements.
void blockF8(const uint8_t *in, float *out) {
  float scale = std::bit_cast<float>(read32(in));
  for (int j = 0; j < 32; ++j)
    out[j] = scale * e4m3ToFloat(in[4 + j]);
}

using BlockFunction = void (*)(const uint8_t *in, float *out);

BlockFunction blockFunction(Format format) {
  switch (format) {
  case Format::F32:
    return blockF32;
  case Format::F16:
    return blockF16;
  case Format::BF16:
    return blockBf16;
  case Format::Q4_0:
    return blockQ4_0;
  case Format::Q4_1:
    return blockQ4_1;
  case Format::Q5_0:
    return blockQ5_0;
  case Format::Q5_1:
    return blockQ5_1;
  case Format::Q8_0:
    return blockQ8_0;
  case Format::Q4_K:
    return blockQ4_K;
  case Format::Q5_K:
    return blockQ5_K;
  case Format::Q6_K:
    return blockQ6_K;
  case Format::F8:
    return blockF8;
  }
  return nullptr;
}

} // namespace

void dequantize(Format format, const uint8_t *in, float *out, int64_t elems) {
  const FormatInfo &info = formatInfo(format);
  BlockFunction function = blockFunction(format);
  for (int64_t block = 0; block < elems / info.blockElems; ++block)
    function(in + block * info.blockBytes, out + block * info.blockElems);
}

} // namespace mcc
