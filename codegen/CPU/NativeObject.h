// From an LLVM module that calls kernels to a native object.
#pragma once

#include "codegen/CPU/EmitObject.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace llvm {
class Module;
}

namespace mcc {

/// Gives `module` the target's layout, lets `define` add to it, links in the kernels it calls from the bitcode at `kernels`,
/// specialises and optimises them, and returns an object that shows the symbol `kept` alone.
llvm::Expected<llvm::SmallVector<char>> emitNativeObject(llvm::Module &module, const CpuTarget &target, llvm::StringRef kernels, llvm::StringRef kept,
                                                         llvm::function_ref<void(llvm::Module &)> define);

} // namespace mcc
