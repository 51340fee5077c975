// UTF-8 by the table of well-formed sequences (Unicode 3.9, table 3-7).
//
// An ill-formed part is maximal: it ends before the first byte that cannot continue the sequence, so a truncated
// character counts once and a stray continuation byte counts by itself. Python and Rust replace the same parts.
#include "runtime-lib/tokenizer/Utf8.h"

namespace mcc::tokenizer {

void appendCharacter(std::string &out, char32_t character) {
  if (character < 0x80) {
    out += char(character);
  } else if (character < 0x800) {
    out += char(0xC0 | character >> 6);
    out += char(0x80 | (character & 0x3F));
  } else if (character < 0x10000) {
    out += char(0xE0 | character >> 12);
    out += char(0x80 | (character >> 6 & 0x3F));
    out += char(0x80 | (character & 0x3F));
  } else {
    out += char(0xF0 | character >> 18);
    out += char(0x80 | (character >> 12 & 0x3F));
    out += char(0x80 | (character >> 6 & 0x3F));
    out += char(0x80 | (character & 0x3F));
  }
}

Utf8Step examineUtf8(std::string_view text, size_t at) {
  uint8_t lead = text[at];
  if (lead < 0x80)
    return {Utf8Step::Character, 1};
  if (lead < 0xC2 || lead > 0xF4)
    return {Utf8Step::Ill, 1};
  uint8_t length = uint8_t(characterBytes(lead));
  // The second byte is narrower after some leads: no overlong forms, no surrogates, nothing above U+10FFFF.
  uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (uint8_t i = 1; i < length; ++i) {
    if (at + i == text.size())
      return {Utf8Step::Incomplete, i};
    uint8_t byte = text[at + i];
    if (byte < low || byte > high)
      return {Utf8Step::Ill, i};
    low = 0x80;
    high = 0xBF;
  }
  return {Utf8Step::Character, length};
}

/// Returns where the run of ASCII that begins at `at` ends.
static size_t skipAscii(std::string_view text, size_t at) {
  while (at + 8 <= text.size()) {
    uint64_t word;
    __builtin_memcpy(&word, text.data() + at, 8);
    if (word & 0x8080808080808080)
      break;
    at += 8;
  }
  while (at < text.size() && uint8_t(text[at]) < 0x80)
    ++at;
  return at;
}

/// Returns where the first ill-formed or incomplete part at or behind `at` begins, or the size of the text.
static size_t findIllFormed(std::string_view text, size_t at) {
  while ((at = skipAscii(text, at)) < text.size()) {
    Utf8Step step = examineUtf8(text, at);
    if (step.kind != Utf8Step::Character)
      return at;
    at += step.bytes;
  }
  return at;
}

bool isUtf8(std::string_view text) { return findIllFormed(text, 0) == text.size(); }

std::string replaceIllFormed(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  Utf8Assembler assembler;
  assembler.push(text, out);
  assembler.finish(out);
  return out;
}

void Utf8Assembler::push(std::string_view bytes, std::string &out) {
  std::string joined;
  if (!pending.empty()) {
    joined = pending;
    joined += bytes;
    bytes = joined;
    pending.clear();
  }
  for (size_t at = 0; at < bytes.size();) {
    size_t ill = findIllFormed(bytes, at);
    out += bytes.substr(at, ill - at);
    if (ill == bytes.size())
      return;
    Utf8Step step = examineUtf8(bytes, ill);
    if (step.kind == Utf8Step::Incomplete) {
      pending = bytes.substr(ill);
      return;
    }
    out += replacementCharacter;
    at = ill + step.bytes;
  }
}

void Utf8Assembler::finish(std::string &out) {
  if (!pending.empty())
    out += replacementCharacter;
  pending.clear();
}

} // namespace mcc::tokenizer
