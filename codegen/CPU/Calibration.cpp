// The table of kernels for calibration. See Calibration.h.
//
//   define internal void @calibrate.linear_bf16(ptr %step, i64 %tokens, ptr %x, ptr %weight, ...) {
//     tokens == 1 ? @mcc_cpu_linear_bf16(%step, 1, %x, %weight, null, null, ...) : @mcc_cpu_linear_bf16(%step, %tokens, ...) }
//
// As in a model, the kernel is inlined twice, for one token and for many, and what calibration leaves out is constant; only
// sizes are not.
#include "codegen/CPU/Calibration.h"

#include "codegen/CPU/NativeObject.h"
#include "kernels/KernelTable.h"
#include "mcc/Calibration.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace mcc {
namespace {

// Arguments that calibration leaves out, by name: null, 0, or what is given here.
struct FixedArgument {
  StringLiteral name;
  int64_t value;
};
constexpr FixedArgument fixedArguments[] = {{"bias", 0},      {"residual", 0}, {"norm_weight", 0}, {"norm_bias", 0},     {"normed", 0}, {"activation", 0},
                                            {"gated", 0},     {"norm_kind", -1}, {"slopes", 0},    {"sinks", 0},         {"window", 0}, {"chunk", 0},
                                            {"alibi_rounded", 0}, {"eps", 0},  {"softcap", 0}};

class Wrappers {
public:
  explicit Wrappers(Module &module) : module(module), builder(module.getContext()) {}

  // Makes the function of a kernel of the table.
  Function *wrap(StringRef kernelName, std::optional<Format> format) {
    const KernelInfo &kernel = *findKernel(kernelName);
    std::string suffix = kernel.name + (format ? "_" + std::string(formatInfo(*format).name) : "");
    FunctionType *type = typeOf(kernel);
    callee = module.getOrInsertFunction("mcc_cpu_" + suffix, type);
    Function *function = Function::Create(type, GlobalValue::InternalLinkage, "calibrate." + suffix, module);
    auto block = [&](const char *name) { return BasicBlock::Create(module.getContext(), name, function); };
    BasicBlock *entry = block("entry"), *one = block("one"), *many = block("many");
    builder.SetInsertPoint(entry);
    builder.CreateCondBr(builder.CreateICmpEQ(function->getArg(1), builder.getInt64(1)), one, many);
    emitCall(one, kernel, function, builder.getInt64(1));
    emitCall(many, kernel, function, function->getArg(1));
    return function;
  }

private:
  FunctionType *typeOf(const KernelInfo &kernel) {
    SmallVector<Type *> types{builder.getPtrTy(), builder.getInt64Ty()};
    types.append(kernel.buffers.size(), builder.getPtrTy());
    types.append(kernel.ints.size(), builder.getInt64Ty());
    types.append(kernel.floats.size(), builder.getFloatTy());
    return FunctionType::get(builder.getVoidTy(), types, false);
  }

  void emitCall(BasicBlock *block, const KernelInfo &kernel, Function *function, Value *tokens) {
    builder.SetInsertPoint(block);
    SmallVector<std::string> names{"step", "tokens"};
    for (const KernelBuffer &buffer : kernel.buffers)
      names.push_back(buffer.name);
    names.append(kernel.ints.begin(), kernel.ints.end());
    names.append(kernel.floats.begin(), kernel.floats.end());
    SmallVector<Value *> arguments;
    for (Argument &argument : function->args())
      arguments.push_back(fixedOr(names[argument.getArgNo()], argument));
    arguments[1] = tokens;
    builder.CreateCall(callee, arguments);
    builder.CreateRetVoid();
  }

  Value *fixedOr(StringRef name, Argument &argument) {
    for (const FixedArgument &fixed : fixedArguments)
      if (fixed.name == name)
        return argument.getType()->isIntegerTy() ? builder.getInt64(fixed.value) : Constant::getNullValue(argument.getType());
    return &argument;
  }

  Module &module;
  IRBuilder<> builder;
  FunctionCallee callee;
};

GlobalVariable *constant(Module &module, Constant *value) {
  return new GlobalVariable(module, value->getType(), true, GlobalValue::PrivateLinkage, value);
}

} // namespace

GlobalVariable *defineCalibration(Module &module, ArrayRef<Format> formats, bool gpu) {
  LLVMContext &context = module.getContext();
  Type *i64 = Type::getInt64Ty(context);
  Wrappers wrappers(module);
  SmallVector<Constant *> linears;
  for (Format format : formats)
    linears.push_back(ConstantStruct::getAnon(context, {ConstantInt::get(i64, static_cast<uint64_t>(format)), wrappers.wrap("linear", format)}));
  Constant *calibrator = ConstantPointerNull::get(PointerType::get(context, 0));
  if (gpu)
    calibrator = module.getOrInsertGlobal("mccrt_gpu_calibrator", Type::getInt8Ty(context));
  Constant *machine = module.getOrInsertGlobal("mccrt_machine_calibrator", Type::getInt8Ty(context));
  Constant *fields[] = {ConstantInt::get(i64, formats.size()), constant(module, ConstantArray::get(ArrayType::get(linears.front()->getType(), linears.size()), linears)),
                        wrappers.wrap("add", std::nullopt), wrappers.wrap("attention", std::nullopt), calibrator, machine};
  Constant *value = ConstantStruct::getAnon(context, fields);
  assert(module.getDataLayout().getTypeAllocSize(value->getType()) == sizeof(MccCalibration) && "MccCalibration and this layout differ");
  return constant(module, value);
}

// Defines main(argc, argv), which hands on the table.
static void defineMain(Module &module, GlobalVariable *table) {
  IRBuilder<> builder(module.getContext());
  Type *i32 = builder.getInt32Ty(), *pointer = builder.getPtrTy();
  Function *main = Function::Create(FunctionType::get(i32, {i32, pointer}, false), GlobalValue::ExternalLinkage, "main", module);
  FunctionCallee calibrate = module.getOrInsertFunction("mccrt_calibrate", FunctionType::get(i32, {pointer, i32, pointer}, false));
  builder.SetInsertPoint(BasicBlock::Create(module.getContext(), "", main));
  builder.CreateRet(builder.CreateCall(calibrate, {table, main->getArg(0), main->getArg(1)}));
}

Expected<SmallVector<char>> emitCalibrationObject(ArrayRef<Format> formats, const CpuTarget &target, StringRef kernels, bool gpu) {
  LLVMContext context;
  Module module("calibration", context);
  return emitNativeObject(module, target, kernels, "main", [&](Module &prepared) { defineMain(prepared, defineCalibration(prepared, formats, gpu)); });
}

} // namespace mcc
