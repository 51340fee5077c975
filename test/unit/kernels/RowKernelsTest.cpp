// norm, embed's scale, positions, the element-wise kernels, logits with argmax, and the accuracy of the vector functions.
#include "Harness.h"

#include "kernels/cpu/Sizes.h"
#include "kernels/cpu/VectorMath.h"
#include "kernels/reference/Reference.h"
#include "kernels/reference/State.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>

using namespace mcc;
using namespace mcc::test;

TEST_CASE("norm equals the reference, also in place and at odd sizes") {
  Random random(11);
  for (int64_t cols : {1, 15, 16, 17, 100, 576})
    for (int64_t kind : {0, 1})
      for (bool affine : {false, true}) {
        std::vector<float> x = random.floats(5 * (cols + 2), 4.0f), expected(static_cast<size_t>(5 * cols)), y = expected;
        for (float &value : x)
          value += 3.0f;
        const std::vector<float> weight = random.floats(cols), bias = random.floats(cols);
        const float *w = affine ? weight.data() : nullptr, *b = affine ? bias.data() : nullptr;
        for (int64_t t = 0; t < 5; ++t)
          reference::norm({kind, w, b, 1e-3f}, x.data() + t * (cols + 2), expected.data() + t * cols, cols);
        runStep(2, 5, 0, 64, [&](const MccStep *step) {
          mcc_cpu_norm(step, 5, x.data(), w, b, y.data(), cols, 1, 1, cols + 2, cols, kind, 1e-3f);
        });
        CHECK(largestDifference(y.data(), cols, expected.data(), cols, 5, cols) < 4e-6);
        runStep(1, 5, 0, 64, [&](const MccStep *step) {
          mcc_cpu_norm(step, 5, x.data(), w, b, x.data(), cols, 1, 0, cols + 2, cols + 2, kind, 1e-3f);
        });
        CHECK(largestDifference(x.data(), cols + 2, y.data(), cols, 5, cols) == 0);
      }
}

TEST_CASE("a norm of groups takes each by itself, with weights of its own or shared, in place and for all threads") {
  Random random(16);
  for (int64_t width : {1, 7, 16, 33, 64})
    for (int64_t groups : {1, 2, 3, 5})
      for (int64_t kind : {0, 1})
        for (bool own : {false, true}) {
          CAPTURE(width);
          CAPTURE(groups);
          const int64_t cols = width * groups, stride = cols + 3, rows = 3;
          const std::vector<float> x = random.floats(rows * stride, 4.0f), weight = random.floats(own ? cols : width);
          const std::vector<float> bias = random.floats(own ? cols : width);
          std::vector<float> expected = x;
          for (int64_t t = 0; t < rows; ++t)
            reference::groupNorm({kind, weight.data(), bias.data(), 1e-3f}, x.data() + t * stride, expected.data() + t * stride, cols, groups, own);
          for (int64_t threads : {1, 2, 7}) {
            std::vector<float> y = x;
            runStep(threads, rows, 0, 64, [&](const MccStep *step) {
              mcc_cpu_norm(step, rows, y.data(), weight.data(), bias.data(), y.data(), cols, groups, own, stride, stride, kind, 1e-3f);
            });
            CHECK(largestDifference(y.data(), stride, expected.data(), stride, rows, cols) < 4e-6);
            for (int64_t t = 0; t < rows; ++t) // nothing past the row
              for (int64_t i = cols; i < stride; ++i)
                REQUIRE(y[static_cast<size_t>(t * stride + i)] == x[static_cast<size_t>(t * stride + i)]);
          }
          // A group is the same bits as a norm of its own.
          std::vector<float> y = x, alone(static_cast<size_t>(width));
          const auto run = [&](float *to, const float *from, const float *w, const float *b, int64_t count, int64_t parts) {
            runStep(1, 1, 0, 64, [&](const MccStep *step) {
              mcc_cpu_norm(step, 1, from, w, b, to, count, parts, own, stride, stride, kind, 1e-3f);
            });
          };
          run(y.data(), x.data(), weight.data(), bias.data(), cols, groups);
          for (int64_t group = 0; group < groups; ++group) {
            const int64_t column = group * width, at = own ? column : 0;
            run(alone.data(), x.data() + column, weight.data() + at, bias.data() + at, width, 1);
            CHECK(sameBits(alone, std::vector<float>(y.begin() + column, y.begin() + column + width)));
          }
        }
}

