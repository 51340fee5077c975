// Experts and kernels with a state on the GPU against the CPU's, which have been compared with the scalar reference; and again
// token by token, which must leave the same bits.
#include "Device.h"

#include "kernels/cpu/Sizes.h"
#include "kernels/cuda/Experts.h"
#include "kernels/cuda/State.h"
#include "test/unit/kernels/Harness.h"

#include <algorithm>
#include <cmath>

using namespace mcc;
using namespace mcc::test;

namespace {

constexpr int64_t kTokens = 11;

// Results and state of a run.
struct Run {
  std::vector<float> y, state;
};

// Runs the GPU's kernel over kTokens in one step, then token by token; both must agree bit for bit, and with the CPU's within
// `tolerance`. launch(step, first token, state, y of the first token).
template <class Launch>
void checkState(const Run &cpu, int64_t yCols, double tolerance, Launch launch) {
  std::vector<Run> runs;
  for (const int64_t taken : {kTokens, int64_t{1}}) {
    const DeviceArray<float> state(std::vector<float>(cpu.state.size(), 0.0f)), y(cpu.y.size());
    for (int64_t t = 0; t < kTokens; t += taken)
      REQUIRE(launch(cuda::Step{taken, nullptr, nullptr}, t, state.get(), y.get() + t * yCols) == 0);
    runs.push_back({y.values(), state.values()});
  }
  CHECK(largestError(runs[0].y, cpu.y) < tolerance);
  CHECK(sameBits(runs[0].y, runs[1].y));
  CHECK(sameBits(runs[0].state, runs[1].state));
}

// Packs f32 rows into panels.
std::vector<float> panelsOf(const std::vector<float> &values, int64_t rows, int64_t cols) {
  Weights weights = {Format::F32, rows, cols, {}, {}, {}};
  const uint8_t *bytes = reinterpret_cast<const uint8_t *>(values.data());
  weights.bytes.assign(bytes, bytes + values.size() * sizeof(float));
  finishWeights(weights);
  const float *packed = reinterpret_cast<const float *>(weights.packed.data());
  return {packed, packed + weights.packed.size() / sizeof(float)};
}

std::vector<float> negative(std::vector<float> values) {
  for (float &value : values)
    value = -std::fabs(value);
  return values;
}

} // namespace

TEST_CASE("conv") {
  for (const int64_t taps : {1, 4}) {
    const int64_t channels = 77;
    Random random(1);
    const std::vector<float> x = random.floats(kTokens * channels), weight = panelsOf(random.floats(channels * taps), channels, taps), bias = random.floats(channels);
    Run cpu{std::vector<float>(x.size()), std::vector<float>(static_cast<size_t>((taps - 1) * 80), 0.0f)};
    runStep(1, kTokens, 0, 0, [&](const MccStep *step) {
      mcc_cpu_conv(step, kTokens, x.data(), weight.data(), bias.data(), cpu.state.data(), cpu.y.data(), channels, taps, channels, channels, 1);
    });
    const DeviceArray<float> deviceX(x), deviceWeight(weight), deviceBias(bias);
    checkState(cpu, channels, 1e-5, [&](cuda::Step step, int64_t t, float *state, float *y) {
      return cuda::launchConv(step, {deviceX.get() + t * channels, deviceWeight.get(), deviceBias.get(), state, y, channels, taps, channels, channels, 1}, nullptr);
    });
  }
}

TEST_CASE("selective_scan") {
  const int64_t channels = 77, depth = 8;
  Random random(2);
  const std::vector<float> x = random.floats(kTokens * channels), dt = random.floats(kTokens * channels), bc = random.floats(kTokens * 2 * depth),
                           a = panelsOf(negative(random.floats(channels * depth, 3.0f)), channels, depth), skip = random.floats(channels);
  Run cpu{std::vector<float>(x.size()), std::vector<float>(static_cast<size_t>(80 * depth), 0.0f)};
  runStep(1, kTokens, 0, 0, [&](const MccStep *step) {
    mcc_cpu_selective_scan(step, kTokens, x.data(), dt.data(), bc.data(), bc.data() + depth, a.data(), skip.data(), cpu.state.data(), cpu.y.data(), channels, depth,
                           channels, channels, 2 * depth, 2 * depth, channels);
  });
  const DeviceArray<float> dX(x), dDt(dt), dBc(bc), dA(a), dSkip(skip);
  checkState(cpu, channels, 2e-5, [&](cuda::Step step, int64_t t, float *state, float *y) {
    return cuda::launchSelectiveScan(step,
                                     {dX.get() + t * channels, dDt.get() + t * channels, dBc.get() + t * 2 * depth, dBc.get() + t * 2 * depth + depth, dA.get(),
                                      dSkip.get(), state, y, channels, depth, channels, channels, 2 * depth, 2 * depth, channels},
                                     nullptr);
  });
}

