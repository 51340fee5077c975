// Reference dequantisation: blocks whose values are worked out by hand from the format, one per layout.
#include "kernels/reference/Codebooks.h"
#include "kernels/reference/Dequantize.h"
#include "kernels/reference/StoredFormat.h"

#include "compiler/Import/Gguf.h"

#include "doctest/doctest.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

using namespace mcc;

namespace {

constexpr uint8_t kOneLow = 0x00, kOneHigh = 0x3c; // half 1.0

std::vector<float> dequantized(Format format, const std::vector<uint8_t> &block) {
  const FormatInfo &info = formatInfo(format);
  REQUIRE(block.size() == static_cast<size_t>(info.blockBytes));
  std::vector<float> values(info.blockElems);
  dequantize(format, block.data(), values.data(), info.blockElems);
  return values;
}

} // namespace

TEST_CASE("halves: every one of the 65536 is exact") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = halfToFloat(static_cast<uint16_t>(bits));
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == 31 && mantissa != 0) {
      CHECK(std::isnan(value));
      continue;
    }
    double expected = exponent == 31  ? INFINITY
                      : exponent == 0 ? std::ldexp(mantissa, -24)
                                      : std::ldexp(1024 + mantissa, exponent - 25);
    REQUIRE(value == sign * expected);
    REQUIRE(std::signbit(value) == (sign < 0));
  }
}

TEST_CASE("q4_0 and q4_1: low nibbles first") {
  std::vector<uint8_t> block(18);
  block[1] = 0x40; // d = 2
  block[2] = 0xf1; // elements 0 and 16
  std::vector<float> values = dequantized(Format::Q4_0, block);
  CHECK(values[0] == (1 - 8) * 2);
  CHECK(values[16] == (15 - 8) * 2);
  CHECK(values[31] == -16);
  block = std::vector<uint8_t>(20);
  block[1] = 0x40;     // d = 2
  block[3] = kOneHigh; // m = 1
  block[4 + 15] = 0x32;
  values = dequantized(Format::Q4_1, block);
  CHECK(values[15] == 5);
  CHECK(values[31] == 7);
  CHECK(values[0] == 1);
}

TEST_CASE("q5_0, q5_1, q8_0") {
  std::vector<uint8_t> block(22);
  block[1] = kOneHigh;
  block[2] = 1, block[5] = 0x80; // high bits of elements 0 and 31
  block[6] = 3;
  std::vector<float> values = dequantized(Format::Q5_0, block);
  CHECK(values[0] == 3 + 16 - 16);
  CHECK(values[31] == 0);
  CHECK(values[1] == -16);
  block = std::vector<uint8_t>(24);
  block[1] = block[3] = kOneHigh;
  block[5] = 2; // high bit of element 9
  block[8 + 9] = 4;
  values = dequantized(Format::Q5_1, block);
  CHECK(values[9] == 4 + 16 + 1);
  CHECK(values[25] == 1);
  block = std::vector<uint8_t>(34, 0x80);
  block[0] = kOneLow, block[1] = kOneHigh;
  values = dequantized(Format::Q8_0, block);
  CHECK(values[31] == -128);
}

TEST_CASE("q4_k and q5_k: six-bit scales in two places") {
  std::vector<uint8_t> block(144);
  block[1] = block[3] = kOneHigh;
  block[4 + 1] = 0x80 | 5;   // scale of sub-block 1; two high bits of scale 5
  block[4 + 5] = 0x40 | 7;   // min of sub-block 1; two high bits of min 5
  block[4 + 9] = 0x32;       // low bits of scale 5 (2) and min 5 (3)
  block[16 + 3] = 0xa0;      // element 3 of sub-block 1
  block[16 + 64 + 4] = 0x90; // element 4 of sub-block 5
  std::vector<float> values = dequantized(Format::Q4_K, block);
  CHECK(values[32 + 3] == 5 * 10 - 7);
  CHECK(values[5 * 32 + 4] == (2 | 2 << 4) * 9 - (3 | 1 << 4));
  CHECK(values[3] == 0);
  block.insert(block.begin() + 16, 32, 0);
  block[16 + 3] = 1 << 1; // high bit of element 3 of sub-block 1
  values = dequantized(Format::Q5_K, block);
  CHECK(values[32 + 3] == 5 * 26 - 7);
  CHECK(values[5 * 32 + 4] == 34 * 9 - 19);
}

