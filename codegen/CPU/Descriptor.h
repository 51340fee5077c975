// The `mcc_model` constant of a generated object.
#pragma once

#include "codegen/CPU/EmitObject.h"

namespace llvm {
class Module;
}

namespace mcc {

/// Defines `mcc_model` (runtime-lib/include/mcc/Model.h) in `module`, which defines `mcc_step`.
void defineModel(llvm::Module &module, const ModelDescriptor &descriptor, const CpuTarget &target);

} // namespace mcc
