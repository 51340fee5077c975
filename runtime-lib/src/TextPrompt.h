// From the text of a prompt to the ids that the model gets.
#pragma once

#include "mcc/Model.h"
#include "runtime-lib/src/Result.h"
#include "runtime-lib/tokenizer/Tokenizer.h"

#include <string_view>
#include <vector>

namespace mcc::runtime {

/// Returns the ids of `text`. `addSpecial`: with the tokens that the tokenizer puts around a text, and the BOS token
/// first where the model wants one (MCC_MODEL_ADD_BOS) and the tokenizer has not put it there.
Result<std::vector<int32_t>> encodePrompt(const Tokenizer &tokenizer, const MccModel &model, std::string_view text,
                                          bool addSpecial);

} // namespace mcc::runtime
