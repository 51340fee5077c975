// From the text of a prompt to ids. What the tokenizer puts around a text is in its image.
#include "runtime-lib/src/TextPrompt.h"

#include "runtime-lib/src/Text.h"

namespace mcc::runtime {

Result<std::vector<int32_t>> encodePrompt(const Tokenizer &tokenizer, std::string_view text, bool addSpecial) {
  std::string error;
  std::vector<int32_t> ids = tokenizer.encode(text, addSpecial, &error);
  if (!error.empty())
    return Failure{concat("the text cannot be encoded: ", error)};
  return ids;
}

} // namespace mcc::runtime
