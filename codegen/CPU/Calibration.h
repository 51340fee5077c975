// The kernels that calibration measures, compiled as a model's are (runtime-lib/include/mcc/Calibration.h).
#pragma once

#include "codegen/CPU/EmitObject.h"

namespace llvm {
class GlobalVariable;
class Module;
} // namespace llvm

namespace mcc {

/// Defines an MccCalibration in `module`: `linear` in every format of `formats`, `add`, `attention`; with `gpu` a reference to
/// libmccrt-cuda.a's calibrator. Declares the kernels' entries, which the caller links in. Returns the table.
llvm::GlobalVariable *defineCalibration(llvm::Module &module, llvm::ArrayRef<Format> formats, bool gpu);

/// Emits an object that defines `main`: a program that measures its machine and prints the profile, to be linked with
/// libmccrt.a and, with `gpu`, libmccrt-cuda.a. `kernels` as for emitObject.
llvm::Expected<llvm::SmallVector<char>> emitCalibrationObject(llvm::ArrayRef<Format> formats, const CpuTarget &target, llvm::StringRef kernels, bool gpu);

} // namespace mcc
