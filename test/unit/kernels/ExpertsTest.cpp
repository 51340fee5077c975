// route, experts, combine and assemble against the scalar reference; the bits do not depend on threads or on how a prompt is cut.
#include "Harness.h"

#include "kernels/cpu/Sizes.h"
#include "kernels/reference/Experts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace mcc;
using namespace mcc::test;

namespace {

std::vector<float> runRoute(const reference::Router &router, const std::vector<float> &logits, const float *bias, int64_t tokens, int64_t threads) {
  std::vector<float> y(static_cast<size_t>(tokens * 2 * router.chosen), NAN);
  const int64_t stride = static_cast<int64_t>(logits.size()) / tokens;
  runStep(threads, tokens, 0, cpu::routeScratchBytes(router.experts), [&](const MccStep *step) {
    mcc_cpu_route(step, tokens, logits.data(), bias, y.data(), router.experts, router.chosen, router.scoring, router.normalize, router.groups, router.groupsChosen,
                  router.groupScore, stride, 2 * router.chosen, static_cast<float>(router.scale));
  });
  return y;
}

void checkRoute(const reference::Router &router, const std::vector<float> &logits, const float *bias, int64_t tokens) {
  const std::vector<float> y = runRoute(router, logits, bias, tokens, 1);
  const int64_t stride = static_cast<int64_t>(logits.size()) / tokens;
  for (int64_t t = 0; t < tokens; ++t) {
    const std::vector<reference::Pick> picks = reference::route(router, logits.data() + t * stride, bias);
    for (int64_t slot = 0; slot < router.chosen; ++slot) {
      const size_t at = static_cast<size_t>(t * 2 * router.chosen + slot);
      CHECK(y[at + static_cast<size_t>(router.chosen)] == static_cast<float>(picks[static_cast<size_t>(slot)].expert));
      CHECK(y[at] == doctest::Approx(picks[static_cast<size_t>(slot)].weight).epsilon(1e-5));
    }
  }
  for (int64_t threads : {2, 5})
    CHECK(sameBits(runRoute(router, logits, bias, tokens, threads), y));
}

} // namespace

TEST_CASE("route: scorings, normalisation, scale, bias and groups") {
  Random random(7);
  const int64_t tokens = 5;
  for (const int64_t experts : {4, 24, 60, 128}) {
    const std::vector<float> logits = random.floats(tokens * (experts + 3), 4.0f), bias = random.floats(experts, 0.5f);
    for (const int64_t scoring : {0, 1, 2})
      for (const bool normalize : {false, true})
        for (const bool biased : {false, true}) {
          CAPTURE(experts);
          CAPTURE(scoring);
          reference::Router router{experts, 3, scoring, normalize, 1, 1, 0, 2.5};
          checkRoute(router, logits, biased ? bias.data() : nullptr, tokens);
          for (const int64_t groupScore : {0, 1}) {
            router.groups = 2, router.groupsChosen = 1, router.groupScore = groupScore;
            router.chosen = 2;
            checkRoute(router, logits, biased ? bias.data() : nullptr, tokens);
          }
        }
  }
}

TEST_CASE("route: ties go to the lower number, weights are divided by their sum only where told") {
  const reference::Router plain{6, 2, 0, false, 1, 1, 0, 1};
  const std::vector<float> y = runRoute(plain, {1, 3, 2, 3, 3, 0}, nullptr, 1, 1);
  CHECK(y[2] == 1.0f);
  CHECK(y[3] == 3.0f);
  CHECK(y[0] + y[1] < 0.9f);
  reference::Router normal = plain;
  normal.normalize = true;
  const std::vector<float> z = runRoute(normal, {1, 3, 2, 3, 3, 0}, nullptr, 1, 1);
  CHECK(z[0] == doctest::Approx(0.5));
  CHECK(z[1] == doctest::Approx(0.5));
  // Of equal groups the first is taken.
  const reference::Router grouped{4, 1, 2, false, 2, 1, 0, 1};
  CHECK(runRoute(grouped, {0, 2, 2, 1}, nullptr, 1, 1)[1] == 1.0f);
}

