// UTF-8: decoding, encoding, and replacing what is not UTF-8 by U+FFFD.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mcc::tokenizer {

inline constexpr std::string_view replacementCharacter = "\xEF\xBF\xBD";

/// Returns how many bytes a character beginning with `lead` has, where it is the lead byte of valid UTF-8.
inline size_t characterBytes(uint8_t lead) { return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4; }

/// Returns the character at `at` of valid UTF-8 and moves `at` behind it.
inline char32_t nextCharacter(std::string_view text, size_t &at) {
  uint8_t lead = text[at];
  size_t bytes = characterBytes(lead);
  if (bytes == 1) {
    ++at;
    return lead;
  }
  char32_t character = lead & (0x7F >> bytes);
  for (size_t i = 1; i < bytes; ++i)
    character = character << 6 | (uint8_t(text[at + i]) & 0x3F);
  at += bytes;
  return character;
}

/// Returns where the character that ends before `at` begins, in valid UTF-8; `at` > 0.
inline size_t previousCharacter(std::string_view text, size_t at) {
  do
    --at;
  while (at > 0 && (uint8_t(text[at]) & 0xC0) == 0x80);
  return at;
}

/// Appends a character (a Unicode scalar value).
void appendCharacter(std::string &out, char32_t character);

/// What the bytes at one position of a text are.
struct Utf8Step {
  enum Kind : uint8_t { Character, Ill, Incomplete } kind;
  uint8_t bytes; ///< of the character, of the maximal ill-formed part, or left in the text
};

/// Looks at `at` < text.size(). Incomplete: the text ends inside a character that is well-formed so far.
Utf8Step examineUtf8(std::string_view text, size_t at);

/// Returns whether `text` is UTF-8 throughout.
bool isUtf8(std::string_view text);

/// Returns `text` with every maximal ill-formed part (Unicode 3.9, as Python's errors="replace") as one U+FFFD.
std::string replaceIllFormed(std::string_view text);

/// Turns bytes that arrive in parts into UTF-8, as replaceIllFormed of them all would.
class Utf8Assembler {
public:
  /// Appends to `out` what is certain after `bytes`.
  void push(std::string_view bytes, std::string &out);
  /// Appends what the end of the text decides.
  void finish(std::string &out);

private:
  std::string pending; ///< the beginning of a character, at most 3 bytes
};

} // namespace mcc::tokenizer
