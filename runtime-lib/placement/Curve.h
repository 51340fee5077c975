// Measured times as functions: a curve over one size, and a table over the three sizes of a matrix product.
//
// Both keep their raw samples. What they return is exact at the samples' medians where those do not fall as sizes grow;
// where noise makes them fall, they are levelled, for a cost model that is not monotone leads a solver astray. In
// between they interpolate logarithms, outside they go on by a fit.
#pragma once

#include "runtime-lib/src/Result.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace mcc::placement {

/// Returns the median; the mean of the middle two of an even number; 0 of none.
double median(std::vector<double> values);

/// Times of repetitions of one thing. All positive.
using RawNs = std::vector<double>;

/// Non-negative coefficients of a sum of features, the least-squares solution in relative error.
struct Fit {
  std::array<double, 3> coefficients = {};
  double residual = 0; ///< root mean square of (fitted - measured) / measured
};

/// Fits ns[i] by the features [i][0..2]; a feature that is zero everywhere takes no part.
Fit fitNonNegative(std::span<const std::array<double, 3>> features, std::span<const double> ns);

/// Time over one size.
class Curve {
public:
  struct Sample {
    double size = 0; ///< positive
    RawNs rawNs;
  };
  /// Makes a curve of at least one sample; sizes rise strictly.
  static runtime::Result<Curve> make(std::vector<Sample> samples);
  Curve() = default;

  /// Returns the time at `size`: 0 at 0, positive and not falling above.
  double at(double size) const;
  const std::vector<Sample> &samples() const { return points; }
  /// The fit: coefficients are ns and ns per unit of size.
  const Fit &fit() const { return line; }

private:
  double fitted(double size) const { return line.coefficients[0] + line.coefficients[1] * size; }
  std::vector<Sample> points;
  std::vector<double> ns; ///< by point, not falling
  Fit line;
};

/// Time of y[m, n] = x[m, k] W[n, k]^T on a grid.
class GemmTable {
public:
  using Axis = std::vector<double>;
  /// Makes a table; axes (m, n, k) rise strictly, `rawNs` is row-major in them. A cell without samples takes its time
  /// from the fit; at least one cell has some.
  static runtime::Result<GemmTable> make(std::array<Axis, 3> axes, std::vector<RawNs> rawNs);
  GemmTable() = default;

  /// Returns the time of a product, all sizes positive.
  double at(double m, double n, double k) const;
  bool empty() const { return cells.empty(); }
  const std::array<Axis, 3> &axes() const { return sizes; }
  const std::vector<RawNs> &rawNs() const { return cells; }
  /// The fit: coefficients are ns, ns per multiply-add, ns per weight element.
  const Fit &fit() const { return plane; }

private:
  size_t cell(size_t m, size_t n, size_t k) const { return (m * sizes[1].size() + n) * sizes[2].size() + k; }
  void levelOut();
  std::array<Axis, 3> sizes;
  std::vector<RawNs> cells;
  std::vector<double> logNs; ///< by cell, not falling along any axis
  Fit plane;
};

} // namespace mcc::placement