TEST_CASE("q6_k: signed scales") {
  std::vector<uint8_t> block(210);
  block[209] = kOneHigh;
  block[192 + 8 + 7] = 0xfe;  // -2: scale of the last 16 elements
  block[64 + 32 + 31] = 0x50; // high nibble: element 31 of group 3 in the second half
  block[128 + 32 + 31] = 0xc0;
  std::vector<float> values = dequantized(Format::Q6_K, block);
  CHECK(values[255] == -2 * (5 + 48 - 32));
  CHECK(values[254] == -2 * -32);
  CHECK(values[0] == 0);
}

TEST_CASE("formats without kernels: one block each by hand") {
  auto values = [](const char *name, std::vector<uint8_t> block) {
    const StoredFormat *format = parseStoredFormat(name);
    REQUIRE(format);
    block.resize(format->blockBytes);
    std::vector<float> out(format->blockElems);
    dequantizeStored(*format, block.data(), out.data(), format->blockElems);
    return out;
  };
  std::vector<uint8_t> block(84);
  block[81] = block[83] = kOneHigh;
  block[9] = 0x25;            // sub-block 9: scale 5, min 2
  block[16 + 32 + 16] = 0x03; // its first element
  CHECK(values("q2_k", block)[9 * 16] == 5 * 3 - 2);

  block = std::vector<uint8_t>(110);
  block[109] = kOneHigh;
  block[96 + 1] = 0x70;       // low nibble of scale 9 ...
  block[96 + 8 + 1] = 0x30;   // ... and its high bits: 55 - 32
  block[32 + 32 + 16] = 0x02; // element 0 of sub-block 9
  CHECK(values("q3_k", block)[9 * 16] == 23 * (2 - 4));
  block[16] = 0x10; // its third bit: the fifth run of 32
  CHECK(values("q3_k", block)[9 * 16] == 23 * 2);

  CHECK(values("iq4_nl", {0, kOneHigh, 0xf0})[0] == -127);
  CHECK(values("iq4_nl", {0, kOneHigh, 0xf0})[16] == 113);
  CHECK(values("iq4_xs", {0, kOneHigh, 3, 0, 1, 0, 0, 0, 0x08})[0] == (1 + 48 - 32) * 1);
  CHECK(values("mxfp4", {128, 0x70})[16] == 12);
  CHECK(values("mxfp4", {0, 0x10})[16] == 0x1p-128f);
  CHECK(values("nvfp4", {0, 0x38, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x20})[16 + 8] == 1);
  CHECK(values("q1_0", {0, kOneHigh, 0x02})[0] == -1);
  CHECK(values("q1_0", {0, kOneHigh, 0x02})[1] == 1);
  CHECK(values("q2_0", {0, kOneHigh, 0x0c})[1] == 2);
  block = std::vector<uint8_t>(66);
  block[65] = kOneHigh;
  block[32 + 3] = 0x20; // pair 2 of byte 3 of the second half
  CHECK(values("tq2_0", block)[128 + 64 + 3] == 1);
  block = std::vector<uint8_t>(54);
  block[53] = kOneHigh;
  block[48 + 1] = 0xff; // all four digits are 2
  CHECK(values("tq1_0", block)[240 + 1] == 1);
  CHECK(values("tq1_0", block)[240 + 2] == -1);
}

TEST_CASE("plain formats") {
  CHECK(dequantized(Format::F32, {0, 0, 0xc0, 0x3f})[0] == 1.5f);
  CHECK(dequantized(Format::BF16, {0xc0, 0xbf})[0] == -1.5f);
  CHECK(dequantized(Format::F16, {0x01, 0x00})[0] == 0x1p-24f);
}

TEST_CASE("the tables of ggml types agree") {
  int shared = 0;
  for (uint32_t id = 0; id < 64; ++id) {
    if (const StoredFormat *stored = storedFormatFromGguf(id)) {
      const GgmlTypeInfo *type = ggmlTypeInfo(id);
      REQUIRE(type);
      CHECK(type->name == llvm::StringRef(stored->name));
      CHECK(type->blockElems == static_cast<uint64_t>(stored->blockElems));
      CHECK(type->blockBytes == static_cast<uint64_t>(stored->blockBytes));
      CHECK(!formatFromGguf(id)); // a format with kernels is in one table only
    }
    std::optional<Format> format = formatFromGguf(id);
    if (!format)
      continue;
    const GgmlTypeInfo *type = ggmlTypeInfo(id);
    const FormatInfo &info = formatInfo(*format);
    REQUIRE(type);
    CHECK(type->name == llvm::StringRef(info.name));
    CHECK(type->blockElems == static_cast<uint64_t>(info.blockElems));
    CHECK(type->blockBytes == static_cast<uint64_t>(info.blockBytes));
    ++shared;
  }
  CHECK(shared >= 11);
}

