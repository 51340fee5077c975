// Ops of the `mcc` dialect.
#pragma once

#include "dialects/Mcc/IR/MccDialect.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Mcc/IR/MccInterfaces.h.inc"
#define GET_OP_CLASSES
#include "dialects/Mcc/IR/MccOps.h.inc"
