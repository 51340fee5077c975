// Dequantisation of published weights, against values worked out by hand from the formats' definitions.
#include "kernels/reference/PublishedWeight.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace mcc;

TEST_CASE("E4M3: zero, subnormals, the largest number, NaN") {
  CHECK(e4m3ToFloat(0x00) == 0);
  CHECK(std::signbit(e4m3ToFloat(0x80)));
  CHECK(e4m3ToFloat(0x01) == 0x1p-9f);
  CHECK(e4m3ToFloat(0x07) == 7 * 0x1p-9f);
  CHECK(e4m3ToFloat(0x08) == 0x1p-6f);
  CHECK(e4m3ToFloat(0x38) == 1);
  CHECK(e4m3ToFloat(0xbc) == -1.5f);
  CHECK(e4m3ToFloat(0x7e) == 448);
  CHECK(std::isnan(e4m3ToFloat(0x7f)));
  CHECK(std::isnan(e4m3ToFloat(0xff)));
}

TEST_CASE("MXFP4 experts are read transposed: low nibbles first, one power of two for 32 inputs") {
  // 2 experts, 3 outputs, 64 inputs; every byte of a block is its number, so that misplaced blocks show.
  const int64_t experts = 2, out = 3, in = 64;
  std::vector<uint8_t> blocks, scales;
  for (int64_t block = 0; block < experts * out * in / 32; ++block) {
    scales.push_back(static_cast<uint8_t>(120 + block));
    for (int64_t byte = 0; byte < 16; ++byte)
      blocks.push_back(static_cast<uint8_t>(byte * 16 + (15 - byte)));
  }
  Mxfp4Weight weight{out, in, blocks.data(), scales.data()};
  const float e2m1[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  std::vector<float> whole(experts * in * out);
  dequantizeRows(weight, 0, experts * in, whole.data());
  for (int64_t expert = 0; expert < experts; ++expert)
    for (int64_t i = 0; i < in; ++i)
      for (int64_t o = 0; o < out; ++o) {
        const int64_t block = (expert * out + o) * 2 + i / 32, byte = i % 32 / 2;
        const int64_t nibble = i % 2 == 0 ? 15 - byte : byte;
        const float expected = std::ldexp(e2m1[nibble % 8], static_cast<int>(block) - 7) * (nibble < 8 ? 1.0f : -1.0f);
        CHECK(whole[(expert * in + i) * out + o] == expected);
      }
  // Any rows alone are the same, across experts too.
  std::vector<float> some(7 * out);
  dequantizeRows(weight, in - 3, 7, some.data());
  for (size_t i = 0; i < some.size(); ++i)
    CHECK(some[i] == whole[(in - 3) * out + i]);
}

TEST_CASE("GPTQ: a zero of 0 is stored as all ones in the first version") {
  // 8 inputs, 8 outputs, 4 bits, one group: quant i for input i, zeros stored as 15 and 0.
  std::vector<uint32_t> quants(8, 0x76543210), zeros = {0x0f0f0f0f};
  std::vector<float> scales(8, 0.5f), values(64);
  GptqWeight weight;
  weight.rows = weight.cols = weight.groupSize = 8;
  weight.quants = reinterpret_cast<const uint8_t *>(quants.data());
  weight.zeros = reinterpret_cast<const uint8_t *>(zeros.data());
  weight.scales = {reinterpret_cast<const uint8_t *>(scales.data()), Format::F32};
  dequantizeRows(weight, 0, 8, values.data());
  CHECK(values[3] == 1.5f);     // output 0: zero 15 + 1 = 0 modulo 16
  CHECK(values[8 + 3] == 1.0f); // output 1: zero 0 + 1
  weight.zerosLessOne = false;
  dequantizeRows(weight, 1, 1, values.data());
  CHECK(values[3] == 1.5f); // output 1 alone, zero 0
}