TEST_CASE("codebooks have their sizes, ascending words, and known first and last ones") {
  struct Known {
    const Codebook &book;
    int size, digits, levels;
    std::vector<uint8_t> second, last;
  };
  const Known all[] = {{codebookIq2Xxs(), 256, 8, 3, {2, 0, 0, 0, 0, 0, 0, 0}, {0, 1, 0, 0, 1, 2, 2, 2}},
                       {codebookIq2Xs(), 512, 8, 3, {2, 0, 0, 0, 0, 0, 0, 0}, {2, 2, 2, 2, 2, 2, 2, 2}},
                       {codebookIq2S(), 1024, 8, 3, {2, 0, 0, 0, 0, 0, 0, 0}, {2, 2, 2, 2, 2, 2, 2, 2}},
                       {codebookIq1(), 2048, 8, 3, {2, 0, 0, 0, 0, 0, 0, 0}, {2, 2, 2, 2, 2, 2, 2, 2}},
                       {codebookIq3Xxs(), 256, 4, 8, {2, 0, 0, 0}, {0, 3, 6, 7}},
                       {codebookIq3S(), 512, 4, 8, {1, 0, 0, 0}, {0, 0, 7, 7}}};
  for (const Known &known : all) {
    CAPTURE(known.size);
    REQUIRE(known.book.size() == known.size);
    auto word = [&](int index) { return std::vector<uint8_t>(known.book.word(index), known.book.word(index) + known.digits); };
    CHECK(word(0) == std::vector<uint8_t>(known.digits));
    CHECK(word(1) == known.second);
    CHECK(word(known.size - 1) == known.last);
    for (int index = 1; index < known.size; ++index) {
      std::vector<uint8_t> before = word(index - 1), after = word(index);
      REQUIRE(std::lexicographical_compare(before.rbegin(), before.rend(), after.rbegin(), after.rend()));
      REQUIRE(*std::max_element(after.begin(), after.end()) < known.levels);
    }
  }
}

TEST_CASE("codebook formats: indices, signs and scales") {
  auto stored = [](const char *name, std::vector<std::pair<size_t, uint8_t>> bytes) {
    const StoredFormat &format = *parseStoredFormat(name);
    std::vector<uint8_t> block(format.blockBytes);
    for (auto [at, byte] : bytes)
      block[at] = byte;
    std::vector<float> values(format.blockElems);
    dequantizeStored(format, block.data(), values.data(), format.blockElems);
    return values;
  };
  // d = 1, word 1 for the first octet (its first digit is 2), the last group's scale 15, signs 1 for its last octet.
  std::vector<float> values = stored("iq2_xxs", {{1, kOneHigh}, {2, 1}, {2 + 60, 0}, {2 + 62, 0x20}, {2 + 63, 0xf0}});
  CHECK(values[0] == 43 * 0.125f);
  CHECK(values[1] == 8 * 0.125f);
  CHECK(values[248] == -8 * 3.875f); // bit 21 of the word: minus for the first, and for the eighth, which makes them even
  CHECK(values[249] == 8 * 3.875f);
  CHECK(values[255] == -8 * 3.875f);
  // A high index bit moves to another word; the nibble on top is the second group's scale.
  values = stored("iq3_s", {{1, kOneHigh}, {66, 1}, {74, 0x80}, {106, 0x30}});
  const uint8_t *word = codebookIq3S().word(256);
  CHECK(values[0] == static_cast<float>(2 * word[0] + 1));
  CHECK(values[7] == -1);
  CHECK(values[32] == 7);
  // The shift goes down where the top bit is set.
  values = stored("iq1_s", {{1, kOneHigh}, {34 + 1, 0x80}});
  CHECK(values[0] == -1.125f);
  CHECK(values[32] == -0.875f);
  // d is spread over the tops of four words: 0x3c00 has nibbles 0, 0, 12 and 3.
  values = stored("iq1_m", {{48 + 5, 0xc0}, {48 + 7, 0x30}, {32, 0x08}, {48, 0x08}});
  CHECK(values[0] == -1.125f);
  CHECK(values[8] == -0.875f);
  CHECK(values[16] == 3 * -0.875f);
}
