// Feeds arbitrary bytes to the tokenizer's loader, to the tokenizer.json importer and to the pattern rewriter; whatever
// is accepted is used: texts encoded, ids decoded at once and as a stream. Nothing may crash, overflow, hang or leak, and
// a stream must equal the whole.
//
// The first byte chooses the reader. A serialised tokenizer takes the text to encode from its last 64 bytes.
#include "compiler/Tokenizer/OnigurumaPattern.h"
#include "compiler/Tokenizer/TokenizerImport.h"
#include "runtime-lib/tokenizer/Regex.h"
#include "runtime-lib/tokenizer/Tokenizer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace mcc;

static void use(const Tokenizer &tokenizer, std::string_view text) {
  std::vector<int32_t> ids = tokenizer.encode(text, true);
  for (int32_t id : ids)
    if (id < 0)
      std::abort();
  for (char c : text)
    ids.push_back(uint8_t(c));
  StreamDecoder stream(tokenizer);
  std::string whole;
  for (int32_t id : ids)
    whole += stream.next(id);
  if (whole + stream.finish() != tokenizer.decode(ids, true))
    std::abort();
}

static void load(const std::vector<uint8_t> &image, std::string_view text) {
  std::string error;
  if (std::unique_ptr<Tokenizer> tokenizer = Tokenizer::load(image.data(), image.size(), error))
    use(*tokenizer, text);
  else if (error.empty())
    std::abort();
}

static void loadBytes(const uint8_t *data, size_t size) {
  std::vector<uint8_t> image(data, data + size);
  // The size in the header is set right, so that a change of length is no obstacle.
  uint64_t total = size;
  if (size >= 24)
    std::memcpy(image.data() + 16, &total, 8);
  size_t tail = std::min<size_t>(size, 64);
  load(image, {reinterpret_cast<const char *>(data) + size - tail, tail});
}

static void matchPattern(std::string_view source) {
  OnigurumaResult result = translateOniguruma({source.data(), source.size()});
  std::string error;
  if (!result.problem.empty())
    return;
  auto regex = tokenizer::Regex::compile(result.pattern, error);
  if (!regex)
    return;
  tokenizer::Matcher matcher(*regex);
  tokenizer::forEachMatch(matcher, "It's 12 o'clock,\n \xE4\xBD\xA0", [](size_t, size_t, bool) {});
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  llvm::StringRef rest(reinterpret_cast<const char *>(data) + 1, size - 1);
  switch (data[0] % 3) {
  case 0:
    loadBytes(data + 1, size - 1);
    return 0;
  case 1: {
    auto image = parseTokenizerJson(rest, "fuzz");
    if (!image)
      llvm::consumeError(image.takeError());
    else
      load(*image, rest.take_back(64));
    return 0;
  }
  default:
    // JSON strings are UTF-8 before they get here.
    if (std::all_of(rest.begin(), rest.end(), [](char c) { return uint8_t(c) < 0x80; }))
      matchPattern(rest);
    return 0;
  }
}
