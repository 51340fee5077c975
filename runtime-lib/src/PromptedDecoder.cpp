// The text that generated ids add to a prompt. See PromptedDecoder.h.
#include "runtime-lib/src/PromptedDecoder.h"

#include <algorithm>
#include <vector>

namespace mcc::runtime {

PromptedDecoder::PromptedDecoder(const Tokenizer &tokenizer, std::span<const int32_t> prompt) : decoder(tokenizer) {
  std::string given;
  for (int32_t token : prompt)
    given += decoder.next(token);
  std::string whole = tokenizer.decode(std::vector<int32_t>(prompt.begin(), prompt.end()), /*skipSpecial=*/true);
  if (whole.starts_with(given))
    held = whole.substr(given.size());
}

std::string PromptedDecoder::withoutHeld(std::string text) {
  const size_t common = static_cast<size_t>(std::mismatch(text.begin(), text.end(), held.begin(), held.end()).first - text.begin());
  // Another text than the prompt's: its last bytes became part of another character, so all of it is new.
  if (common < text.size() && common < held.size()) {
    held.clear();
    return text;
  }
  held.erase(0, common);
  return text.substr(common);
}

} // namespace mcc::runtime
