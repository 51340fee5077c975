// Registration, text form and verifiers of the `exec` dialect.
#include "dialects/Exec/IR/ExecOps.h"

#include "kernels/KernelTable.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mcc;
using namespace mcc::exec;

#include "dialects/Exec/IR/ExecDialect.cpp.inc"
#include "dialects/Exec/IR/ExecEnums.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Exec/IR/ExecTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Exec/IR/ExecOps.cpp.inc"

void ExecDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Exec/IR/ExecOps.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Exec/IR/ExecTypes.cpp.inc"
      >();
}

//===-- launch -------------------------------------------------------------------------------------------------===//

int64_t LaunchOp::getInt(StringRef name) { return getInts()[findKernel(getKernel())->intIndex(name)]; }

// Parses `(name = value, ...)` with `parseValue` for each value; the names are the table's, in its order.
template <typename T, typename ParseValue>
static ParseResult parseNamed(OpAsmParser &parser, ArrayRef<std::string> names, SmallVectorImpl<T> &values, ParseValue parseValue) {
  if (parser.parseLParen())
    return failure();
  for (size_t i = 0; i < names.size(); ++i) {
    StringRef name;
    SMLoc location = parser.getCurrentLocation();
    if ((i && parser.parseComma()) || parser.parseKeyword(&name) || parser.parseEqual())
      return failure();
    if (name != names[i])
      return parser.emitError(location) << "argument '" << name << "' stands where the kernel table has '" << names[i] << "'";
    T value;
    if (parseValue(value))
      return failure();
    values.push_back(value);
  }
  return parser.parseRParen();
}

static ParseResult parseFormatName(OpAsmParser &parser, OperationState &result) {
  if (failed(parser.parseOptionalLess()))
    return success();
  StringRef format;
  if (parser.parseKeyword(&format) || parser.parseGreater())
    return failure();
  result.addAttribute("format", parser.getBuilder().getStringAttr(format));
  return success();
}

static ParseResult parseDevice(OpAsmParser &parser, OperationState &result) {
  StringRef text;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeyword("on") || parser.parseKeyword(&text))
    return failure();
  std::optional<ir::Device> device = ir::symbolizeDevice(text);
  if (!device)
    return parser.emitError(location) << "unknown device '" << text << "'";
  result.addAttribute("device", ir::DeviceAttr::get(parser.getContext(), *device));
  return success();
}

ParseResult LaunchOp::parse(OpAsmParser &parser, OperationState &result) {
  StringRef name;
  SMLoc location = parser.getCurrentLocation();
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  if (parser.parseKeyword(&name))
    return failure();
  const KernelInfo *kernel = findKernel(name);
  if (!kernel) // C1
    return parser.emitError(location) << "no kernel '" << name << "' in the kernel table";
  result.addAttribute("kernel", parser.getBuilder().getStringAttr(name));
  SmallVector<int64_t> ints;
  SmallVector<float> floats;
  if (parseFormatName(parser, result) || parser.parseOperandList(operands, OpAsmParser::Delimiter::Paren) || parser.parseKeyword("ints") ||
      parseNamed(parser, kernel->ints, ints, [&](int64_t &value) { return parser.parseInteger(value); }) || parser.parseKeyword("floats") ||
      parseNamed(parser, kernel->floats, floats, [&](float &value) {
        double wide = 0;
        ParseResult parsed = parser.parseFloat(wide);
        value = static_cast<float>(wide);
        return parsed;
      }) || parseDevice(parser, result) || parser.parseOptionalAttrDict(result.attributes))
    return failure();
  result.addAttribute("ints", parser.getBuilder().getDenseI64ArrayAttr(ints));
  result.addAttribute("floats", parser.getBuilder().getDenseF32ArrayAttr(floats));
  SmallVector<Type> types;
  if (parser.parseColonTypeList(types))
    return failure();
  return parser.resolveOperands(operands, types, location, result.operands);
}

void LaunchOp::print(OpAsmPrinter &printer) {
  const KernelInfo *kernel = findKernel(getKernel());
  printer << ' ' << getKernel();
  if (getFormat())
    printer << '<' << *getFormat() << '>';
  printer << '(' << getBuffers() << ") ints(";
  for (auto [i, value] : llvm::enumerate(getInts()))
    printer << (i ? ", " : "") << (kernel ? kernel->ints[i] : std::to_string(i)) << " = " << value;
  printer << ") floats(";
  for (auto [i, value] : llvm::enumerate(getFloats())) {
    printer << (i ? ", " : "") << (kernel ? kernel->floats[i] : std::to_string(i)) << " = ";
    printer.printFloat(APFloat(value));
  }
  printer << ") on " << ir::stringifyDevice(getDevice());
  printer.printOptionalAttrDict((*this)->getAttrs(), {"kernel", "format", "ints", "floats", "device"});
  printer << " : ";
  llvm::interleaveComma(getBuffers().getTypes(), printer);
}

LogicalResult LaunchOp::verify() {
  const KernelInfo *kernel = findKernel(getKernel());
  if (!kernel) // C1
    return emitOpError() << "names kernel '" << getKernel() << "'; the kernel table has none of that name";
  if (kernel->perFormat != getFormat().has_value() || (getFormat() && !parseFormat(*getFormat()))) // C2
    return emitOpError() << "kernel '" << getKernel() << "' " << (kernel->perFormat ? "needs a storage format" : "takes no format");
  if (getBuffers().size() != kernel->buffers.size() || getInts().size() != kernel->ints.size() || getFloats().size() != kernel->floats.size()) // C3
    return emitOpError() << "passes " << getBuffers().size() << " buffers, " << getInts().size() << " ints and " << getFloats().size()
                         << " floats; kernel '" << getKernel() << "' takes " << kernel->buffers.size() << ", " << kernel->ints.size() << " and "
                         << kernel->floats.size();
  for (auto [value, buffer] : llvm::zip(getBuffers(), kernel->buffers)) {
    Space space = cast<PointerType>(value.getType()).getSpace();
    if (space == Space::None && !buffer.optional) // C4
      return emitOpError() << "leaves out buffer '" << buffer.name << "'; kernel '" << getKernel() << "' needs it";
    if (space == Space::Weights && buffer.written) // C5
      return emitOpError() << "writes buffer '" << buffer.name << "', which lies among the weights";
  }
  return success();
}

LogicalResult RepeatOp::verify() {
  size_t wanted = static_cast<size_t>(getCount()) * getBody().front().getNumArguments();
  if (getAddresses().size() != wanted) // C1
    return emitOpError() << "has " << getAddresses().size() << " addresses; " << getCount() << " iterations need " << wanted;
  return success();
}
