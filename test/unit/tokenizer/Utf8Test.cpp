// Replacement of what is not UTF-8, as Python's bytes.decode(errors="replace") does it (expected texts are its).
#include "runtime-lib/tokenizer/Utf8.h"

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "doctest/doctest.h"

#include <random>

using namespace mcc::tokenizer;

static const std::string bad(replacementCharacter);

TEST_CASE("ill-formed parts are maximal") {
  CHECK(replaceIllFormed("plain") == "plain");
  CHECK(replaceIllFormed("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80") == "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  CHECK(replaceIllFormed("a\x80z") == "a" + bad + "z");
  CHECK(replaceIllFormed("\xC0\xAF") == bad + bad);                 // overlong: neither byte can begin
  CHECK(replaceIllFormed("\xE2\x82z") == bad + "z");                // cut character: one
  CHECK(replaceIllFormed("\xE0\x80\x80") == bad + bad + bad);       // 80 cannot follow E0
  CHECK(replaceIllFormed("\xED\xA0\x80") == bad + bad + bad);       // surrogate
  CHECK(replaceIllFormed("\xF0\x9F\x98") == bad);                   // cut at the end
  CHECK(replaceIllFormed("\xF4\x90\x80\x80") == bad + bad + bad + bad);
  CHECK(replaceIllFormed("\xF1\x80\x80\xE2\x82") == bad + bad);
}

TEST_CASE("arrival in parts changes nothing") {
  std::mt19937 random(7);
  const char *pieces[] = {"a", "\xC3", "\xA9", "\xE2", "\x82", "\xAC", "\xF0", "\x9F", "\x98", "\x80", "\xED\xA0", "\xFF"};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 12; ++i)
      text += pieces[random() % 12];
    Utf8Assembler assembler;
    std::string out;
    for (size_t at = 0; at < text.size();) {
      size_t bytes = 1 + random() % 3;
      assembler.push(std::string_view(text).substr(at, bytes), out);
      CHECK(isUtf8(out)); // never half a character
      at += bytes;
    }
    assembler.finish(out);
    REQUIRE(out == replaceIllFormed(text));
    REQUIRE(isUtf8(out));
  }
}
