// Lowers the placed `mcc` step to an `exec` program.
#pragma once

#include "dialects/Exec/IR/ExecOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace mcc {
#define GEN_PASS_DECL
#include "dialects/Conversion/MccToExec/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "dialects/Conversion/MccToExec/Passes.h.inc"
} // namespace mcc
