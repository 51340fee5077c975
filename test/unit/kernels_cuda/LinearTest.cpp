// linear, logits and argmax on the GPU: against the scalar reference in every format, at odd sizes, with every
// prologue and epilogue; and bit for bit against themselves, alone and among other tokens.
#include "Device.h"

#include "kernels/cuda/Linear.h"
#include "kernels/pack/Pack.h"
#include "kernels/reference/Reference.h"
#include "test/unit/kernels/Harness.h"

#include <cmath>
#include <cstdio>
#include <limits>

using namespace mcc;
using namespace mcc::test;

namespace {

// One layer to test: data on the host, results by kernel and by reference.
struct Case {
  Format format;
  int64_t rows, cols, tokens;
  bool gated = false, biased = false, withResidual = false;
  int64_t normKind = -1;
  Activation activation = Activation::None;
  float scale = 1.0f;
};

struct Layer {
  Case shape;
  Weights gate, up;
  std::vector<float> x, bias, upBias, residual, normWeight, normBias;
  int64_t xStride, yStride;

  explicit Layer(const Case &shape, uint64_t seed)
      : shape(shape), gate(randomWeights(shape.format, shape.rows, shape.cols, seed)),
        up(randomWeights(shape.format, shape.rows, shape.cols, seed + 1)),
        xStride(shape.cols + seed % 3 * 4 + seed % 2), yStride(shape.rows + seed % 5) {
    Random random(seed + 2);
    x = random.floats(shape.tokens * xStride);
    bias = random.floats(shape.rows), upBias = random.floats(shape.rows);
    residual = random.floats(shape.tokens * yStride);
    normWeight = random.floats(shape.cols), normBias = random.floats(shape.cols);
  }

  std::vector<float> byReference() const {
    reference::Linear linear{shape.tokens, shape.rows, shape.cols, x.data(), xStride, gate.values.data()};
    linear.up = shape.gated ? up.values.data() : nullptr;
    linear.bias = shape.biased ? bias.data() : nullptr;
    linear.upBias = shape.biased ? upBias.data() : nullptr;
    linear.residual = shape.withResidual ? residual.data() : nullptr;
    linear.residualStride = yStride;
    linear.norm = {shape.normKind, normWeight.data(), normBias.data(), 1e-5f};
    linear.activation = shape.activation;
    linear.scale = shape.scale;
    std::vector<float> y(static_cast<size_t>(shape.tokens * yStride), std::numeric_limits<float>::quiet_NaN());
    reference::linear(linear, y.data(), yStride);
    return y;
  }