TEST_CASE("route: a NaN makes the weights NaN and the numbers stay within the experts") {
  for (const int64_t scoring : {0, 2}) {
    const reference::Router router{5, 2, scoring, true, 1, 1, 0, 1};
    const std::vector<float> y = runRoute(router, {NAN, NAN, NAN, NAN, NAN}, nullptr, 1, 1);
    CHECK(std::isnan(y[0]));
    for (int64_t slot : {2, 3}) {
      CHECK(y[static_cast<size_t>(slot)] >= 0.0f);
      CHECK(y[static_cast<size_t>(slot)] < 5.0f);
    }
  }
}

namespace {

// A stack of experts and the rows that choose among them.
struct Stack {
  Format format;
  int64_t experts, chosen, rows, cols, tokens;
  bool gated, ownRows;
  std::vector<Weights> gates, ups;
  std::vector<uint8_t> packed;
  std::vector<float> x, picks, gateBias, upBias, packedBias;
  float limit = 0, upOffset = 0;
  Activation activation = Activation::Silu;
  int64_t xStride() const { return (ownRows ? chosen : 1) * cols + 3; }
  int64_t yStride() const { return chosen * rows + 2; }
};

Stack makeStack(Format format, int64_t experts, int64_t chosen, int64_t rows, int64_t cols, int64_t tokens, bool gated, bool ownRows) {
  Stack s{format, experts, chosen, rows, cols, tokens, gated, ownRows, {}, {}, {}, {}, {}, {}, {}, {}};
  Random random(static_cast<uint64_t>(experts * 31 + tokens));
  for (int64_t e = 0; e < experts; ++e) {
    s.gates.push_back(randomWeights(format, rows, cols, random.bits()));
    s.ups.push_back(randomWeights(format, rows, cols, random.bits()));
    const std::vector<uint8_t> one = gated ? packGated(s.gates.back(), s.ups.back()) : s.gates.back().packed;
    s.packed.insert(s.packed.end(), one.begin(), one.end());
  }
  s.x = random.floats(tokens * s.xStride());
  s.gateBias = random.floats(experts * rows);
  s.upBias = random.floats(experts * rows);
  for (int64_t panel = 0; panel < experts * rows / 16; ++panel)
    for (const std::vector<float> *bias : {&s.gateBias, &s.upBias})
      if (gated || bias == &s.gateBias)
        s.packedBias.insert(s.packedBias.end(), bias->begin() + panel * 16, bias->begin() + (panel + 1) * 16);
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t slot = 0; slot < chosen; ++slot)
      s.picks.push_back(random.uniform());
    for (int64_t slot = 0; slot < chosen; ++slot) // most tokens choose expert 1, some experts nobody
      s.picks.push_back(static_cast<float>(slot == 0 ? (t % 3 ? 1 : t % experts) : (t + slot * 2) % experts));
  }
  return s;
}

ExpertsEntry entryOf(Format format) { return expertsEntry(format); }

std::vector<float> run(const Stack &s, int64_t first, int64_t tokens, int64_t threads) {
  std::vector<float> y(static_cast<size_t>(tokens * s.yStride()), NAN);
  runStep(threads, tokens, 0, cpu::expertsScratchBytes(s.cols), [&](const MccStep *step) {
    entryOf(s.format)(step, tokens, s.x.data() + first * s.xStride(), s.picks.data() + first * 2 * s.chosen, s.packed.data(), s.packedBias.data(), y.data(), s.experts,
                      s.chosen, s.rows, s.cols, s.ownRows, s.xStride(), 2 * s.chosen, s.yStride(), static_cast<int64_t>(s.activation), s.gated, s.limit, s.upOffset);
  });
  return y;
}

std::vector<float> expectedOf(const Stack &s) {
  std::vector<float> y(static_cast<size_t>(s.tokens * s.yStride()), NAN);
  for (int64_t t = 0; t < s.tokens; ++t)
    for (int64_t slot = 0; slot < s.chosen; ++slot) {
      const int64_t e = static_cast<int64_t>(s.picks[static_cast<size_t>(t * 2 * s.chosen + s.chosen + slot)]);
      reference::Expert expert{s.rows, s.cols, s.gates[static_cast<size_t>(e)].values.data()};
      expert.up = s.gated ? s.ups[static_cast<size_t>(e)].values.data() : nullptr;
      expert.bias = s.gateBias.data() + e * s.rows;
      expert.upBias = s.upBias.data() + e * s.rows;
      expert.activation = s.activation;
      expert.limit = s.limit, expert.upOffset = s.upOffset;
      reference::expert(expert, s.x.data() + t * s.xStride() + (s.ownRows ? slot * s.cols : 0), y.data() + t * s.yStride() + slot * s.rows);
    }
  return y;
}

