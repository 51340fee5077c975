// A published quantised checkpoint, seen as the plain weights that it stands for.
#pragma once

#include "compiler/Import/Checkpoint.h"
#include "compiler/Import/ModelSpec.h"

namespace mcc {

/// Returns a checkpoint in which the weights of `required` that `packed` stores as `quantization` says (qweight,
/// scales, ...) are single tensors, converted row by row as they are read: f32, bf16 for MXFP4, f8 for FP8 (f32 where
/// 32 columns have more than one scale), all exact. `storedAs` names the method. Tensors stored plainly stay as they
/// are; companions of unpacked weights disappear. An error names the tensor that is missing, has another type or shape,
/// or holds an index out of range.
llvm::Expected<std::unique_ptr<Checkpoint>> unpackQuantized(std::unique_ptr<Checkpoint> packed,
                                                            const QuantizationSpec &quantization,
                                                            llvm::ArrayRef<RequiredTensor> required);

} // namespace mcc
