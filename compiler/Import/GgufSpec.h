// A GGUF file's metadata as a ModelSpec with GGUF's tensor names.
#pragma once

#include "compiler/Import/ModelSpec.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <vector>

namespace mcc {

class Checkpoint;

/// Reads the spec of a GGUF checkpoint (one that has metadata, `checkpoint.gguf()`). Which optional tensors there are
/// (biases, a head of its own, rope_freqs) is asked of the checkpoint. Unknown architectures, and keys that change the
/// result and are not understood, are errors that name the key. The result has no problem (see findProblem).
llvm::Expected<ModelSpec> readGgufSpec(const Checkpoint &checkpoint);

/// Returns every `general.architecture` that is understood, sorted.
std::vector<llvm::StringRef> knownGgufArchitectures();

} // namespace mcc
