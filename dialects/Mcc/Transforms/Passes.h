// Passes over the `mcc` dialect; see Passes.td for what each does.
#pragma once

#include "dialects/Mcc/IR/MccDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace mcc::ir {
#define GEN_PASS_DECL
#include "dialects/Mcc/Transforms/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "dialects/Mcc/Transforms/Passes.h.inc"
} // namespace mcc::ir