  // The tokens [first, first + count) in one launch; other rows of the result are NaN.
  std::vector<float> byKernel(int64_t first, int64_t count, int prefillParts = 0) const {
    std::vector<float> packedBias = bias;
    if (shape.gated) {
      packedBias.resize(static_cast<size_t>(packedGatedBiasFloats(shape.rows)));
      packGatedBias(bias.data(), upBias.data(), shape.rows, packedBias.data());
    }
    const DeviceArray<uint8_t> weight(shape.gated ? packGated(gate, up) : gate.packed);
    const DeviceArray<float> deviceX(x), deviceBias(packedBias), deviceResidual(residual), weights(normWeight),
        biases(normBias);
    DeviceArray<float> y(residual.size());
    const DeviceArray<uint8_t> workspace(
        static_cast<size_t>(cuda::linearWorkspaceBytes(count, shape.cols, prefillParts)));
    cuda::Linear linear;
    linear.format = shape.format;
    linear.rows = shape.rows, linear.cols = shape.cols;
    linear.x = deviceX.get() + first * xStride, linear.weight = weight.get();
    linear.bias = shape.biased ? deviceBias.get() : nullptr;
    linear.residual = shape.withResidual ? deviceResidual.get() + first * yStride : nullptr;
    linear.y = y.get() + first * yStride;
    linear.xStride = xStride, linear.yStride = yStride, linear.residualStride = yStride;
    linear.activation = static_cast<int64_t>(shape.activation), linear.gated = shape.gated, linear.scale = shape.scale;
    linear.norm = {shape.normKind, weights.get(), biases.get(), 1e-5f};
    linear.workspace = workspace.get(), linear.prefillParts = prefillParts;
    REQUIRE(cuda::launchLinear({count, nullptr, nullptr}, linear, nullptr) == 0);
    return y.values();
  }
};

void checkLayer(const Case &shape, uint64_t seed) {
  const Layer layer(shape, seed);
  const std::vector<float> expected = layer.byReference(), together = layer.byKernel(0, shape.tokens);
  double scale = 1;
  for (const float value : expected)
    scale = std::fmax(scale, std::fabs(value));
  INFO(formatInfo(shape.format).name, " rows ", shape.rows, " cols ", shape.cols, " tokens ", shape.tokens, " gated ",
       shape.gated, " norm ", shape.normKind, " activation ", static_cast<int>(shape.activation));
  CHECK(largestError(together, expected) < 2e-5 * scale);
  const std::vector<float> again = layer.byKernel(0, shape.tokens);
  CHECK(equalBits(together.data(), again.data(), together.size()));
  for (const int64_t token : {int64_t{0}, shape.tokens / 2, shape.tokens - 1}) {
    const std::vector<float> alone = layer.byKernel(token, 1);
    CHECK(equalBits(together.data() + token * layer.yStride, alone.data() + token * layer.yStride,
                    static_cast<size_t>(shape.rows)));
  }
}

std::vector<int64_t> columnsFor(Format format) {
  switch (formatInfo(format).blockElems) {
  case 1:
    return {1, 37, 520, 2056};
  case 32:
    return {32, 96, 1056, 2080};
  default:
    return {256, 1280};
  }
}

} // namespace

TEST_CASE("linear is the reference's in every format and for every number of tokens") {
  uint64_t seed = 1;
  for (const Format format : allFormats())
    for (const int64_t cols : someOf(columnsFor(format), 1))
      for (const int64_t tokens : someOf<int64_t>({3, 19, 1, 2, 8, 9, 16}, 1))
        checkLayer({format, 16 * static_cast<int64_t>(seed % 3) + 5, cols, tokens}, seed), ++seed;
}

TEST_CASE("linear's prologues and epilogues") {
  uint64_t seed = 1000;
  for (const Format format : {Format::BF16, Format::F16, Format::Q8_0, Format::Q4_0, Format::F32, Format::Q6_K, Format::F8})
    for (const bool gated : {false, true})
      for (const int64_t norm : someOf<int64_t>({1, -1, 0}, 1))
        for (const int64_t tokens : someOf<int64_t>({12, 1, 2, 5}, 2)) {
          const auto activation = static_cast<Activation>(seed % 7);
          checkLayer({format, 40, 512, tokens, gated, seed % 2 == 0, seed % 3 != 0, norm, activation,
                      seed % 4 < 2 ? 1.0f : 0.3f},
                     seed);
          ++seed;
        }
}

TEST_CASE("linear over many panels and a deep row") {
  if (reduced())
    return;
  checkLayer({Format::BF16, 4500, 1000, 2, false, true, true, 0}, 7);
  checkLayer({Format::BF16, 4500, 1000, 7, true, false, true, 0, Activation::Silu}, 8);
  checkLayer({Format::BF16, 64, 14336, 3}, 9);
  checkLayer({Format::BF16, 64, 20000, 1}, 10);
  checkLayer({Format::Q4_0, 4500, 1024, 1, true, false, true, 0, Activation::Silu}, 11);
  checkLayer({Format::Q8_0, 64, 14336, 2}, 12);
}

