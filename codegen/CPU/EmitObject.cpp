// From the LLVM dialect to a native object: translation to LLVM IR, then NativeObject.h.
#include "codegen/CPU/EmitObject.h"

#include "codegen/CPU/Descriptor.h"
#include "codegen/CPU/NativeObject.h"
#include "compiler/Support/Error.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace mcc {

Expected<SmallVector<char>> emitObject(mlir::ModuleOp source, const ModelDescriptor &descriptor, const CpuTarget &target, StringRef kernels) {
  mlir::registerBuiltinDialectTranslation(*source.getContext());
  mlir::registerLLVMDialectTranslation(*source.getContext());
  LLVMContext context;
  std::unique_ptr<Module> module = mlir::translateModuleToLLVMIR(source, context, "model");
  if (!module)
    return diagnose("", "internal: the step has no translation to LLVM IR; please report this");
  return emitNativeObject(*module, target, kernels, "mcc_model", [&](Module &prepared) { defineModel(prepared, descriptor, target); });
}

} // namespace mcc