TEST_CASE("state_scan") {
  const int64_t heads = 6, headDim = 20, groups = 2, depth = 24, cols = heads * headDim, mixed = groups * depth;
  Random random(3);
  const std::vector<float> x = random.floats(kTokens * cols), dt = random.floats(kTokens * heads, 2.0f), b = random.floats(kTokens * mixed),
                           c = random.floats(kTokens * mixed), a = negative(random.floats(heads, 2.0f)), bias = random.floats(heads), skip = random.floats(heads);
  Run cpu{std::vector<float>(x.size()), std::vector<float>(static_cast<size_t>(heads * 32 * depth), 0.0f)};
  runStep(1, kTokens, 0, 0, [&](const MccStep *step) {
    mcc_cpu_state_scan(step, kTokens, x.data(), dt.data(), b.data(), c.data(), a.data(), bias.data(), skip.data(), cpu.state.data(), cpu.y.data(), heads, headDim, groups,
                       depth, cols, heads, mixed, mixed, cols, 0.01f, 0.9f);
  });
  const DeviceArray<float> dX(x), dDt(dt), dB(b), dC(c), dA(a), dBias(bias), dSkip(skip);
  checkState(cpu, cols, 2e-5, [&](cuda::Step step, int64_t t, float *state, float *y) {
    return cuda::launchStateScan(step,
                                 {dX.get() + t * cols, dDt.get() + t * heads, dB.get() + t * mixed, dC.get() + t * mixed, dA.get(), dBias.get(), dSkip.get(), state, y,
                                  heads, headDim, groups, depth, cols, heads, mixed, mixed, cols, 0.01f, 0.9f},
                                 nullptr);
  });
}

TEST_CASE("delta_scan") {
  const int64_t keyHeads = 2, valueHeads = 4, keyDim = 24, valueDim = 20, keys = keyHeads * keyDim, cols = valueHeads * valueDim;
  Random random(4);
  const std::vector<float> q = random.floats(kTokens * keys), k = random.floats(kTokens * keys), v = random.floats(kTokens * cols),
                           beta = random.floats(kTokens * valueHeads, 2.0f), decay = random.floats(kTokens * valueHeads), a = negative(random.floats(valueHeads)),
                           bias = random.floats(valueHeads);
  Run cpu{std::vector<float>(v.size()), std::vector<float>(static_cast<size_t>(valueHeads * 32 * keyDim), 0.0f)};
  runStep(1, kTokens, 0, 0, [&](const MccStep *step) {
    mcc_cpu_delta_scan(step, kTokens, q.data(), k.data(), v.data(), beta.data(), decay.data(), a.data(), bias.data(), cpu.state.data(), cpu.y.data(), keyHeads, valueHeads,
                       keyDim, valueDim, keys, keys, cols, valueHeads, valueHeads, cols);
  });
  const DeviceArray<float> dQ(q), dK(k), dV(v), dBeta(beta), dDecay(decay), dA(a), dBias(bias);
  checkState(cpu, cols, 2e-5, [&](cuda::Step step, int64_t t, float *state, float *y) {
    return cuda::launchDeltaScan(step,
                                 {dQ.get() + t * keys, dK.get() + t * keys, dV.get() + t * cols, dBeta.get() + t * valueHeads, dDecay.get() + t * valueHeads, dA.get(),
                                  dBias.get(), state, y, keyHeads, valueHeads, keyDim, valueDim, keys, keys, cols, valueHeads, valueHeads, cols},
                                 nullptr);
  });
}

TEST_CASE("route") {
  Random random(5);
  for (const int64_t experts : {4, 60, 256})
    for (const int64_t scoring : {0, 1, 2})
      for (const int64_t groups : {1, 4}) {
        const int64_t chosen = 4, groupsChosen = groups == 1 ? 1 : experts == 4 ? 4 : 2, groupScore = experts == 4 ? 0 : 1;
        const std::vector<float> x = random.floats(kTokens * experts, 4.0f), bias = random.floats(experts, 0.3f);
        std::vector<float> expected(static_cast<size_t>(kTokens * 2 * chosen));
        runStep(1, kTokens, 0, cpu::routeScratchBytes(experts), [&](const MccStep *step) {
          mcc_cpu_route(step, kTokens, x.data(), bias.data(), expected.data(), experts, chosen, scoring, 1, groups, groupsChosen, groupScore, experts, 2 * chosen, 2.5f);
        });
        const DeviceArray<float> deviceX(x), deviceBias(bias), y(expected.size());
        REQUIRE(cuda::launchRoute({kTokens, nullptr, nullptr},
                                  {deviceX.get(), deviceBias.get(), y.get(), experts, chosen, scoring, true, groups, groupsChosen, groupScore, experts, 2 * chosen, 2.5f},
                                  nullptr) == 0);
        INFO("experts ", experts, " scoring ", scoring, " groups ", groups);
        CHECK(largestError(y.values(), expected) < 1e-5);
      }
}

