// The serialised form: the same bytes every time, and nothing but a message where it is damaged.
#include "Support.h"

#include "runtime-lib/tokenizer/TokenizerFormat.h"

#include "doctest/doctest.h"

#include <cstring>
#include <random>

using namespace mcc;
using namespace mcc::test;

static std::string loadError(const std::vector<uint8_t> &image) { return loadImage(image).error; }

TEST_CASE("the same file gives the same bytes") {
  for (const char *kind : {"gpt2", "t5-unigram", "llama2"})
    CHECK(loadText(dataTokenizer(kind)).image == loadText(dataTokenizer(kind)).image);
}

TEST_CASE("a truncated image is refused at every length") {
  std::vector<uint8_t> image = loadText(dataTokenizer("gpt2")).image;
  for (size_t bytes = 0; bytes < image.size(); bytes += bytes < 600 ? 1 : 97) {
    std::vector<uint8_t> cut(image.begin(), image.begin() + ptrdiff_t(bytes));
    CHECK(loadError(cut) != "");
  }
  image.push_back(0);
  CHECK(loadError(image).find("its header says") != std::string::npos);
}

TEST_CASE("the header's fields are named") {
  std::vector<uint8_t> image = loadText(dataTokenizer("gpt2")).image;
  std::vector<uint8_t> wrong = image;
  wrong[0] = 'X';
  CHECK(loadError(wrong).find("does not begin with MCCTOKEN") != std::string::npos);
  wrong = image;
  wrong[8] = 99;
  CHECK(loadError(wrong) == "the serialised tokenizer has version 99; this program reads version 1");
  tokenizer::ImageHeader header;
  std::memcpy(&header, image.data(), sizeof header);
  header.tokenCount = UINT32_MAX;
  wrong = image;
  std::memcpy(wrong.data(), &header, sizeof header);
  CHECK(loadError(wrong).find("4294967295 tokens") != std::string::npos);
}

TEST_CASE("an unaligned image is refused") {
  std::vector<uint8_t> image = loadText(dataTokenizer("gpt2")).image, shifted(image.size() + 1);
  std::memcpy(shifted.data() + 1, image.data(), image.size());
  std::string error;
  CHECK(!Tokenizer::load(shifted.data() + 1, image.size(), error));
  CHECK(error == "the serialised tokenizer is not aligned to 8 bytes");
}

// Whatever one byte is changed to: a message, or a tokenizer that works on some vocabulary.
TEST_CASE("damaged bytes never crash") {
  std::mt19937 random(3);
  for (const char *kind : {"gpt2", "t5-unigram", "llama2", "qwen2"}) {
    std::vector<uint8_t> image = loadText(dataTokenizer(kind)).image;
    int refused = 0;
    for (int round = 0; round < 600; ++round) {
      std::vector<uint8_t> damaged = image;
      // Half the damage goes to the header, the section table and the settings, where it matters most.
      size_t range = round % 2 ? damaged.size() : 2500;
      for (int change = 0; change < 3; ++change)
        damaged[random() % range] = uint8_t(random());
      Loaded tokenizer = loadImage(std::move(damaged));
      refused += !tokenizer.tokenizer;
      if (!tokenizer.tokenizer) {
        CHECK(tokenizer.error != "");
        continue;
      }
      std::vector<int32_t> ids = tokenizer->encode("Hello, world! <|endoftext|> 123  \xE4\xBD\xA0", true);
      tokenizer->decode(ids, false);
      streamed(*tokenizer, ids);
    }
    CHECK(refused > 100);
  }
}