namespace {

// A launch of many tokens, in every number of parts, against the reference; and twice, bit for bit.
void checkPrefill(const Case &shape, uint64_t seed) {
  const Layer layer(shape, seed);
  const std::vector<float> expected = layer.byReference();
  double scale = 1;
  for (const float value : expected)
    scale = std::fmax(scale, std::fabs(value));
  // What parts leave out; and what tensor cores cut off at each addition of 16 products, a bit of 24.
  const double bounds[] = {3e-2, 1e-4, 2e-5}, cut = static_cast<double>(shape.cols) / 16 * 0x1p-24;
  for (int parts = 1; parts <= 3; ++parts) {
    INFO(formatInfo(shape.format).name, " parts ", parts, " rows ", shape.rows, " cols ", shape.cols, " tokens ",
         shape.tokens, " gated ", shape.gated);
    const std::vector<float> got = layer.byKernel(0, shape.tokens, parts);
    CHECK(largestError(got, expected) < (bounds[parts - 1] + cut) * scale);
    const std::vector<float> again = layer.byKernel(0, shape.tokens, parts);
    CHECK(equalBits(got.data(), again.data(), got.size()));
  }
}

} // namespace

TEST_CASE("the prefill GEMM, as exact as its parts say") {
  uint64_t seed = 500;
  for (const int64_t tokens : someOf<int64_t>({17, 128, 300}, 1))
    for (const int64_t cols : someOf<int64_t>({40, 1000, 2112}, 2))
      for (const bool gated : {false, true}) {
        checkPrefill({Format::BF16, 16 * static_cast<int64_t>(seed % 20) + 9, cols, tokens, gated, seed % 2 == 0,
                      seed % 3 != 0, static_cast<int64_t>(seed % 3) - 1, gated ? Activation::Silu : Activation::None,
                      seed % 4 < 2 ? 1.0f : 0.3f},
                     seed);
        ++seed;
      }
}

TEST_CASE("the prefill GEMM of every format") {
  uint64_t seed = 700;
  for (const Format format : allFormats())
    for (const bool gated : {false, true}) {
      checkPrefill({format, 16 * static_cast<int64_t>(seed % 7) + 9, 768, 150 + static_cast<int64_t>(seed % 5), gated,
                    seed % 2 == 0, true, 0, gated ? Activation::GeluTanh : Activation::None},
                   seed);
      ++seed;
    }
}

TEST_CASE("the prefill GEMM over more tiles than the device has multiprocessors") {
  if (reduced()) { // clusters of two blocks
    checkPrefill({Format::BF16, 4105, 40, 1100, true, true, true, 0, Activation::Silu}, 905);
    return;
  }
  checkPrefill({Format::BF16, 20009, 72, 300, false, true, true, 0}, 900);
  checkPrefill({Format::BF16, 10003, 136, 260, true, true, true, 1, Activation::Silu}, 901);
  checkPrefill({Format::BF16, 5000, 72, 300}, 902);
  checkPrefill({Format::BF16, 333, 136, 2300, true, false, true}, 903);
  // Clusters of two blocks, an odd number of tiles of tokens and of panels.
  checkPrefill({Format::BF16, 4105, 72, 1100, false, true, true, 0, Activation::GeluErf, 0.3f}, 905);
  checkPrefill({Format::BF16, 4105, 200, 1100, false, false, true}, 906);
  checkPrefill({Format::BF16, 2060, 136, 1100, true, true, true, 1, Activation::Silu}, 907);
  // Several stretches of unpacked panels.
  checkPrefill({Format::Q8_0, 2100, 16384, 40, false, true, true}, 904);
}

TEST_CASE("linear refuses what it cannot do") {
  cuda::Linear linear;
  CHECK(cuda::launchLinear({1, nullptr, nullptr}, linear, nullptr) != 0);
}

