// Places the launches of a planned program by cost, by rules, or both.
#pragma once

#include "compiler/Artifact/Manifest.h"
#include "dialects/Exec/IR/ExecOps.h"

#include "llvm/Support/Error.h"

#include <optional>
#include <string>

namespace mcc {

/// How to place (--placement and the options beside it).
struct PlacementOptions {
  std::string how = "cpu";           ///< "cpu", "gpu", "auto", or a file of rules
  std::string machine;               ///< a calibration's file; empty: none, "auto" measures this machine
  int64_t expectPrompt = 128;        ///< tokens of the prompt that the user is expected to give
  int64_t expectNew = 128;           ///< tokens that the model is expected to generate
  std::optional<uint64_t> gpuMemory; ///< most bytes of the GPU's memory
  bool explain = false;              ///< print why every launch is where it is

  /// Returns whether costs or rules decide after planning; else all is on the device that `how` names.
  bool decidesByLaunch() const { return (how != "cpu" && how != "gpu") || !machine.empty() || explain || gpuMemory; }
};

/// What was decided beside the launches' devices.
struct PlacementResult {
  std::optional<PredictedCost> predicted; ///< where a calibration was given
  std::string explanation;                ///< a table for the user, where asked for
};

/// Sets the device of every launch of a planned program whose layers are not rolled yet. Notes go to stderr. Fails
/// where a file that the user names does, where a launch is left to its cost without a calibration, and where rules
/// cannot be followed.
llvm::Expected<PlacementResult> placeLaunches(exec::ProgramOp program, const PlacementOptions &options);

} // namespace mcc
