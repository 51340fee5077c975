// Regular expressions over UTF-8, by PCRE2, with limits so that no pattern and no text hangs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;

namespace mcc::tokenizer {

/// A compiled pattern. Immutable; one Matcher per thread.
class Regex {
public:
  /// Compiles a pattern in PCRE2's syntax (UTF, Unicode properties). Returns null and says why in `error`.
  static std::shared_ptr<const Regex> compile(std::string_view pattern, std::string &error);
  /// Returns a pattern that matches `text` literally.
  static std::string quote(std::string_view text);
  ~Regex();
  Regex(const Regex &) = delete;
  Regex &operator=(const Regex &) = delete;

private:
  friend class Matcher;
  explicit Regex(pcre2_real_code_8 *code) : code(code) {}
  pcre2_real_code_8 *code;
};

/// Finds the matches of one pattern. Not thread-safe.
class Matcher {
public:
  /// `regex` must outlive the matcher.
  explicit Matcher(const Regex &regex);
  ~Matcher();
  Matcher(const Matcher &) = delete;
  Matcher &operator=(const Matcher &) = delete;

  enum class Outcome { Found, None, Failed };
  /// Looks for the first match in `text` (UTF-8) from `start` on; sets begin and end. What stands before `start`
  /// is seen by lookbehind. Failed: the limit of work was reached.
  Outcome find(std::string_view text, size_t start);
  size_t begin = 0, end = 0;

private:
  const Regex &regex;
  pcre2_real_match_data_8 *matchData;
  pcre2_real_match_context_8 *context;
};

/// Calls `visit(begin, end, isMatch)` for the matches of `matcher` in `text` and the parts between them, in order;
/// empty matches are visited, empty parts between are not. Returns false where the limit of work was reached.
template <typename Visit>
bool forEachMatch(Matcher &matcher, std::string_view text, Visit visit) {
  size_t start = 0, done = 0;
  bool matched = false;
  while (start <= text.size()) {
    Matcher::Outcome outcome = matcher.find(text, start);
    if (outcome == Matcher::Outcome::Failed)
      return false;
    if (outcome == Matcher::Outcome::None)
      break;
    size_t begin = matcher.begin, end = matcher.end;
    // No empty match right behind a match: look one character further.
    if (begin == end && matched && end == done) {
      if (start >= text.size())
        break;
      do
        ++start;
      while (start < text.size() && (uint8_t(text[start]) & 0xC0) == 0x80);
      continue;
    }
    if (done < begin)
      visit(done, begin, false);
    visit(begin, end, true);
    matched = true;
    start = done = end;
  }
  if (done < text.size())
    visit(done, text.size(), false);
  return true;
}

} // namespace mcc::tokenizer
