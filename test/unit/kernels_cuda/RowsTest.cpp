// embed, norm, rotary, activate, gate, add and unpack on the GPU against the scalar reference.
#include "Device.h"

#include "kernels/cuda/Rows.h"
#include "kernels/reference/Reference.h"
#include "test/unit/kernels/Harness.h"

#include <cmath>

using namespace mcc;
using namespace mcc::test;

TEST_CASE("embed gives the stored rows exactly in every format; an unknown token gives NaN") {
  for (const Format format : allFormats()) {
    const int64_t cols = formatInfo(format).blockElems == 1 ? 77 : 512;
    const Weights table = randomWeights(format, 53, cols, 3);
    const std::vector<int32_t> ids = {0, 52, 17, 16, 15, 53, -1};
    const int64_t tokens = static_cast<int64_t>(ids.size());
    const DeviceArray<uint8_t> packed(table.packed);
    const DeviceArray<int32_t> deviceIds(ids);
    const DeviceArray<float> y(static_cast<size_t>(tokens * cols));
    REQUIRE(cuda::launchEmbed({tokens, deviceIds.get(), nullptr}, {format, packed.get(), y.get(), 53, cols, cols, 0.5f},
                              nullptr) == 0);
    const std::vector<float> got = y.values();
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t c = 0; c < cols; ++c) {
        const float value = got[static_cast<size_t>(t * cols + c)];
        const bool known = ids[static_cast<size_t>(t)] >= 0 && ids[static_cast<size_t>(t)] < 53;
        if (known ? value != 0.5f * table.values[static_cast<size_t>(ids[static_cast<size_t>(t)] * cols + c)]
                  : value == value)
          FAIL(formatInfo(format).name, " token ", t, " column ", c, " is ", value);
      }
  }
}

TEST_CASE("norm of both kinds, with and without weights, in place too") {
  for (const int64_t cols : {1, 37, 1024, 5000})
    for (const int64_t kind : {0, 1})
      for (const bool weighted : {false, true}) {
        const int64_t tokens = 3, stride = cols + 3;
        const std::vector<float> x = Random(1).floats(tokens * stride, 3.0f), weight = Random(2).floats(cols),
                                 bias = Random(3).floats(cols);
        const DeviceArray<float> deviceX(x), deviceWeight(weight), deviceBias(bias);
        const cuda::Norm norm{kind, weighted ? deviceWeight.get() : nullptr, weighted ? deviceBias.get() : nullptr,
                              1e-5f};
        REQUIRE(cuda::launchNorm({tokens, nullptr, nullptr},
                                 {norm, deviceX.get(), deviceX.get(), cols, stride, stride, 1, true}, nullptr) == 0);
        std::vector<float> expected = x;
        for (int64_t t = 0; t < tokens; ++t)
          reference::norm({kind, weighted ? weight.data() : nullptr, weighted ? bias.data() : nullptr, 1e-5f},
                          x.data() + t * stride, expected.data() + t * stride, cols);
        INFO("cols ", cols, " kind ", kind);
        CHECK(largestError(deviceX.values(), expected) < 2e-5);
      }
}

TEST_CASE("rotary") {
  const int64_t tokens = 5, pairs = 48;
  std::vector<float> frequencies(pairs);
  for (int64_t i = 0; i < pairs; ++i)
    frequencies[static_cast<size_t>(i)] = static_cast<float>(std::pow(500000.0, -static_cast<double>(i) / pairs));
  for (const int32_t position : {0, 511, 130000}) {
    const DeviceArray<float> deviceFrequencies(frequencies), cosSin(static_cast<size_t>(tokens * 2 * pairs));
    const DeviceArray<int32_t> devicePosition(std::vector<int32_t>{position});
    REQUIRE(cuda::launchRotary({tokens, nullptr, devicePosition.get()},
                               {deviceFrequencies.get(), cosSin.get(), pairs, 1.25f}, nullptr) == 0);
    std::vector<float> expected(static_cast<size_t>(tokens * 2 * pairs));
    reference::rotary(frequencies.data(), expected.data(), tokens, position, pairs, 1.25f);
    CHECK(largestError(cosSin.values(), expected) < 1e-6);
    // Two sets of frequencies: the second for sequences longer than `original`.
    for (const int32_t length : {position + 5, 200000}) {
      const DeviceArray<int32_t> deviceLength(std::vector<int32_t>{length});
      const int64_t half = pairs / 2, original = position + 5;
      REQUIRE(cuda::launchRotary({tokens, nullptr, devicePosition.get(), deviceLength.get()},
                                 {deviceFrequencies.get(), cosSin.get(), half, 1.25f, original}, nullptr) == 0);
      std::vector<float> chosen(static_cast<size_t>(tokens * 2 * half));
      reference::rotary(frequencies.data() + (length > original ? half : 0), chosen.data(), tokens, position, half, 1.25f);
      std::vector<float> got = cosSin.values();
      got.resize(chosen.size());
      CHECK(largestError(got, chosen) < 1e-6);
    }
  }
}

