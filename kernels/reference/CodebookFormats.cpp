// Dequantisation of iq1_*, iq2_* and iq3_* in plain scalar code: codewords, signs, and scales of groups of 32 or 16.
//
// As in Dequantize.cpp, the order of operations is part of the format and nothing is contracted. Fields are
// little-endian; d is an IEEE half. A group of 32 elements is four octets; an octet has one codeword of eight digits or
// two of four, and eight signs. Where seven bits stand for the signs, the eighth makes the number of minuses even.
#include "kernels/reference/CodebookFormats.h"

#include "kernels/reference/Codebooks.h"
#include "kernels/reference/Dequantize.h"

#include <bit>

namespace mcc {

namespace {

constexpr float kThreeLevels[3] = {8, 25, 43};
constexpr float kEightLevels[8] = {4, 12, 20, 28, 36, 44, 52, 62};

uint32_t read16(const uint8_t *in) { return static_cast<uint32_t>(in[0] | in[1] << 8); }

uint32_t read32(const uint8_t *in) { return read16(in) | read16(in + 2) << 16; }

float readHalf(const uint8_t *in) { return halfToFloat(static_cast<uint16_t>(read16(in))); }

/// Field `index` of `bits` bits.
int field(uint32_t word, int index, int bits) { return static_cast<int>(word >> (index * bits) & ((1u << bits) - 1)); }

/// Eight signs out of seven bits.
uint32_t evenSigns(uint32_t bits) {
  bits &= 127;
  return bits | static_cast<uint32_t>(std::popcount(bits) & 1) << 7;
}

/// out[i] = scale * level, minus where bit i of `signs` is set.
template <class Level>
void writeSigned(float *out, int count, float scale, uint32_t signs, Level level) {
  for (int i = 0; i < count; ++i)
    out[i] = scale * level(i) * (signs >> i & 1 ? -1.0f : 1.0f);
}

void writeOctet(float *out, const uint8_t *word, float scale, uint32_t signs) {
  writeSigned(out, 8, scale, signs, [=](int i) { return kThreeLevels[word[i]]; });
}

/// Levels -1, 0 and 1 moved by an eighth.
void writeTernary(float *out, const uint8_t *word, float scale, bool down) {
  float shift = down ? -0.125f : 0.125f;
  for (int i = 0; i < 8; ++i)
    out[i] = scale * (static_cast<float>(word[i] - 1) + shift);
}

} // namespace

/// d; for each group four index bytes, then 28 bits of signs under a scale of four bits.
void blockIq2Xxs(const uint8_t *in, float *out) {
  float d = readHalf(in);
  for (int group = 0; group < 8; ++group) {
    const uint8_t *indices = in + 2 + group * 8;
    uint32_t rest = read32(indices + 4);
    float scale = d * (0.5f + static_cast<float>(rest >> 28)) * 0.25f;
    for (int octet = 0; octet < 4; ++octet)
      writeOctet(out + group * 32 + octet * 8, codebookIq2Xxs().word(indices[octet]), scale,
                 evenSigns(static_cast<uint32_t>(field(rest, octet, 7))));
  }
}

/// d; 32 words of nine index bits under seven sign bits; a scale nibble for every two octets.
void blockIq2Xs(const uint8_t *in, float *out) {
  float d = readHalf(in);
  for (int octet = 0; octet < 32; ++octet) {
    uint32_t word = read16(in + 2 + octet * 2);
    float scale = d * (0.5f + static_cast<float>(field(in[66 + octet / 4], octet / 2 % 2, 4))) * 0.25f;
    writeOctet(out + octet * 8, codebookIq2Xs().word(static_cast<int>(word & 511)), scale, evenSigns(word >> 9));
  }
}

/// d; 32 low index bytes; 32 sign bytes; two high index bits for each octet; scale nibbles as in iq2_xs.
void blockIq2S(const uint8_t *in, float *out) {
  float d = readHalf(in);
  for (int octet = 0; octet < 32; ++octet) {
    int index = in[2 + octet] | field(in[66 + octet / 4], octet % 4, 2) << 8;
    float scale = d * (0.5f + static_cast<float>(field(in[74 + octet / 4], octet / 2 % 2, 4))) * 0.25f;
    writeOctet(out + octet * 8, codebookIq2S().word(index), scale, in[34 + octet]);
  }
}

/// d; 64 index bytes; for each group 28 bits of signs under a scale of four bits.
void blockIq3Xxs(const uint8_t *in, float *out) {
  float d = readHalf(in);
  for (int group = 0; group < 8; ++group) {
    uint32_t rest = read32(in + 66 + group * 4);
    float scale = d * (0.5f + static_cast<float>(rest >> 28)) * 0.5f;
    for (int quad = 0; quad < 8; ++quad) {
      const uint8_t *word = codebookIq3Xxs().word(in[2 + group * 8 + quad]);
      uint32_t signs = evenSigns(static_cast<uint32_t>(field(rest, quad / 2, 7)));
      writeSigned(out + group * 32 + quad * 4, 4, scale, signs >> (quad % 2 * 4),
                  [=](int i) { return kEightLevels[word[i]]; });
    }
  }
}

/// d; 64 low index bytes; a high index bit for each; 32 sign bytes; a scale nibble for each group.
void blockIq3S(const uint8_t *in, float *out) {
  float d = readHalf(in);
  for (int quad = 0; quad < 64; ++quad) {
    int index = in[2 + quad] | field(in[66 + quad / 8], quad % 8, 1) << 8;
    const uint8_t *word = codebookIq3S().word(index);
    float scale = d * static_cast<float>(1 + 2 * field(in[106 + quad / 16], quad / 8 % 2, 4));
    writeSigned(out + quad * 4, 4, scale, static_cast<uint32_t>(in[74 + quad / 2]) >> (quad % 2 * 4),
                [=](int i) { return static_cast<float>(2 * word[i] + 1); });
  }
}

/// d; 32 low index bytes; for each group four times three high index bits, a scale of three, and the shift's sign.
void blockIq1S(const uint8_t *in, float *out) {
  float d = readHalf(in);
  for (int octet = 0; octet < 32; ++octet) {
    uint32_t rest = read16(in + 34 + octet / 4 * 2);
    float scale = d * static_cast<float>(2 * field(rest, 4, 3) + 1);
    writeTernary(out + octet * 8, codebookIq1().word(in[2 + octet] | field(rest, octet % 4, 3) << 8), scale, rest >> 15);
  }
}

/// 32 low index bytes; for each octet three high index bits and the shift's sign; then four words, each with a nibble of d
/// on top of four scales of three bits, one for every two octets.
void blockIq1M(const uint8_t *in, float *out) {
  const uint8_t *scales = in + 48;
  uint32_t half = 0;
  for (int i = 0; i < 4; ++i)
    half |= read16(scales + i * 2) >> 12 << (i * 4);
  float d = halfToFloat(static_cast<uint16_t>(half));
  for (int octet = 0; octet < 32; ++octet) {
    int high = field(in[32 + octet / 2], octet % 2, 4);
    float scale = d * static_cast<float>(2 * field(read16(scales + octet / 8 * 2), octet / 2 % 4, 3) + 1);
    writeTernary(out + octet * 8, codebookIq1().word(in[octet] | (high & 7) << 8), scale, high >> 3);
  }
}

} // namespace mcc
