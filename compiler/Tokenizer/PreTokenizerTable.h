// The pre-tokenizers that GGUF files name in tokenizer.ggml.pre.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <vector>

namespace mcc {

/// What a name stands for.
struct PreTokenizerEntry {
  llvm::ArrayRef<const char *> patterns; ///< applied in turn, each isolating its matches (Oniguruma's syntax)
  bool ignoreMerges = false;
  bool addBos = false; ///< where the file does not say
};

/// Returns the entry of `name`, or null.
const PreTokenizerEntry *findPreTokenizer(llvm::StringRef name);
/// Returns all names, for messages.
std::vector<llvm::StringRef> preTokenizerNames();

} // namespace mcc