TEST_CASE("activate, gate and add") {
  const int64_t tokens = 3, cols = 777, stride = 800;
  const std::vector<float> a = Random(1).floats(tokens * stride, 6.0f), b = Random(2).floats(tokens * stride, 2.0f);
  const auto run = [&](auto launch, int64_t activation, float number = 0.0f) {
    const DeviceArray<float> deviceA(a), deviceB(b), y(a);
    REQUIRE(launch({tokens, nullptr, nullptr},
                   {deviceA.get(), deviceB.get(), y.get(), cols, stride, stride, stride, activation, number},
                   nullptr) == 0);
    return y.values();
  };
  for (int64_t activation : {0, 1, 2, 3, 4, 5, 6, 8}) {
    std::vector<float> activated = a, gated = a, added = a;
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t c = 0; c < cols; ++c) {
        const size_t i = static_cast<size_t>(t * stride + c);
        const double value = reference::activate(a[i], static_cast<Activation>(activation));
        activated[i] = static_cast<float>(value), gated[i] = static_cast<float>(value * b[i]), added[i] = a[i] + b[i];
      }
    CHECK(largestError(run(cuda::launchActivate, activation), activated) < 2e-5);
    CHECK(largestError(run(cuda::launchGate, activation), gated) < 4e-5);
    CHECK(largestError(run(cuda::launchAdd, activation), added) == 0);
  }
}

TEST_CASE("clamp and scale; a NaN passes") {
  std::vector<float> x = Random(1).floats(700, 5.0f), clamped, scaled;
  x[3] = std::nanf(""), x[4] = INFINITY, x[5] = -INFINITY;
  for (const float value : x)
    clamped.push_back(static_cast<float>(reference::clamp(value, 2.5))), scaled.push_back(value * 0.37f);
  const DeviceArray<float> deviceX(x), y(x.size());
  const cuda::Elementwise elementwise{deviceX.get(), nullptr, y.get(), 350, 350, 0, 350, 0, 2.5f};
  REQUIRE(cuda::launchClamp({2, nullptr, nullptr}, elementwise, nullptr) == 0);
  CHECK(largestError(y.values(), clamped) == 0);
  cuda::Elementwise scale = elementwise;
  scale.number = 0.37f;
  REQUIRE(cuda::launchScale({2, nullptr, nullptr}, scale, nullptr) == 0);
  const std::vector<float> got = y.values();
  CHECK(got[3] != got[3]);
  CHECK(got[4] == INFINITY);
  CHECK(equalBits(got.data() + 6, scaled.data() + 6, scaled.size() - 6));
}

