// `mcc golden record`: writes a golden file.
#pragma once

#include "compiler/Backend/Backend.h"

#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace mcc {

struct GoldenOptions {
  std::string backend = "native";
  std::vector<std::string> prompts; ///< ids separated by commas, one prompt each
  int64_t newTokens = 32;           ///< after each of `prompts`
  std::string sequences;            ///< or a golden file, whose prompts and lengths are taken
  std::string output;               ///< the file to write
  BackendModel model;               ///< without its output, which goes into a temporary folder
};

/// Runs the prompts on the back end and writes them with the tokens and margins it gave.
llvm::Error recordGolden(const GoldenOptions &options);

} // namespace mcc
