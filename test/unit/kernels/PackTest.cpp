// Packing: sizes, and that every element of every format comes back exactly through `embed`.
#include "Harness.h"

#include "kernels/cpu/Sizes.h"
#include "kernels/pack/Pack.h"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <numeric>

using namespace mcc;
using namespace mcc::test;

// Every row of the packed matrix through the embed kernel.
static std::vector<float> unpack(const Weights &weights, int64_t threads) {
  std::vector<int32_t> ids(static_cast<size_t>(weights.rows));
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<float> out(static_cast<size_t>(weights.rows * weights.cols));
  runStep(threads, weights.rows, 0, 64, [&](const MccStep *step) {
    embedEntry(weights.format)(step, weights.rows, weights.packed.data(), out.data(), weights.rows, weights.cols, weights.cols, 1.0f);
  }, ids.data());
  return out;
}

TEST_CASE("the entries' suffixes are the formats' names, in their order") {
  const std::vector<std::string> names = {
#define MCC_NAME(enumerator, suffix) #suffix,
      MCC_FOR_EACH_FORMAT(MCC_NAME)
#undef MCC_NAME
  };
  REQUIRE(names.size() == allFormats().size());
  for (size_t i = 0; i < names.size(); ++i)
    CHECK(names[i] == formatInfo(allFormats()[i]).name);
}

TEST_CASE("packing keeps every value of every format") {
  for (Format format : allFormats()) {
    CAPTURE(formatInfo(format).name);
    const int64_t unit = formatInfo(format).blockElems;
    for (int64_t rows : {1, 15, 16, 17, 50})
      for (int64_t cols : {unit, 3 * unit, unit == 1 ? 77 : 2 * unit}) {
        const Weights weights = randomWeights(format, rows, cols, static_cast<uint64_t>(rows * 1000 + cols));
        for (int64_t threads : {1, 3}) {
          const std::vector<float> out = unpack(weights, threads);
          size_t differing = 0;
          for (size_t i = 0; i < out.size(); ++i)
            differing += !(out[i] == weights.values[i]); // -0 and +0 alike
          CHECK(differing == 0);
        }
      }
  }
}

TEST_CASE("f16 and bf16 extremes come back: denormals, infinities, signed zeros") {
  const std::vector<uint16_t> halves = {0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x7BFF, 0x7C00, 0xFC00, 0x3C00, 0xBC00};
  for (Format format : {Format::F16, Format::BF16}) {
    Weights weights = {format, 1, static_cast<int64_t>(halves.size()), {}, {}, {}};
    weights.bytes.resize(halves.size() * 2);
    std::memcpy(weights.bytes.data(), halves.data(), weights.bytes.size());
    finishWeights(weights);
    CHECK(sameBits(unpack(weights, 1), weights.values));
  }
}

TEST_CASE("a tensor packed a few panels at a time is packed as a whole") {
  for (Format format : allFormats()) {
    const Weights weights = randomWeights(format, 70, 2 * formatInfo(format).blockElems, 5);
    const int64_t rowBytes = formatBytes(format, weights.cols), panel = packedPanelBytes(format, weights.cols);
    CHECK(panel % 64 == 0);
    CHECK(packedBytes(format, 70, weights.cols) == 5 * panel);
    std::vector<uint8_t> pieces(weights.packed.size(), 0xEE);
    for (int64_t first = 0; first < 70; first += 32)
      packPanels(format, weights.bytes.data() + first * rowBytes, rowBytes, std::min<int64_t>(32, 70 - first), weights.cols,
                 pieces.data() + first / 16 * panel);
    CHECK(pieces == weights.packed);
  }
}

TEST_CASE("a gated pair alternates panels") {
  const Weights gate = randomWeights(Format::Q4_0, 33, 64, 1), up = randomWeights(Format::Q4_0, 33, 64, 2);
  const int64_t panel = packedPanelBytes(Format::Q4_0, 64);
  const std::vector<uint8_t> both = packGated(gate, up);
  REQUIRE(both.size() == static_cast<size_t>(6 * panel));
  for (int64_t p = 0; p < 3; ++p) {
    CHECK(std::memcmp(both.data() + 2 * p * panel, gate.packed.data() + p * panel, static_cast<size_t>(panel)) == 0);
    CHECK(std::memcmp(both.data() + (2 * p + 1) * panel, up.packed.data() + p * panel, static_cast<size_t>(panel)) == 0);
  }
}
