// How calibration spends its time: which sizes are measured, and how often.
#pragma once

#include "runtime-lib/placement/Curve.h"

#include <functional>

namespace mcc::placement {

/// One size of one kernel, and its samples.
struct SamplePoint {
  double size = 0;      ///< for a curve
  double work = 0;      ///< grows as the time is expected to
  bool possible = true; ///< false: does not fit this machine's memory
  RawNs rawNs = {};
};

/// Points of one curve or table, in order of size.
using SampleFamily = std::vector<SamplePoint>;

/// How much to measure.
struct SampleBudget {
  double budgetNs = 50e6;
  size_t mostRepeats = 15;  ///< samples of one point
  double shortestNs = 20e3; ///< what a sample takes however small its point
  double overheadNs = 0;    ///< on top of the point's own time
};

/// Takes samples. Every family's smallest point is measured whatever the budget; beyond, a point is measured only if it
/// is expected to fit. Points are taken in turns, so that a disturbance hits one sample of each rather than all of one.
/// `sample(family, point, expectedNs)` measures once and returns ns; a negative number ends it all.
void takeSamples(std::vector<SampleFamily> &families, const SampleBudget &budget,
                 const std::function<double(size_t, size_t, double)> &sample);

/// Makes a curve of a family's samples.
runtime::Result<Curve> curveOf(const SampleFamily &family);
/// Makes a table of a family's samples, which are row-major in `axes`.
runtime::Result<GemmTable> tableOf(std::array<GemmTable::Axis, 3> axes, const SampleFamily &family);

} // namespace mcc::placement
