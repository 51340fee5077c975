// The rewriting of patterns: forms that differ between the two syntaxes, and refusals with their place.
#include "compiler/Tokenizer/OnigurumaPattern.h"
#include "runtime-lib/tokenizer/Regex.h"

#include "doctest/doctest.h"

using namespace mcc;

/// Returns the matches of `pattern` in `text`, each in brackets, the rest as it is.
static std::string matches(const char *pattern, std::string_view text) {
  OnigurumaResult result = translateOniguruma(pattern);
  if (!result.problem.empty())
    return result.problem + " at " + std::to_string(result.offset);
  std::string error, out;
  auto regex = tokenizer::Regex::compile(result.pattern, error);
  if (!regex)
    return error;
  tokenizer::Matcher matcher(*regex);
  tokenizer::forEachMatch(matcher, text, [&](size_t begin, size_t end, bool isMatch) {
    out += (isMatch ? "[" : "") + std::string(text.substr(begin, end - begin)) + (isMatch ? "]" : "");
  });
  return out;
}

// Expected strings: Oniguruma, through the library `tokenizers` 0.23 (Split, isolated).
TEST_CASE("constructs mean what Oniguruma means") {
  CHECK(matches("[a[bc]]+", "xabcx") == "x[abc]x");                      // nested classes are a union
  CHECK(matches("[a-z&&[^aeiou]]+", "hello") == "[h]e[ll]o");            // intersection
  CHECK(matches("[^a[^b]]", "ab") == "a[b]");                            // not (a or not b)
  CHECK(matches("a{1,2}+b", "aaab") == "[aaab]");                        // a repeated repetition, not possessive
  CHECK(matches("a++a", "aaa") == "aaa");                                // possessive
  CHECK(matches("a{,2}b", "aab") == "[aab]");                            // {,n}
  CHECK(matches("a{,}", "a{,}") == "[a{,}]");                            // a literal brace
  CHECK(matches("a{2}?", "aaa") == "[aa]a[]");                           // an optional {2}
  CHECK(matches("^b$", "a\nb\nc") == "a\n[b]\nc");                       // every line
  CHECK(matches("a.b", "a\nb axb") == "a\nb [axb]");
  CHECK(matches("(?m:a.b)", "a\nb") == "[a\nb]");                        // m is dot-all
  CHECK(matches("\\h+", "xyzdead") == "xyz[dead]");                      // hexadecimal digits
  CHECK(matches("(?i:'S)", "'s'\xC5\xBF") == "['s]['\xC5\xBF]");         // long s folds to s
  CHECK(matches("\\s", "\xE1\xA0\x8E\xC2\x85") == "\xE1\xA0\x8E[\xC2\x85]"); // U+180E is no space
  CHECK(matches("[\\S]+", "ab c") == "[ab] [c]");
  CHECK(matches("[^\\S\\n]+", "a \n\tb") == "a[ ]\n[\t]b");
  CHECK(matches("\\p{^L}+", "a12b") == "a[12]b");
  CHECK(matches("\\p{Han}+", "a\xE4\xBD\xA0") == "a[\xE4\xBD\xA0]");
  CHECK(matches("(?<=a)b(?!c)", "abc ab") == "abc a[b]");
  CHECK(matches("x#y-", "x#y-") == "[x#y-]");
  CHECK(matches("\\w+", "a\xC2\xB2\xE2\x91\xA0\xE2\x93\x90") == "[a\xC2\xB2]\xE2\x91\xA0[\xE2\x93\x90]"); // 2, (1), (a)
  CHECK(matches("\\bfoo\\b", "foo foobar") == "[foo] foobar");
  CHECK(matches("\\d{1,3}(?=(?:\\d{3})*\\b)", "1234567") == "[1][234][567]");
}

TEST_CASE("what is unknown is refused with its place") {
  CHECK(matches("a(b", "") == "the group has no ')' at 3");
  CHECK(matches("ab)", "") == "')' closes no group at 2");
  CHECK(matches("[ab", "") == "the class has no ']' at 3");
  CHECK(matches("(a)\\1", "") == "the escape '\\1' is not supported at 4");
  CHECK(matches("\\X", "") == "the escape '\\X' is not supported at 1");
  CHECK(matches("*a", "") == "the quantifier follows nothing at 0");
  CHECK(matches("[z-a]", "") == "a range ends before it begins at 4");
  CHECK(matches("a\\", "") == "the pattern ends in a backslash at 2");
  CHECK(matches("\\p{Klingonish_}", "").find("refused") != std::string::npos);
  CHECK(matches("\\p{alpha}", "") == "the property 'alpha' is not supported at 3");
  CHECK(matches("(?x: a)", "") == "the group option 'x' is not supported at 2");
  CHECK(matches(std::string(300, '(').c_str(), "").find("nested deeper than 100") != std::string::npos);
}

// Exponential backtracking ends at the limit and says so.
TEST_CASE("a pattern cannot hang") {
  OnigurumaResult result = translateOniguruma("(a+)+[bc]");
  std::string error;
  auto regex = tokenizer::Regex::compile(result.pattern, error);
  REQUIRE(regex);
  tokenizer::Matcher matcher(*regex);
  CHECK(matcher.find(std::string(64, 'a') + "d", 0) == tokenizer::Matcher::Outcome::Failed);
}