namespace {

// Logits and token of one launch.
std::pair<std::vector<float>, int32_t> runLogits(const Weights &weights, const std::vector<float> &x,
                                                 const std::vector<float> &bias, float scale, float softcap,
                                                 int64_t tokens = 1) {
  const DeviceArray<uint8_t> weight(weights.packed),
      workspace(static_cast<size_t>(cuda::linearWorkspaceBytes(1, weights.cols)));
  const DeviceArray<float> deviceX(x), deviceBias(bias), y(static_cast<size_t>(weights.rows));
  const DeviceArray<cuda::Partial> partials(static_cast<size_t>(cuda::kLogitPartials));
  const DeviceArray<int32_t> token(size_t{1}), position(std::vector<int32_t>{41});
  cuda::Logits logits;
  logits.linear.format = weights.format;
  logits.linear.rows = weights.rows, logits.linear.cols = weights.cols, logits.linear.xStride = weights.cols;
  logits.linear.x = deviceX.get(), logits.linear.weight = weight.get(), logits.linear.y = y.get();
  logits.linear.bias = bias.empty() ? nullptr : deviceBias.get();
  logits.linear.workspace = workspace.get();
  logits.partials = partials.get(), logits.scale = scale, logits.softcap = softcap;
  const cuda::Step step{tokens, nullptr, position.get()};
  const DeviceArray<int32_t> ring(std::vector<int32_t>(16, -7));
  REQUIRE(cuda::launchLogits(step, logits, nullptr) == 0);
  REQUIRE(cuda::launchArgmax(step, {partials.get(), token.get(), position.get(), ring.get(), 15}, nullptr) == 0);
  CHECK(position.values()[0] == 41 + tokens);
  CHECK(ring.values()[(41 + tokens - 1) % 16] == token.values()[0]);
  return {y.values(), token.values()[0]};
}

} // namespace

TEST_CASE("logits of the last token, scaled and capped, and their argmax") {
  for (const Format format : {Format::BF16, Format::Q8_0, Format::Q4_0, Format::F32, Format::Q6_K, Format::F8}) {
    const Weights weights = randomWeights(format, 9001, 256, 5);
    const std::vector<float> x = Random(6).floats(3 * 256);
    const auto [y, token] = runLogits(weights, x, {}, 3.0f, 2.0f, 3);
    reference::Linear linear{1, weights.rows, weights.cols, x.data() + 2 * 256, 256, weights.values.data()};
    std::vector<float> expected(static_cast<size_t>(weights.rows));
    reference::linear(linear, expected.data(), weights.rows);
    for (float &value : expected)
      value = 2.0f * static_cast<float>(std::tanh(3.0 * value / 2.0));
    CHECK(largestError(y, expected) < 5e-5);
    CHECK(token == reference::argmax(y.data(), weights.rows));
  }
}

TEST_CASE("argmax: the lowest index of equal logits, -1 where one is NaN, any index where all are minus infinity") {
  Weights weights = randomWeights(Format::BF16, 9001, 64, 5);
  const std::vector<float> x = Random(6).floats(64);
  for (const auto &[low, high] : {std::pair<int64_t, int64_t>{100, 8000}, {0, 1}, {15, 16}, {4000, 9000}}) {
    Weights twice = weights;
    // A row along x beats random ones; it stands twice.
    for (int64_t c = 0; c < 64; ++c) {
      uint32_t bits;
      std::memcpy(&bits, &x[static_cast<size_t>(c)], 4);
      const auto half = static_cast<uint16_t>(bits >> 16);
      std::memcpy(twice.bytes.data() + (low * 64 + c) * 2, &half, 2);
      std::memcpy(twice.bytes.data() + (high * 64 + c) * 2, &half, 2);
    }
    finishWeights(twice);
    CHECK(runLogits(twice, x, {}, 1.0f, 0.0f).second == low);
  }
  std::vector<float> bias(9001, 0.0f);
  bias[8999] = std::numeric_limits<float>::quiet_NaN();
  CHECK(runLogits(weights, x, bias, 1.0f, 0.0f).second == -1);
  CHECK(runLogits(weights, x, std::vector<float>(9001, -std::numeric_limits<float>::infinity()), 1.0f, 0.0f).second ==
        0);
}
