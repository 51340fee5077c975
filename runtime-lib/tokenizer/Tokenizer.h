// The tokenizer of an executable: text to ids and back, from the segment "tokenizer" that the compiler wrote.
//
// Encoding follows the tokenizer's own library: Hugging Face `tokenizers` for tokenizer.json, llama.cpp for GGUF with
// special tokens parsed. Bytes that are not UTF-8 are read as U+FFFD, one for each maximal ill-formed part, as Python's
// errors="replace" does. Nothing here throws.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mcc {

namespace tokenizer {
struct TokenizerState;
struct StreamState;
} // namespace tokenizer

/// A loaded tokenizer. Immutable; every member may be called from several threads.
class Tokenizer {
public:
  /// Checks and loads the serialised form; `data` must outlive the tokenizer and be aligned to 8 bytes. Returns null,
  /// with the reason in `error`, where it is damaged or from another version.
  static std::unique_ptr<Tokenizer> load(const uint8_t *data, size_t bytes, std::string &error);
  ~Tokenizer();
  Tokenizer(const Tokenizer &) = delete;
  Tokenizer &operator=(const Tokenizer &) = delete;

  /// Returns the ids of `text`. `addSpecial`: with the tokens that the tokenizer puts around a text (BOS, EOS).
  /// Returns nothing and sets `error`, where it is given, when a pattern needs more work than its limit allows, a
  /// character has no token and the tokenizer no unknown token, or memory runs out.
  std::vector<int32_t> encode(std::string_view text, bool addSpecial, std::string *error = nullptr) const;

  /// Returns the text of `ids`; ids outside the vocabulary are passed over. `skipSpecial`: special tokens too.
  std::string decode(std::span<const int32_t> ids, bool skipSpecial) const;

  /// Returns the number of ids: the highest id of a token, plus one.
  int64_t size() const;
  /// Returns a token as the vocabulary writes it; empty where `id` is no token.
  std::string_view tokenText(int32_t id) const;
  /// Returns the id of the token that the vocabulary, or an added token, writes as `text`, or -1.
  int32_t tokenId(std::string_view text) const;
  /// Returns whether `id` is a special token, which skipSpecial leaves out.
  bool isSpecial(int32_t id) const;

private:
  friend class StreamDecoder;
  explicit Tokenizer(std::unique_ptr<tokenizer::TokenizerState> state);
  std::unique_ptr<tokenizer::TokenizerState> state;
};

/// Decodes ids as they are generated. What next() and finish() return is UTF-8, never cuts a character, and together
/// equals decode(all ids, skipSpecial = true). The rule that drops a text's first space sees only the ids given
/// here: to continue a prompt, pass the prompt's ids first and ignore what they return.
class StreamDecoder {
public:
  /// `tokenizer` must outlive the decoder.
  explicit StreamDecoder(const Tokenizer &tokenizer);
  ~StreamDecoder();
  StreamDecoder(StreamDecoder &&) noexcept;
  StreamDecoder &operator=(StreamDecoder &&) noexcept;

  /// Takes the next id; returns the text that is certain now, maybe none.
  std::string next(int32_t id);
  /// Returns what was held back. Nothing may follow.
  std::string finish();

private:
  std::unique_ptr<tokenizer::StreamState> state;
};

} // namespace mcc
