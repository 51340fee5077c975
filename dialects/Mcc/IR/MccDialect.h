// The `mcc` dialect: registration, enumerations, types and the predicates its ops are built from.
#pragma once

#include "kernels/Format.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"

#include "dialects/Mcc/IR/MccDialect.h.inc"
#include "dialects/Mcc/IR/MccEnums.h.inc"

namespace mcc {
/// Lets TableGen hash the storage format of a weight type.
inline llvm::hash_code hash_value(Format format) { return llvm::hash_value(static_cast<unsigned>(format)); }
} // namespace mcc

#define GET_ATTRDEF_CLASSES
#include "dialects/Mcc/IR/MccAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Mcc/IR/MccTypes.h.inc"

namespace mcc::ir {

/// Returns whether `type` is a 2-D f32 tensor with a static number of features.
bool isActivations(mlir::Type type);
/// Returns whether `type` is a 1-D i32 tensor.
bool isTokens(mlir::Type type);
/// Returns the features of an activations type.
inline int64_t features(mlir::Type type) { return mlir::cast<mlir::RankedTensorType>(type).getDimSize(1); }
/// The attribute of a step that says how many positions it is made for.
inline constexpr llvm::StringLiteral contextAttrName = "mcc.context";
/// Returns tensor<?xNxf32>.
mlir::RankedTensorType activationsType(mlir::MLIRContext *context, int64_t features);

} // namespace mcc::ir
