// From the text of a prompt to the ids that the model gets.
#pragma once

#include "runtime-lib/src/Result.h"
#include "runtime-lib/tokenizer/Tokenizer.h"

#include <string_view>
#include <vector>

namespace mcc::runtime {

/// Returns the ids of `text`; `addSpecial`: with the tokens that the tokenizer puts around a text.
Result<std::vector<int32_t>> encodePrompt(const Tokenizer &tokenizer, std::string_view text, bool addSpecial);

} // namespace mcc::runtime
