// The `exec` dialect: registration, types and ops.
#pragma once

#include "dialects/Mcc/IR/MccDialect.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Exec/IR/ExecDialect.h.inc"
#include "dialects/Exec/IR/ExecEnums.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Exec/IR/ExecTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/Exec/IR/ExecOps.h.inc"
