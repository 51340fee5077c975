// The text that generated ids add to a prompt.
#pragma once

#include "runtime-lib/tokenizer/Tokenizer.h"

#include <span>
#include <string>

namespace mcc::runtime {

/// Decodes generated ids as the continuation of a prompt: its ids decide whether a first space is kept, its own text is not
/// given again. The end of a prompt can be held back by the decoder (byte tokens may become another character with the next
/// one), so what it gives late is taken off the first new text.
class PromptedDecoder {
public:
  /// `tokenizer` must outlive the decoder.
  PromptedDecoder(const Tokenizer &tokenizer, std::span<const int32_t> prompt);

  /// As StreamDecoder::next and finish, without the prompt's text.
  std::string next(int32_t id) { return withoutHeld(decoder.next(id)); }
  std::string finish() { return withoutHeld(decoder.finish()); }

private:
  std::string withoutHeld(std::string text);

  StreamDecoder decoder;
  std::string held; ///< the end of the prompt's text that the decoder has not given yet
};

} // namespace mcc::runtime
