// How many threads this process may sensibly run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mcc::runtime {

/// What the operating system lets this process use.
struct Processors {
  int64_t logical = 1;    ///< processors in the affinity mask, cut to the control group's quota
  int64_t physical = 1;   ///< distinct cores among them, cut likewise: the default number of threads
  std::vector<int> cores; ///< one processor number of every distinct core in the mask
};

/// Looks at the affinity mask, the core topology and the control groups of this process. Never fails: what cannot
/// be read counts as unlimited.
Processors usableProcessors();

/// Moves the calling thread to `processor` now, without binding it there. Does nothing where that is not allowed.
void moveToProcessor(int processor);

/// As usableProcessors for the given mask, reading `root`/sys and `root`/proc (for tests).
Processors usableProcessors(const std::vector<int> &mask, const std::string &root);

/// Returns the processors' worth of time that the control groups (v2 or v1) allow per unit of time, if limited.
std::optional<double> processorQuota(const std::string &root);

} // namespace mcc::runtime
