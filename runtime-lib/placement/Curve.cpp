// Fits by normal equations over every subset of the features, of which the best with coefficients of at least 0 wins:
// with three features that is seven small systems, exact and without iteration. Curves are levelled by pooling adjacent
// violators (isotonic regression), tables by the running maximum along each axis.
#include "runtime-lib/placement/Curve.h"

#include "runtime-lib/src/Text.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace mcc::placement {

using runtime::concat;
using runtime::Failure;
using runtime::Result;

double median(std::vector<double> values) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

using Row = std::array<double, 3>;

/// Solves the normal equations of the features in `subset` (bits); nullopt where they are singular.
static std::optional<Row> solveSubset(std::span<const Row> features, std::span<const double> ns, unsigned subset) {
  std::array<std::array<double, 4>, 3> system = {};
  for (size_t i = 0; i < ns.size(); ++i)
    for (size_t a = 0; a < 3; ++a) {
      for (size_t b = 0; b < 3; ++b)
        system[a][b] += features[i][a] / ns[i] * (features[i][b] / ns[i]);
      system[a][3] += features[i][a] / ns[i];
    }
  for (size_t a = 0; a < 3; ++a)
    if (!(subset >> a & 1)) {
      for (size_t b = 0; b < 3; ++b)
        system[a][b] = system[b][a] = 0;
      system[a][a] = 1;
      system[a][3] = 0;
    }
  // Features differ by many orders of magnitude: scale the diagonal to 1 first.
  Row scales;
  for (size_t a = 0; a < 3; ++a) {
    if (system[a][a] <= 0)
      return std::nullopt;
    scales[a] = 1 / std::sqrt(system[a][a]);
  }
  for (size_t a = 0; a < 3; ++a) {
    for (size_t b = 0; b < 3; ++b)
      system[a][b] *= scales[a] * scales[b];
    system[a][3] *= scales[a];
  }
  for (size_t a = 0; a < 3; ++a) { // positive definite: no pivoting
    if (system[a][a] < 1e-12)
      return std::nullopt;
    for (size_t row = 0; row < 3; ++row)
      if (row != a) {
        const double factor = system[row][a] / system[a][a];
        for (size_t b = a; b < 4; ++b)
          system[row][b] -= factor * system[a][b];
      }
  }
  Row result;
  for (size_t a = 0; a < 3; ++a)
    result[a] = system[a][3] / system[a][a] * scales[a];
  return result;
}

static double residualOf(std::span<const Row> features, std::span<const double> ns, const Row &coefficients) {
  double sum = 0;
  for (size_t i = 0; i < ns.size(); ++i) {
    double fitted = 0;
    for (size_t a = 0; a < 3; ++a)
      fitted += coefficients[a] * features[i][a];
    sum += (fitted / ns[i] - 1) * (fitted / ns[i] - 1);
  }
  return std::sqrt(sum / static_cast<double>(ns.size()));
}

Fit fitNonNegative(std::span<const Row> features, std::span<const double> ns) {
  Fit best;
  best.residual = ns.empty() ? 0 : 1; // that of all zeros
  for (unsigned subset = 1; subset < 8; ++subset) {
    const std::optional<Row> found = solveSubset(features, ns, subset);
    if (!found || std::any_of(found->begin(), found->end(), [](double c) { return c < 0; }))
      continue;
    const double residual = residualOf(features, ns, *found);
    if (residual < best.residual * (1 - 1e-9)) // fewer features win ties
      best = {*found, residual};
  }
  return best;
}

/// Checks that the sizes of an axis are positive and rise.
static runtime::Status checkAxis(std::span<const double> axis) {
  for (size_t i = 0; i < axis.size(); ++i)
    if (!std::isfinite(axis[i]) || axis[i] <= 0 || (i > 0 && axis[i] <= axis[i - 1]))
      return Failure{concat("size ", i, " is ", axis[i], "; sizes are positive and rise")};
  return {};
}

static runtime::Status checkTimes(const RawNs &rawNs) {
  for (const double ns : rawNs)
    if (!std::isfinite(ns) || ns <= 0)
      return Failure{concat("a sample of ", ns, " ns; times are positive")};
  return {};
}

Result<Curve> Curve::make(std::vector<Sample> samples) {
  if (samples.empty())
    return Failure{"a curve without samples"};
  Curve curve;
  std::vector<double> sizes;
  std::vector<Row> features;
  for (const Sample &sample : samples) {
    if (runtime::Status status = checkTimes(sample.rawNs); !status.ok())
      return Failure{status.message()};
    if (sample.rawNs.empty())
      return Failure{concat("size ", sample.size, " without samples")};
    sizes.push_back(sample.size);
    // A single sample is taken for proportional.
    features.push_back({samples.size() > 1 ? 1.0 : 0.0, sample.size, 0});
    curve.ns.push_back(median(sample.rawNs));
  }
  if (runtime::Status status = checkAxis(sizes); !status.ok())
    return Failure{status.message()};
  curve.line = fitNonNegative(features, curve.ns);
  // Pool adjacent violators: groups of points whose means rise.
  struct Group {
    double sum;
    size_t count;
    double mean() const { return sum / static_cast<double>(count); }
  };
  std::vector<Group> groups;
  for (const double value : curve.ns) {
    groups.push_back({value, 1});
    while (groups.size() > 1 && groups[groups.size() - 2].mean() > groups.back().mean()) {
      const Group last = groups.back();
      groups.pop_back();
      groups.back().sum += last.sum;
      groups.back().count += last.count;
    }
  }
  size_t point = 0;
  for (const Group &group : groups)
    for (size_t i = 0; i < group.count; ++i)
      curve.ns[point++] = group.mean();
  curve.points = std::move(samples);
  return curve;
}