TEST_CASE("positions adds rows of the table in every format, from the position and the offset on, in place too") {
  Random random(17);
  for (Format format : allFormats()) {
    CAPTURE(formatInfo(format).name);
    const int64_t rows = 45, tokens = 7, unit = formatInfo(format).blockElems, cols = unit == 1 ? 301 : unit == 32 ? 288 : 512;
    const Weights table = randomWeights(format, rows, cols, 18);
    const std::vector<float> x = random.floats(tokens * cols);
    for (int64_t position : {0, 5, 36})
      for (int64_t offset : {0, 2}) {
        std::vector<float> expected(x.size()), y(x.size()), inPlace = x;
        reference::addPositions(x.data(), table.values.data(), expected.data(), tokens, cols, position + offset);
        runStep(3, tokens, position, 64, [&](const MccStep *step) {
          positionsEntry(format)(step, tokens, x.data(), table.packed.data(), y.data(), rows, cols, cols, cols, offset);
        });
        CHECK(sameBits(y, expected));
        for (int64_t at = 0; at < tokens; at += 3) { // in pieces
          const int64_t count = std::min<int64_t>(3, tokens - at);
          float *piece = inPlace.data() + at * cols;
          runStep(2, count, position + at, 64, [&](const MccStep *step) {
            positionsEntry(format)(step, count, piece, table.packed.data(), piece, rows, cols, cols, cols, offset);
          });
        }
        CHECK(sameBits(inPlace, expected));
      }
  }
}

TEST_CASE("clamp keeps a NaN and the edges, scale multiplies once, both in place at odd widths") {
  Random random(19);
  for (int64_t cols : {1, 17, 300}) {
    const int64_t stride = cols + 2;
    std::vector<float> x = random.floats(3 * stride, 6.0f);
    x[0] = NAN;
    x[static_cast<size_t>(stride)] = INFINITY;
    x[static_cast<size_t>(2 * stride)] = -INFINITY;
    std::vector<float> clamped = x, scaled = x, apart(x.size(), 7.0f);
    runStep(2, 3, 0, 64, [&](const MccStep *step) {
      mcc_cpu_clamp(step, 3, clamped.data(), clamped.data(), cols, stride, stride, 2.5f);
      mcc_cpu_scale(step, 3, scaled.data(), scaled.data(), cols, stride, stride, 0.3f);
      mcc_cpu_clamp(step, 3, x.data(), apart.data(), cols, stride, stride, 2.5f);
    });
    CHECK(std::isnan(clamped[0]));
    CHECK(std::isnan(apart[0]));
    for (int64_t i = 1; i < 3 * stride; ++i) {
      const size_t at = static_cast<size_t>(i);
      const bool inside = i % stride < cols;
      REQUIRE(clamped[at] == (inside ? static_cast<float>(reference::clamp(x[at], 2.5)) : x[at]));
      REQUIRE(apart[at] == (inside ? clamped[at] : 7.0f));
      REQUIRE(scaled[at] == (inside ? x[at] * 0.3f : x[at]));
    }
  }
}

