// From a piece of text to token ids: the three kinds of model.
#pragma once

#include "runtime-lib/tokenizer/Image.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mcc::tokenizer {

/// The ids of pieces seen before, for one encode call. A bounded table: what collides is forgotten.
class PieceCache {
public:
  /// Makes room in proportion to a text of `textBytes`.
  explicit PieceCache(size_t textBytes);
  /// Appends the ids of `piece` and returns true, where they are known.
  bool append(std::string_view piece, uint64_t hash, std::vector<int32_t> &ids) const;
  /// Remembers `ids` from index `first` on as those of `piece`.
  void remember(std::string_view piece, uint64_t hash, const std::vector<int32_t> &ids, size_t first);

private:
  struct Entry {
    uint64_t hash = 0;
    uint32_t text = 0, textBytes = 0; ///< textBytes = 0: free
    uint32_t ids = 0, idCount = 0;
  };
  std::vector<Entry> entries;
  std::string texts;
  std::vector<int32_t> idStore;
};

/// What one encode call needs beside the model; not thread-safe.
struct ModelWorkspace {
  explicit ModelWorkspace(size_t textBytes) : cache(textBytes) {}
  PieceCache cache;
  std::string mapped;
  struct Symbol {
    uint32_t id;        ///< Bpe
    uint32_t begin, bytes; ///< of the piece; bytes = 0: merged into its left neighbour
    int32_t previous, next;
  };
  std::vector<Symbol> symbols;
  struct Candidate {
    double order; ///< lower goes first: the rank, or the negated score
    int32_t left;
    uint32_t result; ///< Bpe: the merged id; ScoredMerges: the bytes of both
  };
  std::vector<Candidate> heap;
  struct Best {
    double score;
    int32_t start; ///< -1: not reached
    int32_t id;
  };
  std::vector<Best> best;
};

/// A model. Immutable, thread-safe.
class Model {
public:
  virtual ~Model() = default;
  /// Reads the model's settings. Returns null, with the reason in `error`, where they are damaged. `image` must
  /// outlive the model. `pieceIsBytes`: pieces will be bytes that stand for the byte alphabet's characters.
  static std::unique_ptr<Model> read(SettingsReader &settings, const Image &image, std::string &error);
  /// Says that pieces are bytes to be mapped to the byte alphabet.
  void takeBytes() {
    pieceIsBytes = true;
    // Separators are characters of the alphabet's text, not of the bytes.
    separator = {};
  }
  /// Appends the ids of `piece` (not empty, below 2 GiB). Returns false where the model has no unknown token for a
  /// character it does not know but needs one.
  bool encode(std::string_view piece, ModelWorkspace &work, std::vector<int32_t> &ids) const;

protected:
  Model(const Image &image) : image(image) {}
  /// Appends the ids of a word: a part of a piece that no token crosses.
  virtual bool encodeWord(std::string_view word, ModelWorkspace &work, std::vector<int32_t> &ids) const = 0;
  /// Whether encodeWord() takes bytes as they are, where pieces are bytes.
  virtual bool mapsBytes() const { return false; }
  /// Called once the settings are read.
  virtual bool prepare(std::string &error) = 0;
  /// Appends the byte tokens of `text` and returns true, where the vocabulary has them all.
  bool appendBytes(std::string_view text, std::vector<int32_t> &ids) const;

  const Image &image;
  uint32_t flags = 0;
  int32_t unknown = -1;
  std::string_view continuingPrefix, endSuffix;
  double minimalScore = 0;
  bool pieceIsBytes = false;
  std::array<int32_t, 256> byteTokens; ///< of <0xNN>, or -1

private:
  bool encodeCached(std::string_view word, ModelWorkspace &work, std::vector<int32_t> &ids) const;
  std::string_view separator;
  std::array<uint8_t, 32> crossing{}; ///< bit b: some token has byte b before a separator inside it
};

std::unique_ptr<Model> createBpe(const Image &image);
std::unique_ptr<Model> createUnigram(const Image &image);
std::unique_ptr<Model> createScoredMerges(const Image &image);

} // namespace mcc::tokenizer
