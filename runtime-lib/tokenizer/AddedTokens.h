// Tokens that are found in the text before the model sees it.
#pragma once

#include "runtime-lib/tokenizer/Image.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace mcc::tokenizer {

/// A part of a text: an added token, or text between.
struct Segment {
  size_t begin, end;
  int32_t token; ///< -1: text
};

/// Finds added tokens. Immutable, thread-safe.
class AddedTokens {
public:
  /// Reads the tokens; `matching` says how they are found. Returns false where they are damaged.
  bool read(SettingsReader &settings, const Image &image, AddedMatching matching, std::string &error);
  /// Divides `text` into tokens and text. `normalized`: looks for the tokens that are matched after normalisation,
  /// else for the others. Segments of tokens that take white space can overlap; those of text are never empty.
  void divide(std::string_view text, bool normalized, std::vector<Segment> &segments) const;
  /// Returns whether some token is matched after normalisation.
  bool hasNormalized() const { return !sets[1].tokens.empty(); }

private:
  struct Token {
    std::string_view text;
    int32_t id;
    uint8_t flags;
    uint32_t position; ///< in the settings
  };
  /// Tokens in byte order of their texts.
  struct Set {
    std::vector<Token> tokens;
    std::array<uint32_t, 257> firstByte{};
    void index();
    /// Calls visit(token) for every token that `text` (not empty) begins with, shortest first.
    template <typename Visit>
    void forEachPrefix(std::string_view text, Visit visit) const;
    size_t skipTo(std::string_view text, size_t at) const;
  };
  void divideLeftmost(std::string_view text, const Set &set, std::vector<Segment> &segments) const;
  void divideLongest(std::string_view text, const Set &set, std::vector<Segment> &segments) const;

  AddedMatching matching = AddedMatching::LeftmostLongest;
  Set sets[2];
};

} // namespace mcc::tokenizer
