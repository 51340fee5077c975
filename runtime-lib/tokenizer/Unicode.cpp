// Character properties and normal forms by utf8proc.
#include "runtime-lib/tokenizer/Unicode.h"

#include "runtime-lib/tokenizer/Utf8.h"

#include <utf8proc.h>

#include <cstdlib>
#include <new>

namespace mcc::tokenizer {

static utf8proc_category_t category(char32_t c) { return utf8proc_category(utf8proc_int32_t(c)); }

bool isNumeric(char32_t c) {
  if (c < 0x80)
    return c >= '0' && c <= '9';
  utf8proc_category_t kind = category(c);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL || kind == UTF8PROC_CATEGORY_NO;
}

bool isPunctuation(char32_t c) {
  if (c < 0x80)
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
  utf8proc_category_t kind = category(c);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

bool isMark(char32_t c) {
  if (c < 0x80)
    return false;
  utf8proc_category_t kind = category(c);
  return kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_MC || kind == UTF8PROC_CATEGORY_ME;
}

bool isNonspacingMark(char32_t c) { return c >= 0x80 && category(c) == UTF8PROC_CATEGORY_MN; }

bool isOther(char32_t c) {
  utf8proc_category_t kind = category(c);
  return kind == UTF8PROC_CATEGORY_CN || kind >= UTF8PROC_CATEGORY_CC;
}

bool isWordCharacter(char32_t c) {
  if (c < 0x80)
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  // Join controls and the circled and squared letters are words too (UTS 18, compatibility property "word").
  if (c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
      (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189))
    return true;
  utf8proc_category_t kind = category(c);
  return (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_NL) || kind == UTF8PROC_CATEGORY_PC;
}

void appendLowercase(std::string &out, char32_t c) {
  if (c < 0x80) {
    out += char(c >= 'A' && c <= 'Z' ? c + 32 : c);
    return;
  }
  // The one character whose lower-case form is two characters.
  if (c == 0x130) {
    out += "i\xCC\x87";
    return;
  }
  appendCharacter(out, char32_t(utf8proc_tolower(utf8proc_int32_t(c))));
}

std::string normalizeUnicode(std::string_view text, NormalForm form) {
  int options = UTF8PROC_STABLE;
  options |= form == NormalForm::Nfc || form == NormalForm::Nfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::Nfkc || form == NormalForm::Nfkd)
    options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t *result = nullptr;
  utf8proc_ssize_t bytes = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t *>(text.data()),
                                        utf8proc_ssize_t(text.size()), &result, utf8proc_option_t(options));
  // The text is UTF-8 and the options are consistent, so memory is all that can be missing.
  if (bytes < 0)
    throw std::bad_alloc();
  std::string out(reinterpret_cast<char *>(result), size_t(bytes));
  std::free(result);
  return out;
}

void ByteAlphabet::append(std::string &out, std::string_view raw) const {
  for (char c : raw)
    out += text(uint8_t(c));
}

/// Printable bytes stand for themselves; the others take the characters from U+0100 on, in order.
static ByteAlphabet buildByteAlphabet() {
  ByteAlphabet alphabet{};
  for (int16_t &byte : alphabet.bytes)
    byte = -1;
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    char32_t character = printable ? char32_t(byte) : next++;
    std::string encoded;
    appendCharacter(encoded, character);
    encoded.copy(alphabet.texts[byte], 2);
    alphabet.lengths[byte] = uint8_t(encoded.size());
    alphabet.bytes[character] = int16_t(byte);
  }
  return alphabet;
}

const ByteAlphabet &byteAlphabet() {
  static const ByteAlphabet alphabet = buildByteAlphabet();
  return alphabet;
}

} // namespace mcc::tokenizer
