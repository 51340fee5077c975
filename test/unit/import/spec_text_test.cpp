// The JSON reader's grammar, places and messages, against nlohmann_json where both must agree; and suggestions.
#include "compiler/Support/LocatedJson.h"
#include "compiler/Support/Suggest.h"

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "doctest/doctest.h"

#include <cmath>
#include <nlohmann/json.hpp>

using namespace mcc;

static std::string errorOf(const std::string &text) {
  llvm::Expected<JsonDocument> document = JsonDocument::parse(text, "f.json");
  return document ? "" : llvm::toString(document.takeError());
}

TEST_CASE("every key and value knows its line and column") {
  JsonDocument document =
      llvm::cantFail(JsonDocument::parse("{\n  \"a\": [1,\n    true],\"bc\" : {\"d\":\"x\"}\n}", "f.json"));
  REQUIRE(document.root.members.size() == 2);
  const JsonMember &a = document.root.members[0], &bc = document.root.members[1];
  CHECK(document.where(document.root) == "f.json:1:1");
  CHECK(document.where(a.offset) == "f.json:2:3");
  CHECK(document.where(a.value) == "f.json:2:8");
  CHECK(document.where(a.value.elements[0]) == "f.json:2:9");
  CHECK(document.where(a.value.elements[1]) == "f.json:3:5");
  CHECK(document.where(bc.offset) == "f.json:3:11");
  CHECK(document.where(bc.value) == "f.json:3:18");
  CHECK(document.where(bc.value.find("d")->value) == "f.json:3:23");
  CHECK(bc.value.find("e") == nullptr);
}

TEST_CASE("values are what they say") {
  JsonDocument document =
      llvm::cantFail(JsonDocument::parse("[null, true, false, 0, -7, 9223372036854775807, 9223372036854775808, 1.5e2, "
                                         "\"a\\u00e9\\ud83d\\ude00\\n\\/\", {}, []]",
                                         "f"));
  const std::vector<JsonValue> &list = document.root.elements;
  CHECK(list[0].isNull());
  CHECK(list[1].boolean);
  CHECK(!list[2].boolean);
  CHECK(list[3].integer == 0);
  CHECK(list[4].integer == -7);
  CHECK(list[4].real == -7);
  CHECK(list[5].kind == JsonValue::Kind::Integer);
  CHECK(list[5].integer == 9223372036854775807);
  CHECK(list[6].kind == JsonValue::Kind::Real);
  CHECK(list[6].real == 9223372036854775808.0);
  CHECK(list[7].kind == JsonValue::Kind::Real);
  CHECK(list[7].real == 150);
  CHECK(list[8].string == "a\xC3\xA9\xF0\x9F\x98\x80\n/");
  CHECK(list[9].isObject());
  CHECK(list[10].isArray());
}

TEST_CASE("python's literals are numbers") {
  JsonDocument document = llvm::cantFail(JsonDocument::parse("[Infinity, -Infinity, NaN]", "f"));
  CHECK(document.root.elements[0].real == INFINITY);
  CHECK(document.root.elements[1].real == -INFINITY);
  CHECK(std::isnan(document.root.elements[2].real));
}