double Curve::at(double size) const {
  if (points.empty() || !(size > 0))
    return 0;
  if (size <= points.front().size)
    return ns.front() * fitted(size) / fitted(points.front().size);
  if (size >= points.back().size)
    return ns.back() * fitted(size) / fitted(points.back().size);
  const auto above = std::upper_bound(points.begin(), points.end(), size,
                                      [](double value, const Sample &sample) { return value < sample.size; });
  const size_t high = static_cast<size_t>(above - points.begin()), low = high - 1;
  if (size == points[low].size)
    return ns[low];
  const double part = std::log(size / points[low].size) / std::log(points[high].size / points[low].size);
  return ns[low] * std::exp(part * std::log(ns[high] / ns[low]));
}

Result<GemmTable> GemmTable::make(std::array<Axis, 3> axes, std::vector<RawNs> rawNs) {
  for (const Axis &axis : axes) {
    if (axis.empty())
      return Failure{"an axis without sizes"};
    if (runtime::Status status = checkAxis(axis); !status.ok())
      return Failure{status.message()};
  }
  const size_t count = axes[0].size() * axes[1].size() * axes[2].size();
  if (rawNs.size() != count)
    return Failure{concat(rawNs.size(), " cells; the axes make ", count)};
  GemmTable table;
  table.sizes = std::move(axes);
  table.cells = std::move(rawNs);
  std::vector<Row> all, measured;
  std::vector<double> ns;
  for (const double m : table.sizes[0])
    for (const double n : table.sizes[1])
      for (const double k : table.sizes[2]) {
        const RawNs &raw = table.cells[all.size()];
        all.push_back({1, m * n * k, n * k});
        if (runtime::Status status = checkTimes(raw); !status.ok())
          return Failure{status.message()};
        if (raw.empty())
          continue;
        measured.push_back(all.back());
        ns.push_back(median(raw));
      }
  if (ns.empty())
    return Failure{"a table without samples"};
  if (ns.size() == 1) // taken for proportional to the multiply-adds
    measured[0][0] = measured[0][2] = 0;
  table.plane = fitNonNegative(measured, ns);
  for (size_t i = 0; i < count; ++i) {
    const Row &c = table.plane.coefficients;
    table.logNs.push_back(
        std::log(table.cells[i].empty() ? c[0] + c[1] * all[i][1] + c[2] * all[i][2] : median(table.cells[i])));
  }
  table.levelOut();
  return table;
}

void GemmTable::levelOut() {
  for (size_t m = 0; m < sizes[0].size(); ++m)
    for (size_t n = 0; n < sizes[1].size(); ++n)
      for (size_t k = 0; k < sizes[2].size(); ++k) {
        double &value = logNs[cell(m, n, k)];
        if (m > 0)
          value = std::max(value, logNs[cell(m - 1, n, k)]);
        if (n > 0)
          value = std::max(value, logNs[cell(m, n - 1, k)]);
        if (k > 0)
          value = std::max(value, logNs[cell(m, n, k - 1)]);
      }
}

double GemmTable::at(double m, double n, double k) const {
  std::array<size_t, 3> low = {};
  Row part = {}, size = {m, n, k};
  double beyond = 1; // work outside the grid is in proportion
  for (size_t a = 0; a < 3; ++a) {
    const Axis &axis = sizes[a];
    const double inside = std::clamp(size[a], axis.front(), axis.back());
    beyond *= size[a] / inside;
    if (axis.size() == 1)
      continue;
    const auto above = std::upper_bound(axis.begin(), axis.end() - 1, inside);
    low[a] = static_cast<size_t>(above - axis.begin()) - 1;
    part[a] = inside == axis[low[a]] ? 0 : std::log(inside / axis[low[a]]) / std::log(axis[low[a] + 1] / axis[low[a]]);
  }
  double result = 0;
  for (unsigned corner = 0; corner < 8; ++corner) {
    double weight = 1;
    std::array<size_t, 3> at = low;
    for (size_t a = 0; a < 3; ++a) {
      weight *= corner >> a & 1 ? part[a] : 1 - part[a];
      at[a] += corner >> a & 1;
    }
    if (weight > 0)
      result += weight * logNs[cell(at[0], at[1], at[2])];
  }
  return std::exp(result) * beyond;
}

} // namespace mcc::placement
