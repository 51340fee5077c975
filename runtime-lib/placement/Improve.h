// The local search of the placement solver: fills a memory cap that the price of a byte alone cannot fill.
#pragma once

#include "runtime-lib/placement/PlanState.h"

namespace mcc::placement {

/// Returns the best placement that fits `cap` found between `below`, which fits, and `above`, which does not, and
/// by moves from there; at least as good as `below`. Makes about `flips` flips; stops where the cost is `goalNs`.
std::vector<Device> improve(const Problem &problem, const Units &units, uint64_t cap, std::vector<Device> below,
                            const std::vector<Device> &above, int64_t flips, double goalNs);

} // namespace mcc::placement
