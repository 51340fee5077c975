// The character properties that tokenizers ask for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mcc::tokenizer {

/// Returns whether a character has the property White_Space.
inline bool isWhiteSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/// Returns whether a character counts as part of a word: letters, marks, decimal digits, letter numbers, connectors.
bool isWordCharacter(char32_t c);
/// Returns whether a character is of category N.
bool isNumeric(char32_t c);
/// Returns whether a character is of category P or ASCII punctuation (which includes some symbols).
bool isPunctuation(char32_t c);
/// Returns whether a character is of category M.
bool isMark(char32_t c);
/// Returns whether a character is of category Mn.
bool isNonspacingMark(char32_t c);
/// Returns whether a character is of category C, unassigned ones included.
bool isOther(char32_t c);
/// Appends the lower-case form of a character, by itself (no context rules).
void appendLowercase(std::string &out, char32_t c);

enum class NormalForm : uint8_t { Nfc, Nfd, Nfkc, Nfkd };
/// Returns `text` (UTF-8) in a normal form.
std::string normalizeUnicode(std::string_view text, NormalForm form);

/// The printable character that byte-level vocabularies write for each byte, as UTF-8.
struct ByteAlphabet {
  std::string_view text(uint8_t byte) const { return {texts[byte], lengths[byte]}; }
  /// Returns the byte that a character stands for, or -1.
  int byte(char32_t c) const { return c < 512 ? bytes[c] : -1; }
  /// Appends the characters of `raw`.
  void append(std::string &out, std::string_view raw) const;

  char texts[256][2];
  uint8_t lengths[256];
  int16_t bytes[512];
};
/// Returns the one alphabet.
const ByteAlphabet &byteAlphabet();

} // namespace mcc::tokenizer
