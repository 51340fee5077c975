// conv and the scans against the scalar reference at odd sizes; one chunk, several, or token by token, and any number of
// threads, leave the same bits in results and state.
#include "Harness.h"

#include "kernels/cpu/Sizes.h"
#include "kernels/reference/State.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace mcc;
using namespace mcc::test;

namespace {

// Rows of a test's input with a stride of their own.
struct Input {
  std::vector<float> values;
  int64_t stride;
  Input(Random &random, int64_t tokens, int64_t cols, float scale = 1.0f)
      : values(random.floats(tokens * (cols + 3), scale)), stride(cols + 3) {}
  const float *row(int64_t t) const { return values.data() + t * stride; }
  operator reference::Rows() const { return {values.data(), stride}; }
};

constexpr int64_t kTokens = 13;

// How a sequence of kTokens is cut: in one, token by token, unevenly.
const std::vector<std::vector<int64_t>> kCuts = {{13}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {5, 1, 2, 5}};

// Results and state of one way to run a sequence.
struct Run {
  std::vector<float> y, state;
};

// Runs a sequence in pieces: body(step, first token, tokens, state, y of the first token). y starts as NaN.
template <class Body>
Run runSequence(const std::vector<int64_t> &cut, int64_t threads, int64_t stateFloats, int64_t yStride, Body body) {
  Run run = {std::vector<float>(static_cast<size_t>(kTokens * yStride), NAN),
             std::vector<float>(static_cast<size_t>(stateFloats), 0.0f)};
  int64_t at = 0;
  for (int64_t tokens : cut) {
    runStep(threads, tokens, at, 0, [&](const MccStep *step) {
      body(step, at, tokens, run.state.data(), run.y.data() + at * yStride);
    });
    at += tokens;
  }
  return run;
}

// Runs a sequence in every way and checks that all agree with `expected`, [kTokens, cols], and with each other; returns
// the state. Rows of y are cols + 2 apart, and nothing is written between.
template <class Body>
std::vector<float> checkRuns(const std::vector<float> &expected, int64_t cols, int64_t stateFloats, double tolerance, Body body) {
  const int64_t yStride = cols + 2;
  const Run first = runSequence(kCuts[0], 1, stateFloats, yStride, body);
  CHECK(largestDifference(first.y.data(), yStride, expected.data(), cols, kTokens, cols) < tolerance);
  for (int64_t t = 0; t < kTokens; ++t)
    CHECK(std::isnan(first.y[static_cast<size_t>(t * yStride + cols)]));
  for (const std::vector<int64_t> &cut : kCuts)
    for (int64_t threads : {1, 2, 7}) {
      const Run again = runSequence(cut, threads, stateFloats, yStride, body);
      CHECK(sameBits(again.y, first.y));
      CHECK(sameBits(again.state, first.state));
    }
  return first.state;
}

// A matrix as the kernels take it: f32 in panels of 16 rows.
Weights panels(const std::vector<float> &values, int64_t rows, int64_t cols) {
  Weights weights = {Format::F32, rows, cols, {}, {}, {}};
  const uint8_t *bytes = reinterpret_cast<const uint8_t *>(values.data());
  weights.bytes.assign(bytes, bytes + values.size() * sizeof(float));
  finishWeights(weights);
  return weights;
}

const float *floatsOf(const Weights &weights) { return reinterpret_cast<const float *>(weights.packed.data()); }

// Numbers in [-scale, 0).
std::vector<float> negative(Random &random, int64_t count, float scale) {
  std::vector<float> values = random.floats(count, scale);
  for (float &value : values)
    value = -std::fabs(value) - 1e-3f;
  return values;
}

} // namespace

