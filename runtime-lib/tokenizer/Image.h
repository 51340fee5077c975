// A checked view of a serialised tokenizer: after Image::open every table is known to be in bounds.
#pragma once

#include "runtime-lib/tokenizer/TokenizerFormat.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mcc::tokenizer {

/// Reads the settings section; after the first read past the end, ok() is false and every read gives 0 or "".
class SettingsReader {
public:
  explicit SettingsReader(std::string_view bytes) : bytes(bytes) {}
  uint8_t readByte() { return readValue<uint8_t>(); }
  uint32_t readWord() { return readValue<uint32_t>(); }
  double readReal() { return readValue<double>(); }
  std::string_view readText();
  /// Reads an enumerator up to `last`.
  template <typename Enum>
  Enum readEnum(Enum last) {
    uint8_t value = readByte();
    if (value > uint8_t(last))
      failed = true;
    return failed ? Enum(0) : Enum(value);
  }
  /// Reads a count of records of at least one byte each.
  uint32_t readCount();
  bool ok() const { return !failed; }
  bool atEnd() const { return at == bytes.size(); }

private:
  template <typename T>
  T readValue() {
    T value{};
    if (failed || bytes.size() - at < sizeof(T)) {
      failed = true;
      return value;
    }
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    at += sizeof(T);
    return value;
  }
  std::string_view bytes;
  size_t at = 0;
  bool failed = false;
};

/// The tables of a serialised tokenizer, views into its bytes.
class Image {
public:
  /// Checks `data`, which must outlive the image and be aligned to 8 bytes. Costs one pass over the tables.
  /// Returns nothing, and says in `error` what is wrong, where the bytes are no image.
  static std::optional<Image> open(std::span<const uint8_t> data, std::string &error);

  uint32_t tokenCount() const { return tokens; }
  uint32_t mergeCount() const { return merges; }
  std::string_view settings() const { return settingsBytes; }
  /// Returns the text of a token; `id` < tokenCount().
  std::string_view text(uint32_t id) const {
    return textBytes.substr(textOffsets[id], textOffsets[id + 1] - textOffsets[id]);
  }
  uint8_t flags(uint32_t id) const { return tokenFlags[id]; }
  /// Returns the model's token with this text, or -1.
  int32_t find(std::string_view wanted) const {
    for (size_t slot = hashText(wanted) & vocabularyMask; vocabulary[slot]; slot = (slot + 1) & vocabularyMask)
      if (text(vocabulary[slot] - 1) == wanted)
        return int32_t(vocabulary[slot] - 1);
    return -1;
  }
  /// Returns the merge of a pair, or null.
  const MergeSlot *findMerge(uint32_t left, uint32_t right) const {
    if (mergeSlots.empty())
      return nullptr;
    for (size_t slot = hashPair(left, right) & mergeMask;; slot = (slot + 1) & mergeMask) {
      const MergeSlot &entry = mergeSlots[slot];
      if (entry.result == freeSlot)
        return nullptr;
      if (entry.left == left && entry.right == right)
        return &entry;
    }
  }
  /// f64[tokens], or empty.
  std::span<const double> scores() const { return scoreTable; }
  /// The model's tokens in byte order of their texts, or empty.
  std::span<const uint32_t> sortedIds() const { return sorted; }
  /// The units of the normalisation trie, or empty.
  std::span<const uint32_t> charsmapUnits() const { return trieUnits; }
  /// The strings the normalisation trie points into; the last byte is NUL.
  std::string_view charsmapTexts() const { return trieTexts; }

private:
  /// Sets `table`, a span or a string view, to a section's contents.
  template <typename Table>
  bool view(Table &table, SectionKind kind);
  bool readHeader(std::span<const uint8_t> data);
  bool readSections();
  bool checkTexts();
  bool checkVocabularyHash();
  bool checkMergeHash();
  bool checkCharsmap();
  bool fail(std::string what);
  std::span<const uint8_t> section(SectionKind kind) const;

  std::span<const uint8_t> data;
  std::span<const ImageSection> sections;
  std::string problem;
  uint32_t tokens = 0, merges = 0;
  std::string_view settingsBytes, textBytes, trieTexts;
  std::span<const uint32_t> textOffsets, vocabulary, sorted, trieUnits;
  std::span<const uint8_t> tokenFlags;
  std::span<const MergeSlot> mergeSlots;
  std::span<const double> scoreTable;
  size_t vocabularyMask = 0, mergeMask = 0;
};

} // namespace mcc::tokenizer
