// Registration of the `mcc` dialect; its types' text form and verifiers.
#include "dialects/Mcc/IR/MccDialect.h"

#include "dialects/Mcc/IR/MccOps.h"
#include "kernels/Activation.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mcc;
using namespace mcc::ir;

#include "dialects/Mcc/IR/MccDialect.cpp.inc"
#include "dialects/Mcc/IR/MccEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Mcc/IR/MccAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Mcc/IR/MccTypes.cpp.inc"

// The dialect's enumeration and the kernels' one are the same numbers.
static_assert(static_cast<int64_t>(ActivationKind::Silu) == static_cast<int64_t>(Activation::Silu));
static_assert(static_cast<int64_t>(ActivationKind::GeluErf) == static_cast<int64_t>(Activation::GeluErf));
static_assert(static_cast<int64_t>(ActivationKind::GeluTanh) == static_cast<int64_t>(Activation::GeluTanh));
static_assert(static_cast<int64_t>(ActivationKind::Relu) == static_cast<int64_t>(Activation::Relu));
static_assert(static_cast<int64_t>(ActivationKind::Relu2) == static_cast<int64_t>(Activation::Relu2));
static_assert(static_cast<int64_t>(ActivationKind::GeluQuick) == static_cast<int64_t>(Activation::GeluQuick));
static_assert(static_cast<int64_t>(ActivationKind::Sigmoid) == static_cast<int64_t>(Activation::Sigmoid));

void MccDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Mcc/IR/MccOps.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Mcc/IR/MccAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Mcc/IR/MccTypes.cpp.inc"
      >();
}

LogicalResult MccDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() != contextAttrName)
    return op->emitOpError() << "has attribute '" << attribute.getName().getValue() << "'; the only one of the dialect is '" << contextAttrName << "'";
  auto positions = dyn_cast<IntegerAttr>(attribute.getValue());
  if (!positions || !positions.getType().isInteger(64) || positions.getInt() < 1)
    return op->emitOpError() << "has context " << attribute.getValue() << "; a positive i64 is wanted";
  return success();
}

bool mcc::ir::isActivations(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() == 2 && tensor.getElementType().isF32() && !tensor.isDynamicDim(1);
}

bool mcc::ir::isTokens(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() == 1 && tensor.getElementType().isInteger(32);
}

RankedTensorType mcc::ir::activationsType(MLIRContext *context, int64_t features) {
  return RankedTensorType::get({ShapedType::kDynamic, features}, Float32Type::get(context));
}

// `192x64xbf16`: dimensions, then a format name.
Type WeightType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  StringRef name;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) || parser.parseKeyword(&name) || parser.parseGreater())
    return {};
  std::optional<Format> format = parseFormat(name);
  if (!format) {
    parser.emitError(location) << "unknown storage format '" << name << "'";
    return {};
  }
  return getChecked([&] { return parser.emitError(location); }, parser.getContext(), shape, *format);
}

void WeightType::print(AsmPrinter &printer) const {
  printer << '<';
  for (int64_t size : getShape())
    printer << size << 'x';
  printer << formatInfo(getFormat()).name << '>';
}

LogicalResult WeightType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape, Format format) {
  if (shape.empty() || shape.size() > 2)
    return emitError() << "weight has " << shape.size() << " dimensions; a vector or a matrix is wanted";
  for (int64_t size : shape)
    if (size <= 0)
      return emitError() << "weight has a dimension of size " << size;
  const FormatInfo &info = formatInfo(format);
  if (shape.back() % info.blockElems)
    return emitError() << "weight has " << shape.back() << " columns; format '" << info.name << "' comes in blocks of " << info.blockElems;
  return success();
}

Type CacheType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false, /*withTrailingX=*/false) || parser.parseGreater())
    return {};
  if (shape.size() != 3) {
    parser.emitError(location) << "cache has " << shape.size() << " dimensions; [kv heads, context, head dim] is wanted";
    return {};
  }
  return get(parser.getContext(), shape[0], shape[1], shape[2]);
}

void CacheType::print(AsmPrinter &printer) const {
  printer << '<' << getHeads() << 'x' << getPositions() << 'x' << getHeadDim() << '>';
}

// `8x16x64`: dimensions only.
Type StateType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false, /*withTrailingX=*/false) || parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(location); }, parser.getContext(), shape);
}

void StateType::print(AsmPrinter &printer) const {
  printer << '<';
  llvm::interleave(getShape(), printer, "x");
  printer << '>';
}

LogicalResult StateType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape) {
  for (int64_t size : shape)
    if (size <= 0)
      return emitError() << "state has a dimension of size " << size;
  return success();
}
