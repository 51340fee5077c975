// What importing a tokenizer.json refuses, by name and place, and corner cases of what it accepts.
#include "Support.h"

#include "doctest/doctest.h"

using namespace mcc;
using namespace mcc::test;

/// A byte-level tokenizer of four tokens, with `extra` fields and `modelExtra` in its model.
static std::string small(const std::string &extra, const std::string &modelExtra = "") {
  return R"({"version": "1.0", "added_tokens": [], )" + extra + R"(
"model": {"type": "BPE", )" + modelExtra + R"("vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 3}, "merges": ["a b"]}})";
}

TEST_CASE("the small tokenizer works") {
  Loaded tokenizer = loadText(small(""));
  REQUIRE_MESSAGE(tokenizer.tokenizer, tokenizer.error);
  CHECK(tokenizer->encode("aab", false) == std::vector<int32_t>{0, 2});
  // Without a decoder the library joins tokens with spaces.
  CHECK(tokenizer->decode(std::vector<int32_t>{0, 2}, true) == "a ab");
}

TEST_CASE("unknown names are refused at their place") {
  CHECK(refusal(small(R"("normalizer": {"type": "NFX"},)")) ==
        "t.json:1:63: error: the normalizer 'NFX' is not supported; did you mean 'NFC'?");
  CHECK(refusal(small(R"("pre_tokenizer": {"type": "UnicodeScripts"},)")).find(
            "error: the pre-tokenizer 'UnicodeScripts' is not supported") != std::string::npos);
  CHECK(refusal(small(R"("decoder": {"type": "CTC"},)")).find("the decoder 'CTC' is not supported") != std::string::npos);
  CHECK(refusal(small(R"("post_processor": {"type": "Magic"},)")).find("the post-processor 'Magic'") !=
        std::string::npos);
  CHECK(refusal(small(R"("normaliser": null,)")).find("the unknown field 'normaliser'; did you mean 'normalizer'?") !=
        std::string::npos);
  CHECK(refusal(R"({"added_tokens": [], "model": {"type": "WordPiece", "vocab": {}}})") ==
        "t.json:1:31: error: the model 'WordPiece' is not supported; supported are 'BPE' and 'Unigram'");
  CHECK(refusal(small(R"("pre_tokenizer": {"type": "ByteLevel", "use_regexp": true},)")).find(
            "the pre-tokenizer 'ByteLevel' has the unknown field 'use_regexp'; did you mean 'use_regex'?") !=
        std::string::npos);
}

TEST_CASE("models that contradict themselves are refused") {
  CHECK(refusal(small("", R"("dropout": 0.1, )")).find("'dropout' is 0.1") != std::string::npos);
  CHECK(refusal(small("", R"("unk_token": "<unk>", )")).find("'unk_token' is '<unk>', which the vocabulary lacks") !=
        std::string::npos);
  CHECK(refusal(R"({"model": {"vocab": {"a": 0, "b": 1}, "merges": ["a b"]}})") ==
        "t.json:1:50: error: the merge \"a b\" needs the token 'ab', which the vocabulary lacks");
  CHECK(refusal(R"({"model": {"vocab": {"a": 0, "b": 0}, "merges": []}})").find("share the id 0") != std::string::npos);
  CHECK(refusal(R"({"model": {"vocab": {"a": 99999999}, "merges": []}})").find("below 16777216") != std::string::npos);
  CHECK(refusal(R"({"model": {"vocab": {"a": 0}, "merges": [["a"]]}})").find("is not two token texts") !=
        std::string::npos);
  CHECK(refusal(R"({"model": {"type": "Unigram", "unk_id": 3, "vocab": [["a", -1.0]]}})").find("'unk_id' is 3") !=
        std::string::npos);
  CHECK(refusal("{}") == "t.json:1:1: error: the tokenizer has no field 'model'");
  CHECK(refusal("[]").find("the tokenizer is an array") != std::string::npos);
  CHECK(refusal("").find("t.json:1:1") != std::string::npos);
}

TEST_CASE("a pattern is refused with its own position") {
  std::string json = small(
      R"("pre_tokenizer": {"type": "Split", "pattern": {"Regex": "a\\1"}, "behavior": "Isolated", "invert": false},)");
  CHECK(refusal(json).find("the pattern of the pre-tokenizer 'Split', at its byte 2: the escape '\\1'") !=
        std::string::npos);
}

TEST_CASE("templates") {
  std::string good = R"("post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "b",
    "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "b", "type_id": 0}}],
    "pair": [], "special_tokens": {"b": {"id": "b", "ids": [1], "tokens": ["b"]}}},)";
  CHECK(loadText(small(good))->encode("a", true) == std::vector<int32_t>{1, 0, 1});
  CHECK(loadText(small(good))->encode("a", false) == std::vector<int32_t>{0});
  std::string outside = good;
  outside.replace(outside.find("[1]"), 3, "[9]");
  CHECK(refusal(small(outside)).find("has the id 9; the vocabulary has 4 tokens") != std::string::npos);
  std::string none = R"("post_processor": {"type": "TemplateProcessing", "single": [], "pair": []},)";
  CHECK(refusal(small(none)).find("the template 'single' has no sequence") != std::string::npos);
}

// The library renumbers added tokens: the next free id counts, not the one beside the text.
TEST_CASE("added tokens take the next free id") {
  std::string json = small("");
  std::string added = R"("added_tokens": [{"id": 77, "content": "<x>", "single_word": false, "lstrip": false,
    "rstrip": false, "normalized": false, "special": true}])";
  json.replace(json.find(R"("added_tokens": [])"), 18, added);
  Loaded tokenizer = loadText(json);
  REQUIRE_MESSAGE(tokenizer.tokenizer, tokenizer.error);
  CHECK(tokenizer->encode("a<x>ab", false) == std::vector<int32_t>{0, 4, 2});
  CHECK(tokenizer->size() == 5);
  CHECK(tokenizer->decode(std::vector<int32_t>{4, 0}, true) == "a");
}
