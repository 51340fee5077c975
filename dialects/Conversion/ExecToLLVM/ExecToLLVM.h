// Lowers a planned `exec` program to the LLVM dialect.
#pragma once

#include "dialects/Exec/IR/ExecOps.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/Pass.h"

namespace mcc {

/// The symbol of the generated step: void mcc_step(const MccStep *).
inline constexpr llvm::StringLiteral stepSymbol = "mcc_step";

#define GEN_PASS_DECL
#include "dialects/Conversion/ExecToLLVM/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "dialects/Conversion/ExecToLLVM/Passes.h.inc"
} // namespace mcc
