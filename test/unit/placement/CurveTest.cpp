// Curves, tables and fits: exact at samples, monotone between and beyond, robust to noise.
#include "runtime-lib/placement/Curve.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

using namespace mcc::placement;

TEST_CASE("median") {
  CHECK(median({}) == 0);
  CHECK(median({3}) == 3);
  CHECK(median({9, 1, 2}) == 2);
  CHECK(median({4, 1, 2, 9}) == 3);
}

TEST_CASE("a curve is exact at its samples' medians and interpolates logarithms") {
  auto made = Curve::make({{100, {10, 1000, 10}}, {10000, {90}}, {40000, {400, 300, 320}}});
  REQUIRE(made.ok());
  const Curve &curve = made.value();
  CHECK(curve.at(100) == 10);
  CHECK(curve.at(10000) == 90);
  CHECK(curve.at(40000) == 320);
  CHECK(curve.at(1000) == doctest::Approx(30)); // the geometric mean, halfway in logarithms
  CHECK(curve.at(0) == 0);
  CHECK(curve.samples()[0].rawNs.size() == 3);
}

TEST_CASE("the fit is recovered from samples that follow it, and carries a curve beyond them") {
  auto made = Curve::make({{10, {70}}, {100, {250}}, {1000, {2050}}}); // 50 + 2 x
  REQUIRE(made.ok());
  const Curve &curve = made.value();
  CHECK(curve.fit().coefficients[0] == doctest::Approx(50));
  CHECK(curve.fit().coefficients[1] == doctest::Approx(2));
  CHECK(curve.fit().residual == doctest::Approx(0));
  CHECK(curve.at(1e6) == doctest::Approx(2e6 + 50));
  CHECK(curve.at(1) == doctest::Approx(52));
}

TEST_CASE("a residual tells a poor fit, coefficients stay at least 0") {
  auto made = Curve::make({{1, {100}}, {2, {10}}, {3, {100}}});
  REQUIRE(made.ok());
  CHECK(made.value().fit().residual > 0.3);
  CHECK(made.value().fit().coefficients[0] >= 0);
  CHECK(made.value().fit().coefficients[1] >= 0);
  auto falling = Curve::make({{1, {100}}, {10, {10}}});
  REQUIRE(falling.ok());
  CHECK(falling.value().fit().coefficients[1] == 0);
}

TEST_CASE("one sample is taken for proportional") {
  auto made = Curve::make({{1000, {50}}});
  REQUIRE(made.ok());
  CHECK(made.value().at(4000) == doctest::Approx(200));
}

TEST_CASE("curves of noise do not fall") {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<Curve::Sample> samples;
    double size = 1;
    for (int i = 0; i < 8; ++i) {
      size *= 1 + random() % 5;
      size += 1;
      samples.push_back({size, {size * (1 + random() % 300 / 100.0), size * 2}});
    }
    auto made = Curve::make(samples);
    REQUIRE(made.ok());
    double last = 0;
    for (double x = 0.1; x < size * 10; x *= 1.07) {
      const double ns = made.value().at(x);
      CHECK(ns >= last * (1 - 1e-12));
      last = ns;
    }
  }
}

TEST_CASE("a curve refuses what is none") {
  CHECK(Curve::make({}).message() == "a curve without samples");
  CHECK(Curve::make({{2, {1}}, {2, {1}}}).message() == "size 1 is 2; sizes are positive and rise");
  CHECK(Curve::make({{0, {1}}}).message() == "size 0 is 0; sizes are positive and rise");
  CHECK(Curve::make({{1, {}}}).message() == "size 1 without samples");
  CHECK(Curve::make({{1, {-1}}}).message() == "a sample of -1 ns; times are positive");
  CHECK(Curve::make({{1, {std::nan("")}}}).message() == "a sample of nan ns; times are positive");
}

/// Returns a table of times that follow 1000 + m n k / 10 + n k / 2, with some cells left out.
static GemmTable makeTable(bool holes) {
  const std::array<GemmTable::Axis, 3> axes = {{{2, 16, 128}, {64, 512}, {64, 256, 1024}}};
  std::vector<RawNs> cells;
  for (const double m : axes[0])
    for (const double n : axes[1])
      for (const double k : axes[2])
        cells.push_back({1000 + m * n * k / 10 + n * k / 2});
  if (holes)
    cells[3] = cells[17] = {};
  auto made = GemmTable::make(axes, cells);
  REQUIRE(made.ok());
  return std::move(made.value());
}

TEST_CASE("a table is exact at its samples, and its fit fills the cells without") {
  for (const bool holes : {false, true}) {
    const GemmTable table = makeTable(holes);
    for (const double m : table.axes()[0])
      for (const double n : table.axes()[1])
        for (const double k : table.axes()[2])
          CHECK(table.at(m, n, k) == doctest::Approx(1000 + m * n * k / 10 + n * k / 2).epsilon(1e-9));
    CHECK(table.fit().coefficients[0] == doctest::Approx(1000));
    CHECK(table.fit().coefficients[1] == doctest::Approx(0.1));
    CHECK(table.fit().coefficients[2] == doctest::Approx(0.5));
    CHECK(table.fit().residual < 1e-9);
  }
}

TEST_CASE("a table is monotone in every size, within and beyond its grid") {
  std::mt19937 random(4);
  const std::array<GemmTable::Axis, 3> axes = {{{2, 8, 32}, {16, 256}, {32, 64, 2048}}};
  std::vector<RawNs> cells;
  for (int i = 0; i < 18; ++i)
    cells.push_back({1.0 + random() % 100000});
  auto made = GemmTable::make(axes, cells);
  REQUIRE(made.ok());
  for (int i = 0; i < 3000; ++i) {
    std::array<double, 3> at;
    for (double &size : at)
      size = std::exp((random() % 9000) / 1000.0);
    const double ns = made.value().at(at[0], at[1], at[2]);
    at[random() % 3] *= 1 + (random() % 100) / 50.0;
    CHECK(made.value().at(at[0], at[1], at[2]) >= ns * (1 - 1e-12));
  }
}

TEST_CASE("a table refuses what is none") {
  CHECK(GemmTable::make({{{1}, {1}, {}}}, {}).message() == "an axis without sizes");
  CHECK(GemmTable::make({{{1}, {2, 1}, {1}}}, {{1}, {1}}).message() == "size 1 is 1; sizes are positive and rise");
  CHECK(GemmTable::make({{{1}, {1, 2}, {1}}}, {{1}}).message() == "1 cells; the axes make 2");
  CHECK(GemmTable::make({{{1}, {1}, {1}}}, {{}}).message() == "a table without samples");
}
