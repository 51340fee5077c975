// Texts that break tokenizers: empty, not UTF-8, very long, and streams that stop anywhere.
#include "Support.h"

#include "doctest/doctest.h"

#include <random>
#include <thread>

using namespace mcc;
using namespace mcc::test;

static const char *const allKinds[] = {"deepseek", "falcon", "gemma",           "gpt2",  "gpt2-prefix-space", "llama2",
                                       "llama3",   "o200k",  "metaspace-first", "qwen2", "starcoder",         "t5-unigram"};

static std::string randomBytes(std::mt19937 &random, size_t most) {
  std::string text(random() % most, 0);
  for (char &c : text)
    c = char(random());
  return text;
}

TEST_CASE("empty text") {
  for (const char *kind : allKinds) {
    Loaded tokenizer = loadText(dataTokenizer(kind));
    REQUIRE(tokenizer.tokenizer);
    CHECK(tokenizer->encode("", false).empty());
    CHECK(tokenizer->decode({}, true).empty());
    CHECK(streamed(*tokenizer, {}).empty());
  }
}

TEST_CASE("byte-level tokenizers give back every text") {
  std::mt19937 random(1);
  for (const char *kind : {"deepseek", "falcon", "gpt2", "llama3", "o200k", "starcoder"}) {
    Loaded tokenizer = loadText(dataTokenizer(kind));
    for (int round = 0; round < 100; ++round) {
      std::string text;
      for (int i = 0; i < 40; ++i) {
        char32_t c = random() % 4 ? random() % 0x250 : random() % 0x11000;
        if (c >= 0xD800 && c < 0xE000)
          continue;
        text += c < 0x80 ? std::string(1, char(c)) : c < 0x800 ? std::string{char(0xC0 | c >> 6), char(0x80 | (c & 63))}
                : c < 0x10000 ? std::string{char(0xE0 | c >> 12), char(0x80 | (c >> 6 & 63)), char(0x80 | (c & 63))}
                              : std::string{char(0xF0), char(0x80 | (c >> 12 & 63)), char(0x80 | (c >> 6 & 63)),
                                            char(0x80 | (c & 63))};
      }
      std::vector<int32_t> ids = tokenizer->encode(text, false);
      CHECK(tokenizer->decode(ids, false) == text);
    }
  }
}

TEST_CASE("bytes that are not UTF-8 are read as U+FFFD") {
  Loaded tokenizer = loadText(dataTokenizer("gpt2"));
  CHECK(tokenizer->encode("a\xFFz", false) == tokenizer->encode("a\xEF\xBF\xBDz", false));
  CHECK(tokenizer->encode("\xE2\x82", false) == tokenizer->encode("\xEF\xBF\xBD", false));
  CHECK(tokenizer->decode(tokenizer->encode("a\xC3(", false), false) == "a\xEF\xBF\xBD(");
}

TEST_CASE("random bytes and random ids never break anything, and streams equal texts") {
  std::mt19937 random(2);
  for (const char *kind : allKinds) {
    CAPTURE(kind);
    Loaded tokenizer = loadText(dataTokenizer(kind));
    for (int round = 0; round < 60; ++round) {
      std::string error;
      for (int32_t id : tokenizer->encode(randomBytes(random, 300), true, &error))
        CHECK((id >= 0 && id < tokenizer->size()));
      CHECK(error == "");
      std::vector<int32_t> ids;
      for (int i = random() % 30; i > 0; --i)
        ids.push_back(int32_t(random() % uint32_t(tokenizer->size() + 3)) - 1);
      CHECK(streamed(*tokenizer, ids) == tokenizer->decode(ids, true));
    }
  }
}

TEST_CASE("a stream never cuts a character") {
  Loaded tokenizer = loadText(dataTokenizer("gpt2"));
  std::vector<int32_t> ids = tokenizer->encode("\xF0\x9F\xA6\x99 \xE4\xBD\xA0\xE5\xA5\xBD", false);
  StreamDecoder decoder(*tokenizer);
  std::string text;
  for (int32_t id : ids) {
    std::string part = decoder.next(id);
    // A part that begins or ends inside a character shows as a continuation byte in front or a lead at the end.
    if (!part.empty()) {
      CHECK((uint8_t(part[0]) & 0xC0) != 0x80);
      CHECK(uint8_t(part.back()) < 0xC0);
    }
    text += part;
  }
  CHECK(text + decoder.finish() == "\xF0\x9F\xA6\x99 \xE4\xBD\xA0\xE5\xA5\xBD");
  // Half a character at the end comes out as U+FFFD.
  StreamDecoder half(*tokenizer);
  CHECK(half.next(ids[0]) + half.finish() == "\xEF\xBF\xBD");
}

