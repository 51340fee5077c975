// `mcc [SPEC] CHECKPOINT -o OUT`: the whole pipeline.
#pragma once

#include "compiler/Driver/PlaceLaunches.h"
#include "compiler/Pipelines/Pipelines.h"

#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace mcc {

struct CompileOptions {
  std::vector<std::string> inputs; ///< one or two, see openSource
  std::string output;              ///< folder; with `emit` a file or "-"
  Phase emit = Phase::Exe;
  int64_t context = 0;             ///< 0: the model's own, capped by memory
  int64_t chunk = 0; ///< 0: 128, or 2048 where the plan uses a GPU
  std::string targetCpu = "native";
  std::string tokenizer;
  PlacementOptions placement;
};

/// Compiles as `options` say. Notes go to stderr; errors are returned.
llvm::Error compile(const CompileOptions &options);

} // namespace mcc
