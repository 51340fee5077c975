// Dequantisation of published checkpoints' weights in plain scalar code, from the definitions in PublishedWeight.h.
//
// GPTQ and AWQ store matrices with outputs along the contiguous dimension, so their loops walk the stored rows and
// write the wanted outputs' columns: neighbouring outputs come from neighbouring words.
#include "kernels/reference/PublishedWeight.h"

#include "kernels/reference/Dequantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace mcc {

float Scalars::at(int64_t index) const {
  float value;
  dequantize(format, data + index * formatInfo(format).blockBytes, &value, 1);
  return value;
}

static uint32_t wordAt(const uint8_t *words, int64_t index) {
  uint32_t word;
  std::memcpy(&word, words + index * 4, 4);
  return word;
}

namespace {

/// Scales and zeros of the rows asked for, of one group at a time.
struct GroupParameters {
  int64_t group = -1;
  std::vector<float> scales, zeros;

  /// Makes them those of `next`; `zeroOf(i)` gives the zero of the i-th row asked for.
  template <typename ZeroOf>
  void turnTo(int64_t next, const Scalars &all, int64_t first, ZeroOf zeroOf) {
    if (next == group)
      return;
    group = next;
    for (size_t i = 0; i < scales.size(); ++i) {
      scales[i] = all.at(first + static_cast<int64_t>(i));
      zeros[i] = static_cast<float>(zeroOf(static_cast<int64_t>(i)));
    }
  }
};

} // namespace

void dequantizeRows(const GptqWeight &w, int64_t row, int64_t count, float *out) {
  const int64_t perWord = 32 / w.bits;
  const uint32_t mask = (1u << w.bits) - 1;
  GroupParameters parameters{-1, std::vector<float>(count), std::vector<float>(count)};
  for (int64_t c = 0; c < w.cols; ++c) {
    const int64_t group = w.groups ? wordAt(w.groups, c) : c / w.groupSize;
    parameters.turnTo(group, w.scales, group * w.rows + row, [&](int64_t i) {
      const int64_t r = row + i;
      const uint32_t stored = wordAt(w.zeros, group * (w.rows / perWord) + r / perWord) >> w.bits * (r % perWord);
      return (stored + w.zerosLessOne) & mask;
    });
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t quant = wordAt(w.quants, c / perWord * w.rows + row + i) >> w.bits * (c % perWord) & mask;
      out[i * w.cols + c] = parameters.scales[i] * (static_cast<float>(quant) - parameters.zeros[i]);
    }
  }
}

/// Returns the 4 bits that belong to row `row` of word row `line` of [lines, rows / 8] words.
static uint32_t awqNibble(const uint8_t *words, int64_t line, int64_t rows, int64_t row) {
  // Row 2k of a word is its nibble k, row 2k + 1 its nibble 4 + k.
  const int64_t inWord = row % 8, nibble = inWord / 2 + inWord % 2 * 4;
  return wordAt(words, line * (rows / 8) + row / 8) >> 4 * nibble & 15;
}

void dequantizeRows(const AwqWeight &w, int64_t row, int64_t count, float *out) {
  GroupParameters parameters{-1, std::vector<float>(count), std::vector<float>(count)};
  for (int64_t c = 0; c < w.cols; ++c) {
    const int64_t group = c / w.groupSize;
    parameters.turnTo(group, w.scales, group * w.rows + row,
                      [&](int64_t i) { return awqNibble(w.zeros, group, w.rows, row + i); });
    for (int64_t i = 0; i < count; ++i)
      out[i * w.cols + c] =
          (static_cast<float>(awqNibble(w.quants, c, w.rows, row + i)) - parameters.zeros[i]) * parameters.scales[i];
  }
}

float e4m3ToFloat(uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  if ((bits & 0x7f) == 0x7f)
    return NAN;
  if (exponent == 0)
    return sign * std::ldexp(static_cast<float>(mantissa), -9);
  return sign * std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
}

void dequantizeRows(const Fp8Weight &w, int64_t row, int64_t count, float *out) {
  float e4m3[256];
  for (int bits = 0; bits < 256; ++bits)
    e4m3[bits] = e4m3ToFloat(static_cast<uint8_t>(bits));
  const int64_t blocks = (w.cols + w.blockCols - 1) / w.blockCols;
  for (int64_t r = row; r < row + count; ++r)
    for (int64_t block = 0; block < blocks; ++block) {
      const float scale = w.scales.at(r / w.blockRows * blocks + block);
      for (int64_t c = block * w.blockCols; c < std::min(w.cols, (block + 1) * w.blockCols); ++c)
        *out++ = e4m3[w.elements[r * w.cols + c]] * scale;
    }
}

bool fitsF8(const Fp8Weight &w) { return w.cols % 32 == 0 && (w.blockCols % 32 == 0 || w.blockCols >= w.cols); }

void storeRowsAsF8(const Fp8Weight &w, int64_t row, int64_t count, uint8_t *out) {
  const int64_t blocks = (w.cols + w.blockCols - 1) / w.blockCols;
  for (int64_t r = row; r < row + count; ++r)
    for (int64_t c = 0; c < w.cols; c += 32, out += 36) {
      const uint8_t *elements = w.elements + r * w.cols + c;
      float scale = w.scales.at(r / w.blockRows * blocks + c / w.blockCols);
      for (int64_t i = 0; i < 32; ++i) {
        const bool nan = (elements[i] & 127) == 127;
        out[4 + i] = nan ? 0 : elements[i];
        if (nan)
          scale = std::numeric_limits<float>::quiet_NaN();
      }
      std::memcpy(out, &scale, 4);
    }
}

void dequantizeRows(const Mxfp4Weight &w, int64_t row, int64_t count, float *out) {
  static constexpr float e2m1[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
  const int64_t blocks = w.in / 32;
  for (int64_t o = 0; o < w.out; ++o)
    for (int64_t i = 0; i < count; ++i) {
      const int64_t expert = (row + i) / w.in, c = (row + i) % w.in;
      const int64_t block = (expert * w.out + o) * blocks + c / 32;
      const uint8_t byte = w.blocks[block * 16 + c % 32 / 2];
      out[i * w.out + o] = std::ldexp(e2m1[c % 2 == 0 ? byte & 15 : byte >> 4], w.scales[block] - 127);
    }
}

} // namespace mcc
