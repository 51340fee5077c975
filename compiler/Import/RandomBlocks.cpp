// Draws blocks of every storage format from a counter.
//
// Word w of a tensor is the splitmix64 finaliser (Steele, Lea, Flood 2014) of key + w * golden ratio, so any word can
// be had without those before it. Plain formats take two elements from a word: each the sum of four bytes, which is
// close to normal. Block formats take their quants straight from the words (uniform integers) and a scale that makes
// the deviation right; where the integers are centred on -1/2 the scale's sign is random, and where the format has an
// offset it cancels the mean. Scales vary by a quarter from block to block, so that no kernel can pass by luck.
#include "compiler/Import/RandomCheckpoint.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace mcc {

namespace {

using llvm::support::endian::write16le;
using llvm::support::endian::write32le;
using llvm::support::endian::write64le;

uint64_t wordAt(uint64_t key, uint64_t index) {
  uint64_t z = key + (index + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// Rounds to IEEE half, ties to even; |value| must be below 65520.
uint16_t toHalf(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  // Below 2^-14 the result is subnormal: adding 0.5 makes the adder round at 2^-24.
  uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<uint32_t>(0.5f);
  uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  return static_cast<uint16_t>(sign | (magnitude < (113u << 23) ? subnormal : normal));
}

/// Exact for the finite halves that toHalf() returns.
float fromHalf(uint16_t half) {
  uint32_t magnitude = half & 0x7fff, sign = uint32_t{half & 0x8000u} << 16;
  float value = magnitude >= 0x400 ? std::bit_cast<float>((magnitude << 13) + (112u << 23))
                                   : static_cast<float>(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}

uint16_t toBfloat(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// Standard deviation of the sum of four uniform bytes: sqrt(4 * (256^2 - 1) / 12).
constexpr double kByteSumDeviation = 147.79941362996;
constexpr int32_t kByteSumMean = 510;

/// Elements are made this many at a time, so that conversion is a loop of its own and the compiler vectorises it.
constexpr unsigned kBatch = 256;

/// Writes the unscaled elements 2 * word, 2 * word + 1, ... to `sums`, two for each of `words` words.
void drawSums(uint64_t key, uint64_t word, unsigned words, int32_t *sums) {
  for (unsigned i = 0; i < words; ++i) {
    uint64_t bits = wordAt(key, word + i);
    uint64_t pairs = (bits & 0x00ff00ff00ff00ff) + (bits >> 8 & 0x00ff00ff00ff00ff);
    pairs += pairs >> 16;
    sums[2 * i] = static_cast<int32_t>(pairs & 0xffff) - kByteSumMean;
    sums[2 * i + 1] = static_cast<int32_t>(pairs >> 32 & 0xffff) - kByteSumMean;
  }
}

/// Writes elements [first, first + count), each converted to T by `convert`.
template <typename T, typename Convert>
void fillElements(const RandomRecipe &recipe, uint64_t first, uint64_t count, uint8_t *out, Convert convert) {
  static_assert(std::endian::native == std::endian::little, "the formats are little-endian, and written as they are");
  float scale = static_cast<float>(recipe.deviation / kByteSumDeviation), mean = static_cast<float>(recipe.mean);
  int32_t sums[kBatch];
  T converted[kBatch];
  while (count > 0) {
    unsigned skipped = first % 2, batch = static_cast<unsigned>(std::min<uint64_t>(count, kBatch - skipped));
    drawSums(recipe.key, first / 2, (skipped + batch + 1) / 2, sums);
    for (unsigned i = 0; i < batch; ++i)
      converted[i] = convert(static_cast<float>(sums[skipped + i]) * scale + mean);
    std::memcpy(out, converted, batch * sizeof(T));
    out += batch * sizeof(T);
    first += batch;
    count -= batch;
  }
}

/// The words of one block, in order.
class BlockWords {
public:
  BlockWords(uint64_t key, uint64_t block, uint64_t wordsPerBlock) : key(key), index(block * wordsPerBlock) {}
  uint64_t next() { return wordAt(key, index++); }
  /// Fills `bytes` (a multiple of 8) from as many words as that takes.
  void fill(uint8_t *out, unsigned bytes) {
    for (unsigned at = 0; at < bytes; at += 8)
      write64le(out + at, next());
  }

private:
  uint64_t key, index;
};

/// Returns `unit` times 0.75 .. 1.25 by the low byte of `word`.
float variedScale(float unit, uint64_t word) { return unit * (0.75f + static_cast<float>(word & 0xff) * (0.5f / 255)); }

/// As variedScale(), with a random sign.
float signedScale(float unit, uint64_t word) { return (word & 0x100 ? -1.0f : 1.0f) * variedScale(unit, word); }

/// Standard deviation of a uniform integer of `levels` values.
double levelDeviation(int levels) { return std::sqrt((double(levels) * levels - 1) / 12); }

/// Root mean square of a sub-block scale, uniform on 32 .. 63.
constexpr double kSubscaleRms = 48.382;

/// Root mean square of an E4M3 element with a uniform exponent of 0 to 7 and a uniform mantissa and sign.
constexpr double kF8Rms = 0.59838;

uint8_t subscale(uint64_t word, unsigned index) { return 32 + (word >> (5 * index) & 31); }

/// Writes the 12 bytes of 6-bit scales and mins of q4_k and q5_k, each min equal to its scale.
void packSubscales(uint64_t word, uint8_t *out) {
  for (unsigned j = 0; j < 4; ++j) {
    uint8_t low = subscale(word, j), high = subscale(word, j + 4);
    out[j] = out[j + 4] = static_cast<uint8_t>(low | high >> 4 << 6);
    out[j + 8] = static_cast<uint8_t>((high & 15) * 0x11);
  }
}

/// Blocks with one scale and centred integers: q8_0, q4_0, q5_0.
void centredBlock(BlockWords words, float unit, unsigned quantBytes, uint8_t *out) {
  uint64_t word = words.next();
  write16le(out, toHalf(signedScale(unit, word)));
  uint8_t *quants = out + 2;
  if (quantBytes % 8 == 4) { // q5_0: the fifth bits
    write32le(quants, static_cast<uint32_t>(word >> 32));
    quants += 4;
  }
  words.fill(quants, quantBytes & ~7u);
}

/// f8: elements with exponents of at most 7, so that no block has a NaN; `unit` is for a root mean square of kF8Rms.
void f8Block(BlockWords words, float unit, uint8_t *out) {
  write32le(out, std::bit_cast<uint32_t>(signedScale(unit, words.next())));
  words.fill(out + 4, 32);
  for (unsigned j = 0; j < 32; ++j)
    out[4 + j] &= 0xbf;
}

/// Blocks with scale and offset: q4_1, q5_1. The offset is minus half the range.
void offsetBlock(BlockWords words, float unit, float halfRange, unsigned quantBytes, uint8_t *out) {
  uint64_t word = words.next();
  uint16_t scale = toHalf(variedScale(unit, word));
  write16le(out, scale);
  write16le(out + 2, toHalf(-halfRange * fromHalf(scale)));
  uint8_t *quants = out + 4;
  if (quantBytes % 8 == 4) {
    write32le(quants, static_cast<uint32_t>(word >> 32));
    quants += 4;
  }
  words.fill(quants, quantBytes & ~7u);
}

/// q4_k and q5_k: two levels of scales; the mins cancel the mean.
void superBlock(BlockWords words, float unit, float halfRange, unsigned quantBytes, uint8_t *out) {
  uint64_t word = words.next();
  uint16_t scale = toHalf(variedScale(unit, word));
  write16le(out, scale);
  write16le(out + 2, toHalf(halfRange * fromHalf(scale)));
  packSubscales(words.next(), out + 4);
  words.fill(out + 16, quantBytes);
}

/// q6_k: 16 signed sub-block scales.
void sixBitBlock(BlockWords words, float unit, uint8_t *out) {
  words.fill(out, 192);
  uint64_t signs = words.next();
  uint64_t scales[2] = {words.next(), words.next()};
  for (unsigned j = 0; j < 16; ++j) {
    int scale = subscale(scales[j / 8], j % 8);
    out[192 + j] = static_cast<uint8_t>(signs >> j & 1 ? -scale : scale);
  }
  write16le(out + 208, toHalf(variedScale(unit, signs >> 32)));
}

template <typename Fill>
void forBlocks(uint64_t key, uint64_t first, uint64_t count, uint64_t wordsPerBlock, uint64_t blockBytes, uint8_t *out,
               Fill fill) {
  for (uint64_t i = 0; i < count; ++i)
    fill(BlockWords(key, first + i, wordsPerBlock), out + i * blockBytes);
}

} // namespace

void fillRandomBlocks(Format format, const RandomRecipe &recipe, uint64_t first, uint64_t count, uint8_t *out) {
  auto unit = [&](int levels, double subscaleRms = 1) {
    return static_cast<float>(recipe.deviation / (levelDeviation(levels) * subscaleRms));
  };
  uint64_t bytes = static_cast<uint64_t>(formatInfo(format).blockBytes);
  auto blocks = [&](uint64_t words, auto fill) { forBlocks(recipe.key, first, count, words, bytes, out, fill); };
  switch (format) {
  case Format::F32:
    return fillElements<float>(recipe, first, count, out, [](float value) { return value; });
  case Format::F16:
    return fillElements<uint16_t>(recipe, first, count, out, [](float value) { return toHalf(value); });
  case Format::BF16:
    return fillElements<uint16_t>(recipe, first, count, out, [](float value) { return toBfloat(value); });
  case Format::Q8_0:
    return blocks(5, [u = unit(256)](BlockWords words, uint8_t *to) { centredBlock(words, u, 32, to); });
  case Format::Q4_0:
    return blocks(3, [u = unit(16)](BlockWords words, uint8_t *to) { centredBlock(words, u, 16, to); });
  case Format::Q5_0:
    return blocks(3, [u = unit(32)](BlockWords words, uint8_t *to) { centredBlock(words, u, 20, to); });
  case Format::Q4_1:
    return blocks(3, [u = unit(16)](BlockWords words, uint8_t *to) { offsetBlock(words, u, 7.5f, 16, to); });
  case Format::Q5_1:
    return blocks(3, [u = unit(32)](BlockWords words, uint8_t *to) { offsetBlock(words, u, 15.5f, 20, to); });
  case Format::Q4_K:
    return blocks(18,
                  [u = unit(16, kSubscaleRms)](BlockWords words, uint8_t *to) { superBlock(words, u, 7.5f, 128, to); });
  case Format::Q5_K:
    return blocks(
        22, [u = unit(32, kSubscaleRms)](BlockWords words, uint8_t *to) { superBlock(words, u, 15.5f, 160, to); });
  case Format::Q6_K:
    return blocks(27, [u = unit(64, kSubscaleRms)](BlockWords words, uint8_t *to) { sixBitBlock(words, u, to); });
  case Format::F8:
    return blocks(5, [u = static_cast<float>(recipe.deviation / kF8Rms)](BlockWords words, uint8_t *to) { f8Block(words, u, to); });
  }
  llvm_unreachable("every format is above");
}

} // namespace mcc
