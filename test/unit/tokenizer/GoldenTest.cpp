// Twelve kinds of tokenizer.json against what the Rust library `tokenizers` 0.23 answers: ids with and without the
// special tokens, and texts with and without them, for 108 strings each. test/data/tokenizers/README.md says more.
#include "Support.h"

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "doctest/doctest.h"

#include <filesystem>

using namespace mcc;
using namespace mcc::test;

static std::vector<std::string> kinds() {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(std::string(MCC_TEST_DATA) + "/tokenizers"))
    if (entry.is_directory())
      names.push_back(entry.path().filename().string());
  return names;
}

TEST_CASE("all kinds are here") { CHECK(kinds().size() == 12); }

TEST_CASE("ids and texts equal the library's") {
  for (const std::string &kind : kinds()) {
    CAPTURE(kind);
    std::string folder = std::string(MCC_TEST_DATA) + "/tokenizers/" + kind;
    Loaded tokenizer = loadFile(folder + "/tokenizer.json");
    REQUIRE_MESSAGE(tokenizer.tokenizer, tokenizer.error);
    JsonDocument golden = readJson(folder + "/golden.json");
    const std::vector<JsonValue> &cases = golden.root.find("cases")->value.elements;
    REQUIRE(cases.size() == 108);
    for (const JsonValue &entry : cases) {
      const std::string &text = entry.find("text")->value.string;
      CAPTURE(text);
      std::string error;
      std::vector<int32_t> ids = tokenizer->encode(text, false, &error);
      CHECK(error == "");
      CHECK(ids == idsOf(entry.find("ids")->value));
      CHECK(tokenizer->encode(text, true) == idsOf(entry.find("ids_special")->value));
      CHECK(tokenizer->decode(ids, true) == entry.find("decoded")->value.string);
      CHECK(tokenizer->decode(ids, false) == entry.find("decoded_keep_special")->value.string);
      CHECK(streamed(*tokenizer, ids) == entry.find("decoded")->value.string);
    }
  }
}
