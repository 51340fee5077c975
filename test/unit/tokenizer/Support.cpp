// Helpers of the tokenizer tests.
#include "Support.h"

#include "compiler/Tokenizer/TokenizerImport.h"

#include "doctest/doctest.h"

#include <fstream>
#include <iterator>

namespace mcc::test {

Loaded loadImage(std::vector<uint8_t> image) {
  Loaded loaded;
  loaded.image = std::move(image);
  loaded.tokenizer = Tokenizer::load(loaded.image.data(), loaded.image.size(), loaded.error);
  return loaded;
}

static Loaded loadImported(llvm::Expected<std::vector<uint8_t>> image) {
  if (image)
    return loadImage(std::move(*image));
  Loaded loaded;
  loaded.error = llvm::toString(image.takeError());
  return loaded;
}

Loaded loadFile(const std::string &path) { return loadImported(importTokenizerJson(path)); }
Loaded loadText(const std::string &json) { return loadImported(parseTokenizerJson(json, "t.json")); }

std::string refusal(const std::string &json) {
  llvm::Expected<std::vector<uint8_t>> image = parseTokenizerJson(json, "t.json");
  return image ? std::string() : llvm::toString(image.takeError());
}

std::string dataTokenizer(const std::string &kind) {
  std::ifstream stream(std::string(MCC_TEST_DATA) + "/tokenizers/" + kind + "/tokenizer.json", std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

JsonDocument readJson(const std::string &path) {
  llvm::Expected<JsonDocument> document = JsonDocument::read(path);
  if (document)
    return std::move(*document);
  FAIL(llvm::toString(document.takeError()));
  return {};
}

std::vector<int32_t> idsOf(const JsonValue &array) {
  std::vector<int32_t> ids;
  for (const JsonValue &element : array.elements)
    ids.push_back(int32_t(element.integer));
  return ids;
}

std::string streamed(const Tokenizer &tokenizer, const std::vector<int32_t> &ids) {
  StreamDecoder decoder(tokenizer);
  std::string text;
  for (int32_t id : ids)
    text += decoder.next(id);
  return text + decoder.finish();
}

} // namespace mcc::test