TEST_CASE("xielu on both sides of its bends; a NaN passes") {
  std::vector<float> x = Random(4).floats(702, 4.0f), expected;
  x[3] = std::nanf(""), x[4] = -500.0f, x[5] = 0.0f, x[6] = -1e-4f;
  for (const std::vector<float> &parameters : {std::vector<float>{0.8f, 0.3f, 0.5f, -1e-6f}, std::vector<float>{-2.0f, 25.0f, -0.25f, -0.7f}}) {
    expected.clear();
    for (const float value : x)
      expected.push_back(static_cast<float>(reference::xielu(value, parameters.data())));
    const DeviceArray<float> deviceX(x), deviceParameters(parameters), y(x.size());
    const cuda::Elementwise elementwise{deviceX.get(), deviceParameters.get(), y.get(), 351, 351, 0, 351, 0, 0.0f};
    REQUIRE(cuda::launchXielu({2, nullptr, nullptr}, elementwise, nullptr) == 0);
    const std::vector<float> got = y.values();
    CHECK(got[3] != got[3]);
    for (size_t i = 4; i < x.size(); ++i)
      REQUIRE(std::fabs(got[i] - expected[i]) <= 2e-6f * std::fabs(expected[i]) + 2e-7f * std::fabs(x[i]));
  }
}

TEST_CASE("norm of groups, with weights of their own or shared") {
  const int64_t tokens = 2, groups = 6, width = 40, cols = groups * width;
  const std::vector<float> x = Random(1).floats(tokens * cols), weight = Random(2).floats(cols),
                           bias = Random(3).floats(cols);
  const DeviceArray<float> deviceX(x), deviceWeight(weight), deviceBias(bias), y(x.size());
  for (const int64_t kind : {0, 1})
    for (const bool own : {false, true}) {
      const cuda::Norm norm{kind, deviceWeight.get(), deviceBias.get(), 1e-5f};
      REQUIRE(cuda::launchNorm({tokens, nullptr, nullptr},
                               {norm, deviceX.get(), y.get(), cols, cols, cols, groups, own}, nullptr) == 0);
      std::vector<float> expected(x.size());
      for (int64_t t = 0; t < tokens; ++t)
        reference::groupNorm({kind, weight.data(), bias.data(), 1e-5f}, x.data() + t * cols, expected.data() + t * cols,
                             cols, groups, own);
      CHECK(largestError(y.values(), expected) < 2e-5);
    }
}

TEST_CASE("positions adds the rows of the step's positions in every format") {
  for (const Format format : allFormats()) {
    const int64_t cols = formatInfo(format).blockElems == 1 ? 77 : 256, tokens = 3;
    const Weights table = randomWeights(format, 60, cols, 3);
    const std::vector<float> x = Random(4).floats(tokens * cols);
    const DeviceArray<uint8_t> packed(table.packed);
    const DeviceArray<int32_t> position(std::vector<int32_t>{30});
    const DeviceArray<float> y(x);
    REQUIRE(cuda::launchPositions({tokens, nullptr, position.get()},
                                  {format, y.get(), packed.get(), y.get(), 60, cols, cols, cols, 2}, nullptr) == 0);
    std::vector<float> expected(x.size());
    reference::addPositions(x.data(), table.values.data(), expected.data(), tokens, cols, 32);
    CHECK(largestError(y.values(), expected) == 0);
  }
}

TEST_CASE("unpack gives plain rows in bf16") {
  for (const Format format : allFormats())
    for (const bool gated : {false, true}) {
      const int64_t rows = 37, cols = formatInfo(format).blockElems == 1 ? 131 : 256;
      const Weights gate = randomWeights(format, rows, cols, 3), up = randomWeights(format, rows, cols, 4);
      const DeviceArray<uint8_t> packed(gated ? packGated(gate, up) : gate.packed);
      const DeviceArray<uint16_t> out(static_cast<size_t>(2 * rows * cols));
      REQUIRE(cuda::launchUnpack({format, packed.get(), out.get(), rows, cols, gated}, nullptr) == 0);
      const std::vector<uint16_t> got = out.values();
      for (int64_t i = 0; i < rows * cols * (gated ? 2 : 1); ++i) {
        const float exact =
            i < rows * cols ? gate.values[static_cast<size_t>(i)] : up.values[static_cast<size_t>(i - rows * cols)];
        const uint32_t bits = static_cast<uint32_t>(got[static_cast<size_t>(i)]) << 16;
        float value;
        std::memcpy(&value, &bits, 4);
        if (std::fabs(value - exact) > std::fabs(exact) / 256)
          FAIL(formatInfo(format).name, " element ", i, " is ", value, ", not ", exact);
      }
    }
}
