// `mcc inspect FILE`: what a spec, a config, a checkpoint or a folder says.
#pragma once

#include "llvm/Support/Error.h"

#include <string>

namespace mcc {

struct InspectOptions {
  std::string input;
  bool specOnly = false;    ///< print the spec alone, also for checkpoints
  bool tensorsOnly = false; ///< print the table of tensors alone
};

/// Prints to stdout: for a spec or config its normalised spec (sizes go to stderr); for a checkpoint its tensors, then the spec they imply.
llvm::Error inspect(const InspectOptions &options);

} // namespace mcc