TEST_CASE("a megabyte without a break") {
  std::string text(1 << 20, 'a');
  for (const char *kind : allKinds) {
    CAPTURE(kind);
    Loaded tokenizer = loadText(dataTokenizer(kind));
    std::string error;
    std::vector<int32_t> ids = tokenizer->encode(text, false, &error);
    CHECK(error == "");
    bool addsSpace = std::string(kind) == "gpt2-prefix-space";
    CHECK((tokenizer->decode(ids, true) == (addsSpace ? " " + text : text)));
  }
}

TEST_CASE("a megabyte of spaces and of line ends") {
  for (const char *kind : {"llama3", "qwen2", "deepseek", "gpt2", "t5-unigram"})
    for (const std::string &text : {std::string(1 << 20, ' ') + "x", std::string(1 << 20, '\n')}) {
      std::string error;
      loadText(dataTokenizer(kind))->encode(text, false, &error);
      CHECK(error == "");
    }
}

TEST_CASE("one tokenizer serves several threads") {
  Loaded tokenizer = loadText(dataTokenizer("llama3"));
  std::string text = "It's 12345 o'clock,  \n and all's well: \xE4\xBD\xA0\xE5\xA5\xBD! ";
  for (int i = 0; i < 6; ++i)
    text += text;
  std::vector<int32_t> expected = tokenizer->encode(text, true);
  std::vector<std::vector<int32_t>> found(4);
  std::vector<std::thread> threads;
  for (std::vector<int32_t> &ids : found)
    threads.emplace_back([&] { ids = tokenizer->encode(text, true); });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::vector<int32_t> &ids : found)
    CHECK(ids == expected);
}

TEST_CASE("tokens by id and by text") {
  Loaded tokenizer = loadText(dataTokenizer("llama3"));
  int32_t id = tokenizer->tokenId("<|eot_id|>");
  CHECK(id == 4);
  CHECK(tokenizer->isSpecial(id));
  CHECK(tokenizer->tokenText(id) == "<|eot_id|>");
  CHECK(tokenizer->tokenId("<|im_start|>") == 1500); // outside the model's vocabulary
  CHECK(tokenizer->tokenId("no such token") == -1);
  CHECK(tokenizer->tokenText(-1).empty());
  CHECK(tokenizer->tokenText(int32_t(tokenizer->size())).empty());
  CHECK(!tokenizer->isSpecial(300));
}

// Pieces of bytes meet models that know characters, and a vocabulary with a raw U+2581 beside the mapped one. Ids: the
// library `tokenizers` 0.23.
TEST_CASE("bytes and word separators do not mix") {
  const char *byteLevel = R"("added_tokens": [], "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false,
    "trim_offsets": true, "use_regex": false})";
  Loaded unigram = loadText(std::string("{") + byteLevel + R"(, "model": {"type": "Unigram", "unk_id": 0, "vocab":
    [["?", 0.0], ["a", -1.0], ["Ġ", -2.0], ["▁", -1.5], ["âĸģ", -3.0]]}})");
  REQUIRE_MESSAGE(unigram.tokenizer, unigram.error);
  CHECK(unigram->encode("a ▁a", false) == std::vector<int32_t>{1, 2, 4, 1});
  Loaded bpe = loadText(std::string("{") + byteLevel + R"(, "model": {"type": "BPE", "vocab": {"a": 0, "â": 1, "ĸ": 2,
    "ģ": 3, "âĸ": 4, "âĸģ": 5, "aâĸģ": 6, "▁": 7}, "merges": [["â", "ĸ"], ["âĸ", "ģ"], ["a", "âĸģ"]]}})");
  REQUIRE_MESSAGE(bpe.tokenizer, bpe.error);
  CHECK(bpe->encode("a▁a", false) == std::vector<int32_t>{6, 0});
}
