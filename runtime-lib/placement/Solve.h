// Finds the best placement: exactly without a memory cap, with a proven bound under one.
#pragma once

#include "runtime-lib/placement/Graph.h"

namespace mcc::placement {

/// A placement and how good it is.
struct Plan {
  std::vector<Device> devices; ///< by op
  Evaluation cost;
  double boundNs = 0;        ///< no placement that fits costs less
  double priceNsPerByte = 0; ///< what a byte more of GPU memory would save, at the bound; 0 where memory is not short
  /// Returns how much better than this the best placement may be.
  double gapNs() const { return cost.totalNs() - boundNs; }
  /// Returns whether the bound proves that none is better (to nine digits).
  bool optimal() const { return gapNs() <= 1e-9 * cost.totalNs(); }
};

/// How hard to look.
struct SolveOptions {
  int64_t searchFlips = 100000; ///< most work of the local search under a memory cap, 0.1 to 0.3 us each
  double closeEnough = 1e-4;    ///< the search ends where the plan is proven this close to the best
};

/// Solves a problem. The result depends on nothing else: no clock, no random numbers; ties go to the CPU.
/// Fails where validate() does, where rules contradict, and where what must be on the GPU does not fit there.
Result<Plan> solve(const Problem &problem, const SolveOptions &options = {});

} // namespace mcc::placement
