// What the commands that use back ends read: a back end's name, golden files.
#pragma once

#include "compiler/Backend/Backend.h"
#include "runtime-lib/src/Golden.h"

namespace mcc {

/// Returns the back end called `name`, usable on this machine.
llvm::Expected<const Backend *> usableBackend(llvm::StringRef name);

/// What a model says about the ids and positions that a golden file may use.
struct GoldenLimits {
  int64_t vocabulary = 0, context = 0;
};
llvm::Expected<GoldenLimits> goldenLimits(const BackendModel &model);

/// Reads a golden file.
llvm::Expected<runtime::Golden> openGolden(const std::string &path, const GoldenLimits &limits);

} // namespace mcc