TEST_CASE("experts in every format, gated and not") {
  for (const Format format : allFormats())
    for (const bool gated : {false, true}) {
      const int64_t experts = 5, chosen = 2, rows = 32, cols = 256, xStride = chosen * cols;
      Random random(6);
      std::vector<uint8_t> packed;
      for (int64_t e = 0; e < experts; ++e) {
        const Weights gate = randomWeights(format, rows, cols, random.bits()), up = randomWeights(format, rows, cols, random.bits());
        const std::vector<uint8_t> one = gated ? packGated(gate, up) : gate.packed;
        packed.insert(packed.end(), one.begin(), one.end());
      }
      const std::vector<float> x = random.floats(kTokens * xStride), bias = random.floats(experts * rows * (gated ? 2 : 1));
      std::vector<float> picks;
      for (int64_t t = 0; t < kTokens; ++t)
        for (const int64_t value : {int64_t{0}, int64_t{0}, t % experts, (t * 2 + 1) % experts})
          picks.push_back(static_cast<float>(value));
      for (const bool ownRows : {false, true}) {
        std::vector<float> expected(static_cast<size_t>(kTokens * chosen * rows));
        runStep(1, kTokens, 0, cpu::expertsScratchBytes(cols), [&](const MccStep *step) {
          expertsEntry(format)(step, kTokens, x.data(), picks.data(), packed.data(), bias.data(), expected.data(), experts, chosen, rows, cols, ownRows, xStride, 4,
                               chosen * rows, 6, gated, 0.5f, 1.0f);
        });
        const DeviceArray<float> deviceX(x), devicePicks(picks), deviceBias(bias), y(expected.size());
        const DeviceArray<uint8_t> deviceWeight(packed);
        REQUIRE(cuda::launchExperts({kTokens, nullptr, nullptr},
                                    {format, deviceX.get(), devicePicks.get(), deviceWeight.get(), deviceBias.get(), y.get(), experts, chosen, rows, cols, ownRows, xStride,
                                     4, chosen * rows, 6, gated, 0.5f, 1.0f},
                                    nullptr) == 0);
        INFO(formatInfo(format).name, " gated ", gated, " own rows ", ownRows);
        // A gated result is a product of two sums: what counts is its size.
        const double largest = largestError(expected, std::vector<float>(expected.size(), 0.0f));
        CHECK(largestError(y.values(), expected) < 1e-5 * std::max(1.0, largest));
      }
    }
}

TEST_CASE("combine and assemble") {
  Random random(7);
  const std::vector<float> weights = random.floats(kTokens * 6), x = random.floats(kTokens * 3 * 37), a = random.floats(kTokens * 9), b = random.floats(kTokens * 60);
  std::vector<float> sums(static_cast<size_t>(kTokens * 37)), heads(static_cast<size_t>(kTokens * 72));
  runStep(1, kTokens, 0, 0, [&](const MccStep *step) {
    mcc_cpu_combine(step, kTokens, weights.data(), x.data(), sums.data(), 3, 37, 6, 3 * 37, 37);
    mcc_cpu_assemble(step, kTokens, a.data(), b.data(), heads.data(), 3, 24, 5, 17, 0, 20, 9, 60, 72);
  });
  const DeviceArray<float> dWeights(weights), dX(x), dA(a), dB(b), y(sums.size()), z(heads.size());
  REQUIRE(cuda::launchCombine({kTokens, nullptr, nullptr}, {dWeights.get(), dX.get(), y.get(), 3, 37, 6, 3 * 37, 37}, nullptr) == 0);
  REQUIRE(cuda::launchAssemble({kTokens, nullptr, nullptr}, {dA.get(), dB.get(), z.get(), 3, 24, 5, 17, 0, 20, 9, 60, 72}, nullptr) == 0);
  CHECK(largestError(y.values(), sums) < 1e-6);
  CHECK(sameBits(z.values(), heads));
}
