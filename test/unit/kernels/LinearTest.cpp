// `linear` against the reference and against itself: every format, odd sizes, all epilogues; and the promise that a
// row's outputs are the same bits whatever rows go with it and however many threads there are.
#include "Harness.h"

#include "kernels/cpu/Sizes.h"
#include "kernels/pack/Pack.h"
#include "kernels/reference/Reference.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace mcc;
using namespace mcc::test;

namespace {

// A launch with its operands; rows of x and y are further apart than they are long.
struct Case {
  Weights weight, up;
  bool gated = false, residual = false, bias = false;
  reference::Norm norm;
  Activation activation = Activation::None;
  float scale = 1.0f;
  std::vector<float> x, residuals, biases, upBiases;
  int64_t xStride = 0, yStride = 0;
};

Case makeCase(Format format, int64_t tokens, int64_t rows, int64_t cols, bool gated = false) {
  Random random(static_cast<uint64_t>(tokens * 7919 + rows * 31 + cols));
  Case result;
  result.weight = randomWeights(format, rows, cols, random.bits());
  result.gated = gated;
  if (gated)
    result.up = randomWeights(format, rows, cols, random.bits());
  result.xStride = cols + 3;
  result.yStride = rows + 5;
  result.x = random.floats(tokens * result.xStride);
  result.residuals = random.floats(tokens * result.yStride);
  result.biases = random.floats(rows);
  result.upBiases = random.floats(rows);
  return result;
}

std::vector<float> runReference(const Case &c, int64_t tokens) {
  std::vector<float> y(static_cast<size_t>(tokens * c.yStride), 7.0f);
  reference::Linear linear = {tokens, c.weight.rows, c.weight.cols, c.x.data(), c.xStride, c.weight.values.data()};
  linear.up = c.gated ? c.up.values.data() : nullptr;
  linear.bias = c.bias ? c.biases.data() : nullptr;
  linear.upBias = c.bias ? c.upBiases.data() : nullptr;
  linear.residual = c.residual ? c.residuals.data() : nullptr;
  linear.residualStride = c.yStride;
  linear.norm = c.norm;
  linear.activation = c.activation;
  linear.scale = c.scale;
  reference::linear(linear, y.data(), c.yStride);
  return y;
}

// Rows [first, first + tokens) of the case in one step.
std::vector<float> runKernel(const Case &c, int64_t first, int64_t tokens, int64_t threads) {
  std::vector<float> y(static_cast<size_t>(tokens * c.yStride), 7.0f), normed(static_cast<size_t>(cpu::normedBytes(tokens, c.weight.cols) / 4));
  const std::vector<uint8_t> packed = c.gated ? packGated(c.weight, c.up) : c.weight.packed;
  std::vector<float> bias = c.biases;
  if (c.gated) {
    bias.resize(static_cast<size_t>(packedGatedBiasFloats(c.weight.rows)));
    packGatedBias(c.biases.data(), c.upBiases.data(), c.weight.rows, bias.data());
  }
  runStep(threads, tokens, 0, cpu::linearScratchBytes(tokens, c.weight.cols), [&](const MccStep *step) {
    linearEntry(c.weight.format)(step, tokens, c.x.data() + first * c.xStride, packed.data(), c.bias ? bias.data() : nullptr,
                                 c.residual ? c.residuals.data() + first * c.yStride : nullptr, c.norm.weight, c.norm.bias,
                                 normed.data(), y.data(), c.weight.rows, c.weight.cols, c.xStride, c.yStride, c.yStride,
                                 static_cast<int64_t>(c.activation), c.gated, c.norm.kind, c.norm.eps, c.scale);
  });
  return y;
}

// Errors of a sequential f32 sum grow like its length; the weights and inputs here are at most 1.
double tolerance(const Case &c) { return 3e-7 * static_cast<double>(c.weight.cols) + 1e-5; }

void checkAgainstReference(const Case &c, int64_t tokens, int64_t threads = 1) {
  const std::vector<float> expected = runReference(c, tokens), y = runKernel(c, 0, tokens, threads);
  CHECK(largestDifference(y.data(), c.yStride, expected.data(), c.yStride, tokens, c.weight.rows) < tolerance(c));
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t i = c.weight.rows; i < c.yStride; ++i)
      REQUIRE(y[static_cast<size_t>(t * c.yStride + i)] == 7.0f); // nothing past the row
}

} // namespace

TEST_CASE("linear equals the reference in every format") {
  for (Format format : allFormats()) {
    CAPTURE(formatInfo(format).name);
    const int64_t unit = formatInfo(format).blockElems;
    for (int64_t tokens : {1, 2, 3, 4, 5, 7, 16, 17, 33})
      for (int64_t rows : {1, 16, 37, 130}) {
        CAPTURE(tokens);
        CAPTURE(rows);
        checkAgainstReference(makeCase(format, tokens, rows, unit == 1 ? 45 : 3 * unit), tokens, 2);
      }
  }
}

TEST_CASE("linear over more columns than a depth chunk, and over one column") {
  for (int64_t tokens : {1, 6, 13, 29}) {
    checkAgainstReference(makeCase(Format::F32, tokens, 35, 4 * cpu::kDepthChunk + 13), tokens);
    checkAgainstReference(makeCase(Format::Q6_K, tokens, 35, 1280), tokens);
    checkAgainstReference(makeCase(Format::BF16, tokens, 35, 1), tokens);
  }
}

