// `mcc calibrate -o machine.json`: measures this machine for placement.
#pragma once

#include "kernels/Format.h"
#include "runtime-lib/placement/Profile.h"

#include "llvm/ADT/ArrayRef.h"
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

/// Measures this machine in a second or two, linears in `formats`, and returns the profile.
llvm::Expected<placement::Profile> measureThisMachine(llvm::ArrayRef<Format> formats);

} // namespace mcc