TEST_CASE("xielu equals the reference on both sides of its bends, at odd widths and in place; a NaN stays") {
  Random random(21);
  for (const std::array<float, 4> &parameters : {std::array{0.8f, 0.3f, 0.5f, -1e-6f}, std::array{-2.0f, 25.0f, -0.25f, -0.7f}, std::array{0.0f, -30.0f, 0.0f, 0.5f}})
    for (int64_t cols : {1, 17, 300}) {
      const int64_t stride = cols + 2;
      std::vector<float> x = random.floats(4 * stride, 3.0f);
      for (int64_t i = 0; i < cols; ++i) // near zero, where e^x - 1 loses its digits
        x[static_cast<size_t>(i)] *= 1e-3f;
      x[0] = NAN;
      x[static_cast<size_t>(stride)] = -500.0f;
      x[static_cast<size_t>(2 * stride)] = 0.0f;
      std::vector<float> y(x.size(), 7.0f), inPlace = x;
      runStep(3, 4, 0, 64, [&](const MccStep *step) {
        mcc_cpu_xielu(step, 4, x.data(), parameters.data(), y.data(), cols, stride, stride);
        mcc_cpu_xielu(step, 4, inPlace.data(), parameters.data(), inPlace.data(), cols, stride, stride);
      });
      CHECK(std::isnan(y[0]));
      for (int64_t i = 1; i < 4 * stride; ++i) {
        const size_t at = static_cast<size_t>(i);
        const bool inside = i % stride < cols;
        const double expected = reference::xielu(x[at], parameters.data());
        REQUIRE(std::fabs(y[at] - (inside ? expected : 7.0)) <= 2e-6 * std::fabs(expected) + 2e-7 * std::fabs(x[at]));
        REQUIRE(inPlace[at] == (inside ? y[at] : x[at]));
      }
    }
}

TEST_CASE("embed scales, and takes tokens in any order") {
  const Weights table = randomWeights(Format::Q4_K, 40, 512, 8);
  const std::vector<int32_t> ids = {39, 0, 16, 16, 15};
  std::vector<float> y(5 * 520, 7.0f);
  runStep(3, 5, 0, 64, [&](const MccStep *step) {
    mcc_cpu_embed_q4_k(step, 5, table.packed.data(), y.data(), 40, 512, 520, 22.6f);
  }, ids.data());
  for (size_t t = 0; t < 5; ++t) {
    for (size_t k = 0; k < 512; ++k)
      REQUIRE(y[t * 520 + k] == 22.6f * table.values[static_cast<size_t>(ids[t]) * 512 + k]);
    CHECK(y[t * 520 + 512] == 7.0f);
  }
}

TEST_CASE("element-wise kernels equal the reference at odd widths") {
  Random random(12);
  for (int64_t cols : {1, 17, 300})
    for (int64_t activation : {0, 1, 2, 3, 4, 5, 6, 8}) {
      const std::vector<float> a = random.floats(3 * cols, 6.0f), b = random.floats(3 * cols, 6.0f);
      std::vector<float> activated(a.size()), gated = activated, added = activated;
      runStep(2, 3, 0, 64, [&](const MccStep *step) {
        mcc_cpu_activate(step, 3, a.data(), activated.data(), cols, cols, cols, activation);
        mcc_cpu_gate(step, 3, a.data(), b.data(), gated.data(), cols, cols, cols, cols, activation);
        mcc_cpu_add(step, 3, a.data(), b.data(), added.data(), cols, cols, cols, cols);
      });
      for (size_t i = 0; i < a.size(); ++i) {
        const double expected = reference::activate(a[i], static_cast<Activation>(activation));
        REQUIRE(activated[i] == doctest::Approx(expected).epsilon(1e-6).scale(1));
        REQUIRE(gated[i] == doctest::Approx(expected * b[i]).epsilon(1e-6).scale(6));
        REQUIRE(added[i] == a[i] + b[i]);
      }
    }
}

