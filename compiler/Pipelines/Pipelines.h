// The compiler's phases: the only place that knows all passes and their order.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace mcc {

/// A point where compilation can stop (`--emit=`) and, from Mcc to Llvm, where mcc-opt can take up its text.
enum class Phase { Spec, Mcc, Fused, Placed, Exec, Llvm, Obj, Exe };

struct PhaseInfo {
  Phase phase;
  llvm::StringLiteral name;
  llvm::StringLiteral description;
};

/// Returns the phases in order.
llvm::ArrayRef<PhaseInfo> phases();
std::optional<Phase> parsePhase(llvm::StringRef name);

/// What the passes need to know.
struct PipelineOptions {
  int64_t chunk = 128;        ///< most tokens in one step
  std::string device = "cpu"; ///< where everything is placed
  bool launchEntries = false; ///< an entry for each launch, for executables that place launches on devices
};

/// Runs the passes that lead from the end of phase `from` to the end of `to` (both from Mcc to Llvm), each phase closed by
/// its verifier. Problems are diagnosed through the module's context.
mlir::LogicalResult runPhases(mlir::ModuleOp module, Phase from, Phase to, const PipelineOptions &options);

/// Registers mcc's dialects and those it lowers to; for mcc and mcc-opt.
void registerDialects(mlir::DialectRegistry &registry);
/// Registers all passes and, per phase, a pipeline `mcc-phase-NAME`; for mcc-opt.
void registerPasses();

} // namespace mcc