TEST_CASE("norm prologues, biases, activations and residuals") {
  Random random(3);
  const std::vector<float> weight = random.floats(96), bias = random.floats(96);
  for (int64_t tokens : {1, 5, 16, 17, 40})
    for (int64_t kind : {-1, 0, 1})
      for (bool gated : {false, true})
        for (Activation activation : {Activation::None, Activation::Silu, Activation::GeluErf, Activation::GeluTanh,
                                      Activation::GeluQuick, Activation::Relu, Activation::Relu2}) {
          CAPTURE(tokens);
          CAPTURE(kind);
          CAPTURE(gated);
          Case c = makeCase(Format::Q8_0, tokens, 45, 96, gated);
          c.bias = c.residual = true;
          c.norm = {kind, weight.data(), kind == 1 ? bias.data() : nullptr, 1e-5f};
          c.activation = activation;
          const std::vector<float> expected = runReference(c, tokens), y = runKernel(c, 0, tokens, 3);
          double scale = 1;
          for (float value : expected)
            scale = std::fmax(scale, std::fabs(value));
          CHECK(largestDifference(y.data(), c.yStride, expected.data(), c.yStride, tokens, 45) < 1e-5 * scale);
        }
}

TEST_CASE("the scale multiplies what the activation gives, before the residual, and rounds once") {
  for (int64_t tokens : {1, 3, 5, 17})
    for (bool gated : {false, true})
      for (Activation activation : {Activation::None, Activation::Relu2, Activation::GeluTanh}) {
        CAPTURE(tokens);
        CAPTURE(gated);
        Case c = makeCase(Format::Q4_0, tokens, 45, 96, gated);
        c.bias = true;
        c.activation = activation;
        const std::vector<float> plain = runKernel(c, 0, tokens, 2);
        c.scale = 0.37f;
        c.residual = true;
        const std::vector<float> y = runKernel(c, 0, tokens, 3), expected = runReference(c, tokens);
        double largest = 1;
        for (float value : expected)
          largest = std::fmax(largest, std::fabs(value));
        CHECK(largestDifference(y.data(), c.yStride, expected.data(), c.yStride, tokens, 45) < 1e-5 * largest);
        for (int64_t t = 0; t < tokens; ++t)
          for (int64_t r = 0; r < 45; ++r) {
            const size_t at = static_cast<size_t>(t * c.yStride + r);
            volatile float scaled = plain[at] * 0.37f;
            REQUIRE(y[at] == scaled + c.residuals[at]);
          }
      }
}

TEST_CASE("a row's outputs do not depend on the rows beside it or on the threads") {
  Random random(4);
  const std::vector<float> weight = random.floats(1024);
  for (Format format : allFormats())
    for (bool gated : {false, true}) {
      CAPTURE(formatInfo(format).name);
      const int64_t tokens = 33;
      Case c = makeCase(format, tokens, 83, 1024, gated);
      c.norm = {0, weight.data(), nullptr, 1e-5f};
      c.activation = Activation::Silu;
      c.residual = true;
      c.scale = gated ? 1.0f : -2.5f;
      const std::vector<float> whole = runKernel(c, 0, tokens, 1);
      for (int64_t threads : {2, 3, 7})
        CHECK(sameBits(whole, runKernel(c, 0, tokens, threads)));
      for (int64_t size : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 25}) {
        CAPTURE(size);
        std::vector<float> pieces;
        for (int64_t first = 0; first < tokens; first += size) {
          const std::vector<float> piece = runKernel(c, first, std::min(size, tokens - first), 1 + first % 3);
          pieces.insert(pieces.end(), piece.begin(), piece.end());
        }
        CHECK(sameBits(whole, pieces));
      }
    }
}

TEST_CASE("every output is one chain of multiply-adds over the columns in order") {
  Case c = makeCase(Format::F32, 7, 40, 700);
  const std::vector<float> y = runKernel(c, 0, 7, 2);
  size_t asFused = 0, asSeparate = 0;
  for (int64_t t = 0; t < 7; ++t)
    for (int64_t r = 0; r < 40; ++r) {
      float fused = 0;
      volatile float separate = 0, product;
      for (int64_t k = 0; k < 700; ++k) {
        const float w = c.weight.values[static_cast<size_t>(r * 700 + k)], x = c.x[static_cast<size_t>(t * c.xStride + k)];
        fused = std::fma(w, x, fused);
        product = w * x;
        separate = separate + product;
      }
      const float value = y[static_cast<size_t>(t * c.yStride + r)];
      asFused += value == fused;
      asSeparate += value == separate;
    }
  CHECK(std::max(asFused, asSeparate) == 280); // fused where the target has it
}

TEST_CASE("the residual may be the output itself") {
  Case c = makeCase(Format::F16, 9, 50, 64);
  c.residual = true;
  const std::vector<float> expected = runKernel(c, 0, 9, 1);
  std::vector<float> y = c.residuals;
  runStep(3, 9, 0, cpu::linearScratchBytes(9, 64), [&](const MccStep *step) {
    linearEntry(Format::F16)(step, 9, c.x.data(), c.weight.packed.data(), nullptr, y.data(), nullptr, nullptr, nullptr, y.data(),
                             50, 64, c.xStride, c.yStride, c.yStride, 0, 0, -1, 0.0f, 1.0f);
  });
  CHECK(largestDifference(y.data(), c.yStride, expected.data(), c.yStride, 9, 50) == 0);
}

TEST_CASE("large and denormal magnitudes pass through") {
  Case c = makeCase(Format::F32, 2, 20, 8);
  for (float scale : {1e30f, 1e-36f}) {
    Case scaled = c;
    for (float &value : scaled.x)
      value *= scale;
    const std::vector<float> expected = runReference(scaled, 2), y = runKernel(scaled, 0, 2, 1);
    CHECK(largestDifference(y.data(), c.yStride, expected.data(), c.yStride, 2, 20) <= 2e-6 * scale);
  }
}
