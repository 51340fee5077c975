// `mcc run --backend=NAME` and `mcc backends`.
#pragma once

#include "compiler/Backend/Backend.h"

#include "llvm/Support/Error.h"

#include <string>

namespace mcc {

struct RunOptions {
  std::string backend = "native";
  std::string sequences; ///< a golden file
  BackendModel model;
};

/// Runs every sequence of the golden file and prints the judgement; `ok` tells whether all are as expected. Logits and
/// texts that the file records are not looked at: `out/model --check` does that.
llvm::Error runBackend(const RunOptions &options, bool &ok);

/// Prints every back end, and why it cannot be used on this machine where that is so.
void listBackends();

} // namespace mcc
