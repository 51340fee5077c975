// Turns a ModelSpec into the `mcc` dialect: the unfused step.
#pragma once

#include "compiler/Import/Checkpoint.h"
#include "compiler/Import/ModelSpec.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>

namespace mcc {

/// Returns the field of `spec` (as the spec JSON names it) that no op or kernel implements yet, or nothing.
std::optional<std::string> unsupportedField(const ModelSpec &spec);

/// Builds `@step` for `context` cache positions. Storage formats of the weights are those of `checkpoint`, which has passed
/// checkTensors. `spec` has no problem and no unsupported field.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> buildStep(mlir::MLIRContext &mlirContext, const ModelSpec &spec, const Checkpoint &checkpoint,
                                                            int64_t context);

} // namespace mcc
