// Lines of a --prompts file.
#pragma once

#include "runtime-lib/src/Result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace mcc::runtime {

/// What one line asks for: a text or token ids, and how many new tokens.
struct PromptLine {
  std::variant<std::string, std::vector<int32_t>> prompt;
  std::optional<int64_t> newTokens;
};

/// Parses line `number` of `path`: a JSON string, or an object with "prompt" or "tokens", and optionally "n".
/// Messages begin with path:line:column.
Result<PromptLine> parsePromptLine(const std::string &path, int64_t number, const std::string &line,
                                   int64_t vocabulary);

} // namespace mcc::runtime
