// The description of a tokenizer that importers fill, and its serialisation.
#pragma once

#include "runtime-lib/tokenizer/TokenizerFormat.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace mcc {

/// A growing stream of settings fields; see TokenizerFormat.h.
class SettingsWriter {
public:
  SettingsWriter &byte(uint8_t value) {
    bytes += char(value);
    return *this;
  }
  SettingsWriter &word(uint32_t value) { return raw(&value, sizeof value); }
  SettingsWriter &real(double value) { return raw(&value, sizeof value); }
  SettingsWriter &text(llvm::StringRef value) {
    word(uint32_t(value.size()));
    bytes += value;
    return *this;
  }
  SettingsWriter &raw(const void *data, size_t size) {
    bytes.append(static_cast<const char *>(data), size);
    return *this;
  }
  std::string bytes;
};

/// A counted sequence of steps.
struct SettingsSteps {
  uint32_t count = 0;
  SettingsWriter fields;
  /// Begins a step; its fields are written to the result, in the order of TokenizerFormat.h.
  template <typename Kind>
  SettingsWriter &add(Kind kind) {
    ++count;
    return fields.byte(uint8_t(kind));
  }
};

/// Everything the runtime needs to know of a tokenizer.
struct TokenizerDescription {
  struct Token {
    std::string text;
    uint8_t flags = tokenizer::tokenAbsent;
    bool inModel = false; ///< found when the model looks for its text
    double score = 0;
  };
  struct Merge {
    uint32_t left, right, result;
  };
  struct Added {
    uint32_t id;
    uint8_t flags;
    std::string text; ///< to be matched: normalised where the flags say so
  };

  std::vector<Token> tokens; ///< by id
  std::vector<Merge> merges; ///< by rank; of two with one pair the later counts
  tokenizer::ModelKind model = tokenizer::ModelKind::Bpe;
  uint32_t modelFlags = 0;
  int32_t unknown = -1;
  std::string continuingPrefix, endSuffix;
  tokenizer::AddedMatching matching = tokenizer::AddedMatching::LeftmostLongest;
  std::vector<Added> added;
  std::vector<std::pair<uint32_t, std::string>> shown; ///< tokens decoded as another text than their own
  std::vector<uint32_t> before, after;                 ///< put around a text
  SettingsSteps normalizers, preTokenizers, decoders;
  std::vector<uint32_t> charsmap; ///< as the section Charsmap

  /// Returns token `id`, made room for.
  Token &token(uint32_t id);
};

/// Returns the serialised form; the same description gives the same bytes. An error, at `where`, is one of limits (more
/// tokens, merges or text than the form can hold).
llvm::Expected<std::vector<uint8_t>> serializeTokenizer(const TokenizerDescription &description, llvm::StringRef where);

/// Normalises the texts of added tokens that are matched after normalisation. As in the `tokenizers` library, a token
/// whose text this changes is decoded as the changed text, and is not special any more.
llvm::Error normalizeAddedTokens(TokenizerDescription &description, llvm::StringRef where);

} // namespace mcc
