// Why each op is where it is.
#pragma once

#include "runtime-lib/placement/Solve.h"

namespace mcc::placement {

/// Why an op has its device.
enum class Reason : uint8_t {
  Rule,       ///< forced
  OnlyKernel, ///< the other device has no kernel for it
  Cheaper,    ///< costs less here
  Equal,      ///< costs the same on both
  State,      ///< follows the ops that share its state
  Upload,     ///< faster on the GPU, but not by as much as the upload of its weight costs
  Memory,     ///< would be on the GPU, but its weight does not fit beside what is there
  Copies,     ///< faster elsewhere, but not by as much as copies would cost
};

/// One op of the plan; times are those of the whole work.
struct OpReport {
  Device device = Device::Cpu;
  std::array<double, 2> costNs = {}; ///< by Device; NaN where it has no kernel
  double copyNs = 0;                 ///< copies of what it writes, in this plan
  double marginNs = 0; ///< how much dearer the plan would be with this op, and those that share its state, elsewhere;
                       ///< NaN where that is not permitted, negative only where it does not fit the memory
  Reason reason = Reason::Cheaper;
  std::string detail; ///< the rule, the state
};

/// Explains a plan of solve() for the same problem, op by op.
Result<std::vector<OpReport>> explain(const Problem &problem, const Plan &plan);

/// Returns the explanation as an aligned table with totals and the bound, ending in a newline.
Result<std::string> explainTable(const Problem &problem, const Plan &plan);

} // namespace mcc::placement