TEST_CASE("syntax errors say where and what") {
  CHECK(errorOf("") == "f.json:1:1: error: expected a value; found the end of the file");
  CHECK(errorOf("{\"a\": 1,\n}") == "f.json:2:1: error: expected a key in double quotes; found '}'");
  CHECK(errorOf("{\"a\" 1}") == "f.json:1:6: error: expected ':' after the key \"a\"; found '1'");
  CHECK(errorOf("{\"a\": 1 \"b\": 2}") == "f.json:1:9: error: expected ',' or '}' in an object; found '\"'");
  CHECK(errorOf("[1 2]") == "f.json:1:4: error: expected ',' or ']' in an array; found '2'");
  CHECK(errorOf("[1,]") == "f.json:1:4: error: expected a value; found ']'");
  CHECK(errorOf("nul") == "f.json:1:1: error: expected a value; found 'nul'");
  CHECK(errorOf("nullx") == "f.json:1:1: error: expected a value; found 'nullx'");
  CHECK(errorOf("1 x") == "f.json:1:3: error: the document ends here, but 'x' follows");
  CHECK(errorOf("\"abc") == "f.json:1:1: error: the string that starts here has no closing quote");
  CHECK(errorOf("\"a\tb\"") ==
        "f.json:1:3: error: a string contains the control character byte 0x09; write it as \\u00XX");
  CHECK(errorOf("\"\\x\"") == "f.json:1:2: error: an escape is one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
  CHECK(errorOf("\"\\u12g4\"") == "f.json:1:4: error: expected four hexadecimal digits after \\u");
  CHECK(errorOf("\"\\ud800x\"") == "f.json:1:2: error: a high surrogate is not followed by a low one");
  CHECK(errorOf("\"\\udc00\"") == "f.json:1:2: error: a low surrogate stands alone");
  CHECK(errorOf("\"\xC3(\"") == "f.json:1:2: error: a string contains bytes that are not UTF-8");
  CHECK(errorOf("01") == "f.json:1:1: error: a number does not start with 0 and a digit");
  CHECK(errorOf("-") == "f.json:1:1: error: expected a digit after '-'");
  CHECK(errorOf("1.") == "f.json:1:1: error: expected a digit after the decimal point");
  CHECK(errorOf("1e+") == "f.json:1:1: error: expected a digit in the exponent");
  CHECK(errorOf("1e999") == "f.json:1:1: error: the number 1e999 is larger than a double can hold");
  CHECK(errorOf("\xFF") == "f.json:1:1: error: expected a value; found byte 0xff");
}

TEST_CASE("duplicate keys are refused, in one object only") {
  CHECK(errorOf("{\"a\": 1,\n \"a\": 2}") == "f.json:2:2: error: the key \"a\" occurs twice in one object");
  CHECK(errorOf("{\"a\": {\"a\": 1}}") == "");
}

TEST_CASE("nesting is limited") {
  CHECK(errorOf(std::string(256, '[') + std::string(256, ']')) == "");
  CHECK(errorOf(std::string(257, '[') + std::string(257, ']')) ==
        "f.json:1:257: error: more than 256 nested arrays and objects");
  CHECK(errorOf(std::string(1000000, '[')) != "");
}

TEST_CASE("small and subnormal numbers round as strtod does") {
  for (const char *text : {"1e-400", "5e-324", "2.2250738585072011e-308", "0.1", "-0.0"})
    CHECK(llvm::cantFail(JsonDocument::parse(text, "f")).root.real == std::strtod(text, nullptr));
}

TEST_CASE("accepts and refuses what nlohmann_json does") {
  for (const char *text : {"[]",
                           "{}",
                           "[1,2,{\"a\":[]}]",
                           " 1 ",
                           "\"\\u0000\"",
                           "[1,,2]",
                           "{\"a\"}",
                           "{1:2}",
                           "+1",
                           ".5",
                           "1.5.2",
                           "tru",
                           "[",
                           "]",
                           "{\"a\":1}}",
                           "\"\\\"",
                           "[\"\xED\xA0\x80\"]",
                           "[\"\xF4\x90\x80\x80\"]",
                           "\xEF\xBB\xBF[1]",
                           "1e5",
                           "1E-5",
                           "-0",
                           "00"}) {
    CAPTURE(text);
    CHECK(errorOf(text).empty() == nlohmann::json::accept(text));
  }
}

TEST_CASE("quoted shows a value as the file has it, shortened") {
  JsonDocument document =
      llvm::cantFail(JsonDocument::parse("[1.50, \"" + std::string(50, 'x') + "\", [1], true]", "f"));
  CHECK(document.quoted(document.root.elements[0]) == "1.50");
  CHECK(document.quoted(document.root.elements[1]) == "\"" + std::string(37, 'x') + "...\"");
  CHECK(document.quoted(document.root.elements[2]) == "an array");
  CHECK(document.quoted(document.root.elements[3]) == "true");
}

TEST_CASE("strings are quoted so that they read back") {
  CHECK(quoteJson("a\"b\\c\n\x01") == "\"a\\\"b\\\\c\\n\\u0001\"");
  CHECK(quoteJson("\xC3\xA9") == "\"\xC3\xA9\"");
  CHECK(quoteJson("a\xC3") == "\"a\xEF\xBF\xBD\"");
}

TEST_CASE("numbers are printed in the shortest form that reads back") {
  CHECK(printNumber(1e-5) == "1e-05");
  CHECK(printNumber(10000) == "10000");
  CHECK(printNumber(500000000000) == "500000000000");
  CHECK(printNumber(0.1) == "0.1");
  CHECK(printNumber(1.0 / 3) == "0.3333333333333333");
  CHECK(printNumber(1e300) == "1e+300");
  CHECK(printNumber(-0.0) == "-0");
}

TEST_CASE("a missing file is named") {
  llvm::Expected<JsonDocument> document = JsonDocument::read("/nonexistent/config.json");
  CHECK(llvm::toString(document.takeError()) ==
        "/nonexistent/config.json: error: cannot read the file: No such file or directory");
}

TEST_CASE("the nearest name is suggested, and none that is far") {
  llvm::StringRef names[] = {"hidden_size", "head_dim", "num_heads"};
  CHECK(suggestName("hiden_size", names) == "; did you mean 'hidden_size'?");
  CHECK(suggestName("HEAD_DIM", names) == "; did you mean 'head_dim'?");
  CHECK(suggestName("num_head", names) == "; did you mean 'num_heads'?");
  CHECK(suggestName("vocabulary", names) == "");
  CHECK(suggestName("", names) == "");
  CHECK(suggestName(std::string(100000, 'a'), names) == "");
  CHECK(quotedList(names) == "'hidden_size', 'head_dim' and 'num_heads'");
}
