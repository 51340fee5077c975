// Names that a misspelt one may have meant.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace mcc {

/// Returns the candidate nearest to `name` by edit distance (insert, delete, substitute; letter case free),
/// or an empty reference where none is within a third of the name's length (at least one edit).
llvm::StringRef nearestName(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> candidates);

/// Returns "; did you mean 'x'?" with the nearest candidate, or "".
std::string suggestName(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> candidates);

/// Returns "'a', 'b' and 'c'" in the order given.
std::string quotedList(llvm::ArrayRef<llvm::StringRef> names);

} // namespace mcc