TEST_CASE("conv equals the reference for every number of taps, with bias and activation, and keeps the last inputs") {
  Random random(31);
  for (int64_t channels : {1, 15, 16, 17, 50})
    for (int64_t taps : {1, 2, 3, 4, 17})
      for (bool biased : {false, true}) {
        CAPTURE(channels);
        CAPTURE(taps);
        const Input x(random, kTokens, channels);
        const Weights weight = panels(random.floats(channels * taps), channels, taps);
        const std::vector<float> bias = random.floats(channels);
        const float *offset = biased ? bias.data() : nullptr;
        const Activation activation = biased ? Activation::Silu : Activation::None;
        std::vector<double> state(static_cast<size_t>((taps - 1) * channels));
        std::vector<float> expected(static_cast<size_t>(kTokens * channels));
        reference::conv({kTokens, channels, taps, x, weight.values.data(), offset, activation}, state.data(), expected.data(), channels);
        const int64_t stateFloats = cpu::stateBytes(taps - 1, channels) / 4;
        const std::vector<float> left = checkRuns(expected, channels, stateFloats, 2e-6, [&](const MccStep *step, int64_t at, int64_t tokens, float *kept, float *y) {
          mcc_cpu_conv(step, tokens, x.row(at), floatsOf(weight), offset, taps == 1 ? nullptr : kept, y, channels, taps, x.stride, channels + 2,
                       static_cast<int64_t>(activation));
        });
        for (int64_t row = 0; row + 1 < taps; ++row)
          for (int64_t c = 0; c < channels; ++c)
            REQUIRE(left[static_cast<size_t>(row * cpu::roundUp(channels, 16) + c)] == static_cast<float>(state[static_cast<size_t>(row * channels + c)]));
      }
}

TEST_CASE("selective_scan equals the reference") {
  Random random(32);
  for (int64_t channels : {1, 16, 17, 50})
    for (int64_t depth : {1, 3, 4, 8, 17}) {
      CAPTURE(channels);
      CAPTURE(depth);
      const Input x(random, kTokens, channels), dt(random, kTokens, channels, 3.0f), b(random, kTokens, depth), c(random, kTokens, depth);
      const Weights a = panels(negative(random, channels * depth, 2.0f), channels, depth);
      const std::vector<float> skip = random.floats(channels);
      std::vector<double> state(static_cast<size_t>(channels * depth));
      std::vector<float> expected(static_cast<size_t>(kTokens * channels));
      reference::selectiveScan({kTokens, channels, depth, x, dt, b, c, a.values.data(), skip.data()}, state.data(), expected.data(), channels);
      const std::vector<float> left = checkRuns(expected, channels, cpu::stateBytes(depth, channels) / 4, 2e-5, [&](const MccStep *step, int64_t at, int64_t tokens, float *kept, float *y) {
        mcc_cpu_selective_scan(step, tokens, x.row(at), dt.row(at), b.row(at), c.row(at), floatsOf(a), skip.data(), kept, y, channels, depth, x.stride,
                               dt.stride, b.stride, c.stride, channels + 2);
      });
      for (int64_t channel = 0; channel < channels; ++channel)
        for (int64_t n = 0; n < depth; ++n)
          REQUIRE(left[static_cast<size_t>((channel / 16 * depth + n) * 16 + channel % 16)] ==
                  doctest::Approx(state[static_cast<size_t>(channel * depth + n)]).epsilon(1e-5).scale(1));
    }
}

TEST_CASE("state_scan equals the reference: groups, limits of the time step, heads that are no whole panels") {
  struct Shape {
    int64_t heads, headDim, groups, depth;
  };
  Random random(33);
  for (const Shape &shape : {Shape{1, 1, 1, 1}, {4, 16, 1, 16}, {6, 5, 2, 7}, {3, 33, 3, 8}, {8, 20, 4, 130}})
    for (bool limited : {false, true}) {
      const int64_t heads = shape.heads, inner = heads * shape.headDim, depth = shape.depth, mixed = shape.groups * depth;
      CAPTURE(heads);
      CAPTURE(depth);
      const Input x(random, kTokens, inner), dt(random, kTokens, heads, 2.0f), b(random, kTokens, mixed), c(random, kTokens, mixed);
      const std::vector<float> a = negative(random, heads, 2.0f), dtBias = random.floats(heads), skip = random.floats(heads);
      const float timeMin = limited ? 0.3f : 0.0f, timeMax = limited ? 0.9f : 3.4e38f;
      std::vector<double> state(static_cast<size_t>(inner * depth));
      std::vector<float> expected(static_cast<size_t>(kTokens * inner));
      reference::stateScan({kTokens, heads, shape.headDim, shape.groups, depth, x, dt, b, c, a.data(), dtBias.data(), skip.data(), timeMin, timeMax},
                           state.data(), expected.data(), inner);
      const int64_t padded = cpu::roundUp(shape.headDim, 16), stateFloats = cpu::stateBytes(heads * depth, shape.headDim) / 4;
      const std::vector<float> left = checkRuns(expected, inner, stateFloats, 1e-4, [&](const MccStep *step, int64_t at, int64_t tokens, float *kept, float *y) {
        mcc_cpu_state_scan(step, tokens, x.row(at), dt.row(at), b.row(at), c.row(at), a.data(), dtBias.data(), skip.data(), kept, y, heads, shape.headDim,
                           shape.groups, depth, x.stride, dt.stride, b.stride, c.stride, inner + 2, timeMin, timeMax);
      });
      for (int64_t entry = 0; entry < inner; ++entry)
        for (int64_t n = 0; n < depth; ++n) {
          const int64_t lane = entry / shape.headDim * padded + entry % shape.headDim;
          REQUIRE(left[static_cast<size_t>((lane / 16 * depth + n) * 16 + lane % 16)] ==
                  doctest::Approx(state[static_cast<size_t>(entry * depth + n)]).epsilon(1e-5).scale(1));
        }
    }
}

