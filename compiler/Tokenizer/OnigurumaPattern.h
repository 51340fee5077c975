// The regular expressions of tokenizer.json, rewritten for PCRE2.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <string>

namespace mcc {

/// What a rewriting gave: a pattern, or a problem at a byte of the source.
struct OnigurumaResult {
  std::string pattern;
  std::string problem; ///< empty: none
  size_t offset = 0;
};

/// Rewrites a pattern in Oniguruma's Ruby syntax (UTF-8), which tokenizer.json files use, as a pattern of PCRE2 that
/// matches the same. Refuses what it does not know: back references, calls, conditions, absent operators, callouts.
OnigurumaResult translateOniguruma(llvm::StringRef source);

} // namespace mcc
