// Predicted against measured (--profile).
#pragma once

#include "runtime-lib/placement/Graph.h"

namespace mcc::placement {

/// What a launch took, summed over its runs.
struct MeasuredOp {
  double prefillNs = 0; ///< in the whole prefill
  double decodeNs = 0;  ///< in all decode steps
};

/// What was measured: by op of a problem, where each ran, and the number of decode steps.
struct Measured {
  std::vector<Device> devices;
  std::vector<MeasuredOp> ops;
  double decodeSteps = 0;
};

/// Returns an aligned table, ending in a newline: for each op its device, the predicted and the measured time of the
/// prefill in us and of one decode step, and measured / predicted; then the same for the totals. A problem whose costs
/// are all 0 predicts nothing ("-"). Fails where the numbers of ops differ.
Result<std::string> profileTable(const Problem &problem, const Measured &measured);

} // namespace mcc::placement