TEST_CASE("delta_scan equals the reference: shared key heads, value heads that are no whole panels, a key of zeros") {
  struct Shape {
    int64_t keyHeads, valueHeads, keyDim, valueDim;
  };
  Random random(34);
  for (const Shape &shape : {Shape{1, 1, 1, 1}, {2, 4, 16, 16}, {1, 3, 7, 5}, {2, 2, 33, 40}, {2, 6, 130, 20}}) {
    const int64_t keys = shape.keyHeads * shape.keyDim, values = shape.valueHeads * shape.valueDim;
    CAPTURE(keys);
    CAPTURE(values);
    const Input q(random, kTokens, keys), v(random, kTokens, values), beta(random, kTokens, shape.valueHeads, 2.0f), decay(random, kTokens, shape.valueHeads, 2.0f);
    Input k(random, kTokens, keys);
    std::fill_n(k.values.begin() + 2 * k.stride, keys, 0.0f);
    const std::vector<float> a = negative(random, shape.valueHeads, 1.0f), dtBias = random.floats(shape.valueHeads);
    std::vector<double> state(static_cast<size_t>(shape.keyDim * values));
    std::vector<float> expected(static_cast<size_t>(kTokens * values));
    reference::deltaScan({kTokens, shape.keyHeads, shape.valueHeads, shape.keyDim, shape.valueDim, q, k, v, beta, decay, a.data(), dtBias.data()}, state.data(),
                         expected.data(), values);
    const int64_t stateFloats = cpu::stateBytes(shape.valueHeads * shape.keyDim, shape.valueDim) / 4;
    checkRuns(expected, values, stateFloats, 1e-5, [&](const MccStep *step, int64_t at, int64_t tokens, float *kept, float *y) {
      mcc_cpu_delta_scan(step, tokens, q.row(at), k.row(at), v.row(at), beta.row(at), decay.row(at), a.data(), dtBias.data(), kept, y, shape.keyHeads,
                         shape.valueHeads, shape.keyDim, shape.valueDim, q.stride, k.stride, v.stride, beta.stride, decay.stride, values + 2);
    });
  }
}

TEST_CASE("a NaN of one token stays in its channel's state and no other") {
  Random random(35);
  const int64_t channels = 20, depth = 4;
  const Weights a = panels(negative(random, channels * depth, 2.0f), channels, depth);
  Input x(random, 3, channels);
  const Input dt(random, 3, channels), b(random, 3, depth), c(random, 3, depth);
  const std::vector<float> skip = random.floats(channels);
  x.values[5] = NAN;
  std::vector<float> y(static_cast<size_t>(3 * channels)), state(static_cast<size_t>(cpu::stateBytes(depth, channels) / 4));
  runStep(1, 3, 0, 0, [&](const MccStep *step) {
    mcc_cpu_selective_scan(step, 3, x.row(0), dt.row(0), b.row(0), c.row(0), floatsOf(a), skip.data(), state.data(), y.data(), channels, depth, x.stride,
                           dt.stride, b.stride, c.stride, channels);
  });
  for (int64_t t = 0; t < 3; ++t)
    for (int64_t channel = 0; channel < channels; ++channel)
      CHECK(std::isnan(y[static_cast<size_t>(t * channels + channel)]) == (channel == 5));
}
