// PCRE2 behind a small interface.
//
// Patterns are compiled to machine code where the system allows it, and interpreted otherwise: same matches, an order
// of magnitude slower. A match may do work in proportion to the text (matchLimit); running out of the machine-code
// stack repeats the match in the interpreter.
#include "runtime-lib/tokenizer/Regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <new>

namespace mcc::tokenizer {

static constexpr uint32_t baseMatchLimit = 1u << 20;

static const PCRE2_UCHAR8 *units(std::string_view text) {
  // PCRE2 refuses a null subject of length 0 in older releases.
  return reinterpret_cast<const PCRE2_UCHAR8 *>(text.data() ? text.data() : "");
}

std::shared_ptr<const Regex> Regex::compile(std::string_view pattern, std::string &error) {
  int number = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code_8 *code = pcre2_compile_8(units(pattern), pattern.size(),
                                       PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C,
                                       &number, &offset, nullptr);
  if (!code) {
    PCRE2_UCHAR8 text[160];
    pcre2_get_error_message_8(number, text, sizeof text);
    error = "the pattern is refused at byte " + std::to_string(offset) + ": " + reinterpret_cast<char *>(text);
    return nullptr;
  }
  (void)pcre2_jit_compile_8(code, PCRE2_JIT_COMPLETE);
  return std::shared_ptr<const Regex>(new Regex(code));
}

std::string Regex::quote(std::string_view text) {
  std::string out;
  for (char c : text) {
    bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || uint8_t(c) >= 0x80;
    if (!plain && uint8_t(c) < 0x20)
      out += "\\x{" + std::string(1, "0123456789abcdef"[c >> 4]) + "0123456789abcdef"[c & 15] + "}";
    else
      (plain ? out : out += '\\') += c;
  }
  return out;
}

Regex::~Regex() { pcre2_code_free_8(code); }

Matcher::Matcher(const Regex &regex)
    : regex(regex), matchData(pcre2_match_data_create_8(1, nullptr)), context(pcre2_match_context_create_8(nullptr)) {
  if (matchData && context)
    return;
  pcre2_match_data_free_8(matchData);
  pcre2_match_context_free_8(context);
  throw std::bad_alloc();
}

Matcher::~Matcher() {
  pcre2_match_data_free_8(matchData);
  pcre2_match_context_free_8(context);
}

Matcher::Outcome Matcher::find(std::string_view text, size_t start) {
  size_t limit = std::min<size_t>(baseMatchLimit + 16 * text.size(), UINT32_MAX);
  pcre2_set_match_limit_8(context, uint32_t(limit));
  uint32_t options = PCRE2_NO_UTF_CHECK;
  int count = pcre2_match_8(regex.code, units(text), text.size(), start, options, matchData, context);
  if (count == PCRE2_ERROR_JIT_STACKLIMIT)
    count = pcre2_match_8(regex.code, units(text), text.size(), start, options | PCRE2_NO_JIT, matchData, context);
  if (count == PCRE2_ERROR_NOMATCH)
    return Outcome::None;
  const PCRE2_SIZE *range = pcre2_get_ovector_pointer_8(matchData);
  // \K in a lookaround can set the start behind the end or before `start`.
  if (count < 0 || range[0] < start || range[1] < range[0] || range[1] > text.size())
    return Outcome::Failed;
  begin = range[0];
  end = range[1];
  return Outcome::Found;
}

} // namespace mcc::tokenizer
