// What the tokenizer tests share: loading a tokenizer.json, and golden files.
#pragma once

#include "runtime-lib/tokenizer/Tokenizer.h"

#include "compiler/Support/LocatedJson.h"

#include <memory>
#include <string>
#include <vector>

namespace mcc::test {

/// A tokenizer with the bytes it lives in.
struct Loaded {
  std::vector<uint8_t> image;
  std::unique_ptr<Tokenizer> tokenizer;
  std::string error; ///< why there is none
  const Tokenizer &operator*() const { return *tokenizer; }
  const Tokenizer *operator->() const { return tokenizer.get(); }
};

/// Loads a serialised tokenizer.
Loaded loadImage(std::vector<uint8_t> image);
/// Imports and loads a tokenizer.json.
Loaded loadFile(const std::string &path);
Loaded loadText(const std::string &json);
/// Returns what importing `json`, called "t.json", is refused with; empty where it is accepted.
std::string refusal(const std::string &json);

/// Returns the text of test/data/tokenizers/KIND/tokenizer.json.
std::string dataTokenizer(const std::string &kind);

/// Reads a JSON file; the test fails where it cannot.
JsonDocument readJson(const std::string &path);
std::vector<int32_t> idsOf(const JsonValue &array);
/// Decodes token by token as generation does.
std::string streamed(const Tokenizer &tokenizer, const std::vector<int32_t> &ids);

} // namespace mcc::test