namespace {

// Largest error of `kernel` against `exact` in units of the exact value's last place.
template <class Kernel, class Exact>
double largestUlps(float from, float to, int64_t steps, Kernel kernel, Exact exact) {
  double largest = 0;
  for (int64_t i = 0; i <= steps; i += cpu::kLanes) {
    float x[cpu::kLanes], y[cpu::kLanes];
    for (int64_t j = 0; j < cpu::kLanes; ++j)
      x[j] = from + (to - from) * static_cast<float>(i + j) / static_cast<float>(steps);
    cpu::store(y, kernel(cpu::load(x)));
    for (int64_t j = 0; j < cpu::kLanes; ++j) {
      const double expected = exact(static_cast<double>(x[j]));
      const double ulp = std::ldexp(1.0, std::max(std::ilogb(expected == 0 ? 1e-45 : expected), -126) - 23);
      largest = std::max(largest, std::fabs(y[j] - expected) / ulp);
    }
  }
  return largest;
}

} // namespace

TEST_CASE("exp is within 1.1 ulp, tanh within 2, over their ranges") {
  const auto exponential = [](cpu::F32x16 x) { return cpu::exponential(x); };
  const auto tangent = [](cpu::F32x16 x) { return cpu::hyperbolicTangent(x); };
  const auto exactExp = [](double x) { return std::exp(x); };
  const auto exactTanh = [](double x) { return std::tanh(x); };
  CHECK(largestUlps(-87.3f, 88.7f, 400000, exponential, exactExp) < 1.1);
  CHECK(largestUlps(-1.0f, 1.0f, 400000, exponential, exactExp) < 1.1);
  CHECK(largestUlps(-103.0f, -87.4f, 50000, exponential, exactExp) < 1.1); // denormal results
  const auto minusOne = [](cpu::F32x16 x) { return cpu::exponentialMinusOne(x); };
  const auto exactMinusOne = [](double x) { return std::expm1(x); };
  CHECK(largestUlps(-20.0f, 1.0f, 400000, minusOne, exactMinusOne) < 4.0);
  CHECK(largestUlps(-0.35f, 0.35f, 400000, minusOne, exactMinusOne) < 4.0);
  CHECK(largestUlps(-10.0f, 10.0f, 400000, tangent, exactTanh) < 2.0);
  CHECK(largestUlps(-1e-3f, 1e-3f, 10000, tangent, exactTanh) < 2.0);
}

TEST_CASE("softplus is within 3 ulp over its range, and right at the edges") {
  const auto kernel = [](cpu::F32x16 x) { return cpu::softplus(x); };
  const auto exact = [](double x) { return reference::softplus(x); };
  CHECK(largestUlps(-87.0f, 88.0f, 400000, kernel, exact) < 3.0);
  CHECK(largestUlps(-2.0f, 2.0f, 400000, kernel, exact) < 3.0);
  const float x[16] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1000.0f, -1000.0f};
  float y[16];
  cpu::store(y, cpu::softplus(cpu::load(x)));
  CHECK(y[0] == y[1]);
  CHECK(y[2] == INFINITY);
  CHECK(y[3] == 0.0f);
  CHECK(std::isnan(y[4]));
  CHECK(y[5] == 1000.0f);
  CHECK(y[6] == 0.0f);
}

TEST_CASE("exp and tanh at the edges") {
  const float infinity = INFINITY;
  const float x[16] = {0.0f, -0.0f, infinity, -infinity, NAN, 1000.0f, -1000.0f, 89.0f, 88.5f, -104.0f, 1e-40f, -1e-40f};
  float e[16], t[16];
  cpu::store(e, cpu::exponential(cpu::load(x)));
  cpu::store(t, cpu::hyperbolicTangent(cpu::load(x)));
  CHECK(e[0] == 1.0f);
  CHECK(e[1] == 1.0f);
  CHECK(e[2] == infinity);
  CHECK(e[3] == 0.0f);
  CHECK(std::isnan(e[4]));
  CHECK(e[5] == infinity);
  CHECK(e[6] == 0.0f);
  CHECK(e[7] == infinity);
  CHECK(std::isfinite(e[8]));
  CHECK(e[9] == 0.0f);
  CHECK(e[10] == 1.0f);
  CHECK(t[0] == 0.0f);
  CHECK(std::signbit(t[1]));
  CHECK(t[2] == 1.0f);
  CHECK(t[3] == -1.0f);
  CHECK(std::isnan(t[4]));
  CHECK(t[10] == 1e-40f);
}

