// safetensors: one file, or shards named by an index.
#pragma once

#include "compiler/Import/Checkpoint.h"

namespace mcc {

/// Checks the whole layout of a safetensors file held in `bytes` and returns its tensors, in the order of the
/// data, pointing into `bytes`; `file` is its name in messages.
llvm::Expected<std::vector<TensorInfo>> parseSafetensors(llvm::ArrayRef<uint8_t> bytes, llvm::StringRef file);

/// Opens one .safetensors file.
llvm::Expected<std::unique_ptr<Checkpoint>> openSafetensors(llvm::StringRef path);

/// Opens the shards that the `.safetensors.index.json` at `path` names, beside it. Every tensor must be in the
/// shard the index puts it in, and in no other.
llvm::Expected<std::unique_ptr<Checkpoint>> openSafetensorsIndex(llvm::StringRef path);

} // namespace mcc
