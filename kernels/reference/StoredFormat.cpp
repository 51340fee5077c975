// Dequantisation of the formats without kernels, in plain scalar code, one function per block layout.
//
// As in Dequantize.cpp, the order of operations is part of the format and nothing is contracted. Fields are
// little-endian; d is an IEEE half unless said.
#include "kernels/reference/StoredFormat.h"

#include "kernels/reference/CodebookFormats.h"
#include "kernels/reference/Dequantize.h"

#include <bit>

namespace mcc {

namespace {

uint32_t read16(const uint8_t *in) { return static_cast<uint32_t>(in[0] | in[1] << 8); }

float readHalf(const uint8_t *in) { return halfToFloat(static_cast<uint16_t>(read16(in))); }

/// Bit pair `part` of `byte`.
int twoBits(uint8_t byte, int part) { return byte >> (2 * part) & 3; }

/// 16 bytes of scale (low nibble) and min (high), 64 of bit pairs, d, dmin. In each half of 128 elements, pair `part`
/// of 32 bytes makes 32 elements, two sub-blocks of 16.
void blockQ2_K(const uint8_t *in, float *out) {
  float d = readHalf(in + 80), dmin = readHalf(in + 82);
  for (int sub = 0; sub < 16; ++sub) {
    float scale = d * static_cast<float>(in[sub] & 15), min = dmin * static_cast<float>(in[sub] >> 4);
    const uint8_t *pairs = in + 16 + sub / 8 * 32 + sub % 2 * 16;
    for (int l = 0; l < 16; ++l)
      out[sub * 16 + l] = scale * static_cast<float>(twoBits(pairs[l], sub % 8 / 2)) - min;
  }
}

/// 32 bytes of third bits, 64 of bit pairs as in q2_k, 12 of 6-bit scales, d. Scales are offset by 32; their low
/// nibbles come first, then the two high bits. Bit s of byte l is for element l of the s-th run of 32.
void blockQ3_K(const uint8_t *in, float *out) {
  const uint8_t *high = in, *packed = in + 96;
  float d = readHalf(in + 108);
  for (int sub = 0; sub < 16; ++sub) {
    int low = sub < 8 ? packed[sub] & 15 : packed[sub - 8] >> 4;
    int scale = (low | twoBits(packed[8 + sub % 4], sub / 4) << 4) - 32;
    float step = d * static_cast<float>(scale);
    const uint8_t *pairs = in + 32 + sub / 8 * 32 + sub % 2 * 16;
    for (int l = 0; l < 16; ++l) {
      bool third = high[sub % 2 * 16 + l] >> (sub / 2) & 1;
      out[sub * 16 + l] = step * static_cast<float>(twoBits(pairs[l], sub % 8 / 2) - (third ? 0 : 4));
    }
  }
}

/// The 16 levels of iq4_nl and iq4_xs.
constexpr int8_t kFourBitLevels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/// d, nibbles as in q4_0, each an index of a level.
void blockIq4Nl(const uint8_t *in, float *out) {
  float d = readHalf(in);
  for (int j = 0; j < 16; ++j) {
    out[j] = d * static_cast<float>(kFourBitLevels[in[2 + j] & 15]);
    out[j + 16] = d * static_cast<float>(kFourBitLevels[in[2 + j] >> 4]);
  }
}

/// d, 16 bits of high scale bits, 4 bytes of low scale nibbles, nibbles; sub-blocks of 32 as in iq4_nl.
void blockIq4Xs(const uint8_t *in, float *out) {
  float d = readHalf(in);
  uint32_t high = read16(in + 2);
  for (int sub = 0; sub < 8; ++sub) {
    int low = in[4 + sub / 2] >> (sub % 2 * 4) & 15;
    int scale = (low | static_cast<int>(high >> (2 * sub) & 3) << 4) - 32;
    float step = d * static_cast<float>(scale);
    const uint8_t *nibbles = in + 8 + sub * 16;
    for (int j = 0; j < 16; ++j) {
      out[sub * 32 + j] = step * static_cast<float>(kFourBitLevels[nibbles[j] & 15]);
      out[sub * 32 + j + 16] = step * static_cast<float>(kFourBitLevels[nibbles[j] >> 4]);
    }
  }
}

/// Digit `place` (0 is the first) of a byte that holds five base-3 digits as a fraction of 256; minus one.
int ternaryDigit(uint8_t byte, int place) {
  constexpr uint8_t powers[5] = {1, 3, 9, 27, 81};
  uint8_t shifted = static_cast<uint8_t>(byte * powers[place]);
  return (shifted * 3 >> 8) - 1;
}

/// 48 bytes of five digits (32, then 16), 4 bytes of four digits, d. Within a group, the first digits of all bytes
/// come first.
void blockTq1_0(const uint8_t *in, float *out) {
  float d = readHalf(in + 52);
  struct Group {
    int first, bytes, digits;
  };
  for (Group group : {Group{0, 32, 5}, Group{32, 16, 5}, Group{48, 4, 4}})
    for (int place = 0; place < group.digits; ++place)
      for (int i = 0; i < group.bytes; ++i)
        *out++ = static_cast<float>(ternaryDigit(in[group.first + i], place)) * d;
}

/// 64 bytes of bit pairs, d; pair `part` of each 32 bytes makes 32 elements.
void blockTq2_0(const uint8_t *in, float *out) {
  float d = readHalf(in + 64);
  for (int run = 0; run < 8; ++run)
    for (int l = 0; l < 32; ++l)
      out[run * 32 + l] = static_cast<float>(twoBits(in[run / 4 * 32 + l], run % 4) - 1) * d;
}

/// Twice the 16 values of a 4-bit float with 2 exponent bits and 1 mantissa bit (both zeros positive).
constexpr int8_t kDoubledFp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// Half of 2^(exponent - 127), exact down to exponent 0.
float halfPowerOfTwo(uint8_t exponent) {
  return std::bit_cast<float>(exponent < 2 ? 0x00200000u << exponent : (exponent - 1u) << 23);
}

/// An exponent byte, nibbles as in q4_0.
void blockMxfp4(const uint8_t *in, float *out) {
  float d = halfPowerOfTwo(in[0]);
  for (int j = 0; j < 16; ++j) {
    out[j] = static_cast<float>(kDoubledFp4[in[1 + j] & 15]) * d;
    out[j + 16] = static_cast<float>(kDoubledFp4[in[1 + j] >> 4]) * d;
  }
}

/// Half the value of an 8-bit float with 4 exponent bits (bias 7) and 3 mantissa bits; the sign bit is not used, and
/// the NaN code counts as zero.
float halfFp8(uint8_t bits) {
  int exponent = bits >> 3 & 15, mantissa = bits & 7;
  if ((bits & 0x7f) == 0x7f)
    return 0;
  float value = exponent == 0 ? static_cast<float>(mantissa) * 0x1p-9f
                              : static_cast<float>(8 + mantissa) * std::bit_cast<float>((exponent + 117u) << 23);
  return value * 0.5f;
}

/// Four fp8 scales, nibbles: sub-blocks of 16, low nibbles of 8 bytes first.
void blockNvfp4(const uint8_t *in, float *out) {
  for (int sub = 0; sub < 4; ++sub) {
    float d = halfFp8(in[sub]);
    const uint8_t *nibbles = in + 4 + sub * 8;
    for (int j = 0; j < 8; ++j) {
      out[sub * 16 + j] = static_cast<float>(kDoubledFp4[nibbles[j] & 15]) * d;
      out[sub * 16 + j + 8] = static_cast<float>(kDoubledFp4[nibbles[j] >> 4]) * d;
    }
  }
}

/// d, 128 signs, low bit first: 1 is +d, 0 is -d.
void blockQ1_0(const uint8_t *in, float *out) {
  float d = readHalf(in);
  for (int j = 0; j < 128; ++j)
    out[j] = in[2 + j / 8] >> (j % 8) & 1 ? d : -d;
}

/// d, 64 bit pairs, low pair first, offset by one.
void blockQ2_0(const uint8_t *in, float *out) {
  float d = readHalf(in);
  for (int j = 0; j < 64; ++j)
    out[j] = static_cast<float>(twoBits(in[2 + j / 4], j % 4) - 1) * d;
}

const StoredFormat kStoredFormats[] = {
    {"q2_k", 10, 256, 84, blockQ2_K},     {"q3_k", 11, 256, 110, blockQ3_K},  {"iq4_nl", 20, 32, 18, blockIq4Nl},
    {"iq4_xs", 23, 256, 136, blockIq4Xs}, {"tq1_0", 34, 256, 54, blockTq1_0}, {"tq2_0", 35, 256, 66, blockTq2_0},
    {"mxfp4", 39, 32, 17, blockMxfp4},    {"nvfp4", 40, 64, 36, blockNvfp4},  {"q1_0", 41, 128, 18, blockQ1_0},
    {"q2_0", 42, 64, 18, blockQ2_0},
    {"iq2_xxs", 16, 256, 66, blockIq2Xxs}, {"iq2_xs", 17, 256, 74, blockIq2Xs},   {"iq2_s", 22, 256, 82, blockIq2S},
    {"iq3_xxs", 18, 256, 98, blockIq3Xxs}, {"iq3_s", 21, 256, 110, blockIq3S},    {"iq1_s", 19, 256, 50, blockIq1S},
    {"iq1_m", 29, 256, 56, blockIq1M},
};

} // namespace

const StoredFormat *storedFormatFromGguf(uint32_t id) {
  for (const StoredFormat &format : kStoredFormats)
    if (format.ggufId == id)
      return &format;
  return nullptr;
}

const StoredFormat *parseStoredFormat(std::string_view name) {
  for (const StoredFormat &format : kStoredFormats)
    if (format.name == name)
      return &format;
  return nullptr;
}

void dequantizeStored(const StoredFormat &format, const uint8_t *in, float *out, int64_t elems) {
  for (int64_t block = 0; block < elems / format.blockElems; ++block)
    format.dequantizeBlock(in + block * format.blockBytes, out + block * format.blockElems);
}

} // namespace mcc