namespace {

// Runs logits and argmax; returns the token and leaves the logits.
int32_t runLogits(const Weights &weights, const std::vector<float> &x, int64_t tokens, int64_t threads, std::vector<float> &logits,
                  const float *norm = nullptr, float scale = 1.0f, float softcap = 0.0f, const float *bias = nullptr) {
  std::vector<MccPartial> partials(static_cast<size_t>(threads));
  logits.assign(static_cast<size_t>(weights.rows), 7.0f);
  int32_t token = -7;
  runStep(threads, tokens, 0, cpu::linearScratchBytes(tokens, weights.cols), [&](const MccStep *step) {
    logitsEntry(weights.format)(step, tokens, x.data(), weights.packed.data(), bias, norm, nullptr, partials.data(), logits.data(),
                                weights.rows, weights.cols, weights.cols, norm ? 0 : -1, 1e-5f, scale, softcap);
    mccrt_barrier(step);
    mcc_cpu_argmax(step, tokens, partials.data(), &token);
  });
  return token;
}

} // namespace

TEST_CASE("logits of the last row with norm, bias, scale and cap; argmax for every thread count") {
  static_assert(sizeof(MccPartial) == cpu::kPartialBytes);
  Random random(14);
  for (Format format : allFormats())
    for (int64_t rows : {5, 16, 203}) {
      CAPTURE(formatInfo(format).name);
      const Weights weights = randomWeights(format, rows, 256, 15);
      const std::vector<float> x = random.floats(3 * 256), norm = random.floats(256), bias = random.floats(rows);
      std::vector<float> expected(static_cast<size_t>(rows)), logits, again;
      reference::Linear linear = {1, rows, 256, x.data() + 2 * 256, 256, weights.values.data()};
      linear.norm = {0, norm.data(), nullptr, 1e-5f};
      linear.bias = bias.data();
      reference::linear(linear, expected.data(), rows);
      for (float &value : expected)
        value = 3.0f * std::tanh(0.5f * value / 3.0f);
      const int32_t token = runLogits(weights, x, 3, 1, logits, norm.data(), 0.5f, 3.0f, bias.data());
      CHECK(largestDifference(logits.data(), rows, expected.data(), rows, 1, rows) < 2e-5);
      CHECK(token == reference::argmax(logits.data(), rows));
      for (int64_t threads : {2, 3, 7, 40}) {
        CHECK(runLogits(weights, x, 3, threads, again, norm.data(), 0.5f, 3.0f, bias.data()) == token);
        CHECK(sameBits(again, logits));
      }
    }
}

TEST_CASE("argmax: the lowest index of a tie, -1 for a NaN, infinities") {
  Weights weights = {Format::F32, 70, 1, std::vector<uint8_t>(280), {}, {}};
  float *values = reinterpret_cast<float *>(weights.bytes.data());
  std::vector<float> logits;
  const auto token = [&](int64_t threads) {
    finishWeights(weights);
    return runLogits(weights, {1.0f}, 1, threads, logits);
  };
  for (int64_t threads : {1, 2, 3, 7}) {
    std::fill(values, values + 70, -1.0f);
    CHECK(token(threads) == 0);
    values[69] = values[33] = values[51] = 2.0f;
    CHECK(token(threads) == 33);
    values[20] = NAN;
    CHECK(token(threads) == -1);
    std::fill(values, values + 70, -INFINITY);
    CHECK(token(threads) == 0);
    values[68] = INFINITY;
    CHECK(token(threads) == 68);
    values[0] = NAN;
    CHECK(token(threads) == -1);
  }
}