void checkStack(const Stack &s) {
  const std::vector<float> all = run(s, 0, s.tokens, 1), expected = expectedOf(s);
  // A gated result is a product of two sums: what counts is its size.
  const double largest = largestDifference(expected.data(), s.yStride(), std::vector<float>(expected.size(), 0.0f).data(), s.yStride(), s.tokens, s.chosen * s.rows);
  CHECK(largestDifference(all.data(), s.yStride(), expected.data(), s.yStride(), s.tokens, s.chosen * s.rows) < 1e-5 * std::max(1.0, largest));
  for (int64_t threads : {2, 3, 8})
    CHECK(sameBits(run(s, 0, s.tokens, threads), all));
  for (int64_t t = 0; t < std::min<int64_t>(s.tokens, 7); ++t) {
    const std::vector<float> one = run(s, t, 1, 2);
    CHECK(sameBits(std::vector<float>(one.begin(), one.begin() + s.chosen * s.rows),
                   std::vector<float>(all.begin() + t * s.yStride(), all.begin() + t * s.yStride() + s.chosen * s.rows)));
  }
}

} // namespace

TEST_CASE("experts: every format, gated and not, shared and own rows") {
  for (const Format format : allFormats())
    for (const bool gated : {false, true})
      for (const bool ownRows : {false, true}) {
        CAPTURE(formatInfo(format).name);
        checkStack(makeStack(format, 4, 2, 32, 256, 9, gated, ownRows));
      }
}

TEST_CASE("experts: more rows of one expert than are gathered at once, many threads, one token") {
  checkStack(makeStack(Format::F32, 3, 1, 16, 37, 100, false, false));
  checkStack(makeStack(Format::BF16, 8, 3, 48, 64, 50, true, false));
  checkStack(makeStack(Format::Q8_0, 5, 2, 16, 96, 1, true, true));
}

TEST_CASE("experts: limits and the offset of up") {
  Stack s = makeStack(Format::F32, 4, 2, 16, 64, 6, true, false);
  s.activation = Activation::GeluQuick;
  s.limit = 0.3f, s.upOffset = 1.0f;
  checkStack(s);
}

TEST_CASE("combine and assemble") {
  Random random(3);
  const int64_t tokens = 4, slots = 3, cols = 37;
  const std::vector<float> weights = random.floats(tokens * 8), x = random.floats(tokens * (slots * cols + 1));
  std::vector<float> expected(static_cast<size_t>(tokens * cols)), y(expected.size(), NAN);
  for (int64_t t = 0; t < tokens; ++t)
    reference::combine(weights.data() + t * 8, x.data() + t * (slots * cols + 1), expected.data() + t * cols, slots, cols);
  for (int64_t threads : {1, 3}) {
    runStep(threads, tokens, 0, 0, [&](const MccStep *step) { mcc_cpu_combine(step, tokens, weights.data(), x.data(), y.data(), slots, cols, 8, slots * cols + 1, cols); });
    CHECK(largestDifference(y.data(), cols, expected.data(), cols, tokens, cols) < 1e-6);
  }

  // Three heads of 24: 5 shared entries, 17 of their own from every 20, zeros.
  const int64_t heads = 3, dim = 24, first = 5, second = 17;
  const std::vector<float> a = random.floats(tokens * 9), b = random.floats(tokens * 60);
  std::vector<float> heads3(static_cast<size_t>(tokens * (heads * dim + 1)), NAN);
  runStep(2, tokens, 0, 0, [&](const MccStep *step) { mcc_cpu_assemble(step, tokens, a.data(), b.data(), heads3.data(), heads, dim, first, second, 0, 20, 9, 60, heads * dim + 1); });
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < dim; ++i) {
        const float wanted = i < first ? a[static_cast<size_t>(t * 9 + i)] : i < first + second ? b[static_cast<size_t>(t * 60 + h * 20 + i - first)] : 0.0f;
        CHECK(heads3[static_cast<size_t>(t * (heads * dim + 1) + h * dim + i)] == wanted);
      }
    CHECK(std::isnan(heads3[static_cast<size_t>(t * (heads * dim + 1) + heads * dim)]));
  }
}
