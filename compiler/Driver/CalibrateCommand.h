// `mcc calibrate -o machine.json`: measures this machine for placement.
#pragma once

#include "llvm/Support/Error.h"

#include <string>

namespace mcc {

struct CalibrateOptions {
  std::string output; ///< empty: standard output
  int64_t threads = 0; ///< 0: the physical cores
  int64_t milliseconds = 2000;
};

/// Measures and writes the profile.
llvm::Error calibrate(const CalibrateOptions &options);

} // namespace mcc
