// The check of a serialised tokenizer.
//
// Invariant after open(): every offset, id and slot that a lookup follows lies in its table, and every hash table has
// a free slot, so that probing ends. A damaged table that passes can give wrong answers, but no wild access.
#include "runtime-lib/tokenizer/Image.h"

#include "runtime-lib/tokenizer/Utf8.h"

#include <bit>
#include <type_traits>

namespace mcc::tokenizer {

static_assert(std::endian::native == std::endian::little, "the image is used in place");

std::string_view SettingsReader::readText() {
  uint32_t length = readWord();
  if (failed || bytes.size() - at < length) {
    failed = true;
    return {};
  }
  std::string_view text = bytes.substr(at, length);
  at += length;
  if (!isUtf8(text))
    failed = true;
  return failed ? std::string_view() : text;
}

uint32_t SettingsReader::readCount() {
  uint32_t count = readWord();
  if (bytes.size() - at < count)
    failed = true;
  return failed ? 0 : count;
}

bool Image::fail(std::string what) {
  if (problem.empty())
    problem = "the serialised tokenizer " + std::move(what);
  return false;
}

std::span<const uint8_t> Image::section(SectionKind kind) const {
  for (const ImageSection &entry : sections)
    if (entry.kind == kind)
      return data.subspan(entry.offset, entry.bytes);
  return {};
}

template <typename Table>
bool Image::view(Table &table, SectionKind kind) {
  using T = std::remove_const_t<std::remove_reference_t<decltype(table[0])>>;
  std::span<const uint8_t> bytes = section(kind);
  if (bytes.size() % sizeof(T))
    return fail("has " + std::to_string(bytes.size()) + " bytes in section " + std::to_string(uint32_t(kind)) +
                ", not a multiple of " + std::to_string(sizeof(T)));
  table = Table(reinterpret_cast<const T *>(bytes.data()), bytes.size() / sizeof(T));
  return true;
}

bool Image::readHeader(std::span<const uint8_t> image) {
  if (reinterpret_cast<uintptr_t>(image.data()) % sectionAlignment)
    return fail("is not aligned to 8 bytes");
  if (image.size() < sizeof(ImageHeader))
    return fail("has " + std::to_string(image.size()) + " bytes, fewer than its header");
  ImageHeader header;
  std::memcpy(&header, image.data(), sizeof header);
  if (std::memcmp(header.magic, imageMagic, sizeof imageMagic))
    return fail("does not begin with MCCTOKEN");
  if (header.version != imageVersion)
    return fail("has version " + std::to_string(header.version) + "; this program reads version " +
                std::to_string(imageVersion));
  if (header.totalBytes != image.size())
    return fail("has " + std::to_string(image.size()) + " bytes; its header says " +
                std::to_string(header.totalBytes));
  if (header.tokenCount == 0 || header.tokenCount > maxTokens || header.mergeCount > maxMerges)
    return fail("claims " + std::to_string(header.tokenCount) + " tokens and " + std::to_string(header.mergeCount) +
                " merges");
  if (header.sectionCount > 64 || (image.size() - sizeof header) / sizeof(ImageSection) < header.sectionCount)
    return fail("has no room for " + std::to_string(header.sectionCount) + " sections");
  data = image;
  tokens = header.tokenCount;
  merges = header.mergeCount;
  sections = {reinterpret_cast<const ImageSection *>(image.data() + sizeof header), header.sectionCount};
  for (const ImageSection &entry : sections)
    if (entry.offset % sectionAlignment || entry.offset > image.size() || entry.bytes > image.size() - entry.offset)
      return fail("has section " + std::to_string(uint32_t(entry.kind)) + " at byte " + std::to_string(entry.offset) +
                  ", " + std::to_string(entry.bytes) + " long, outside its " + std::to_string(image.size()) + " bytes");
  return true;
}

bool Image::readSections() {
  if (!view(settingsBytes, SectionKind::Settings) || !view(tokenFlags, SectionKind::TokenFlags) ||
      !view(vocabulary, SectionKind::VocabularyHash) || !view(mergeSlots, SectionKind::MergeHash) ||
      !view(scoreTable, SectionKind::Scores) || !view(sorted, SectionKind::SortedIds))
    return false;
  if (tokenFlags.size() != tokens)
    return fail("has " + std::to_string(tokenFlags.size()) + " token flags for " + std::to_string(tokens) + " tokens");
  if (!scoreTable.empty() && scoreTable.size() != tokens)
    return fail("has " + std::to_string(scoreTable.size()) + " scores for " + std::to_string(tokens) + " tokens");
  for (uint32_t id : sorted)
    if (id >= tokens)
      return fail("sorts token " + std::to_string(id) + " of " + std::to_string(tokens));
  for (size_t i = 1; i < sorted.size(); ++i)
    if (text(sorted[i]) < text(sorted[i - 1]))
      return fail("has its sorted tokens out of order");
  return true;
}

bool Image::checkTexts() {
  if (!view(textOffsets, SectionKind::TextOffsets) || !view(textBytes, SectionKind::TextBytes))
    return false;
  if (textOffsets.size() != size_t(tokens) + 1 || textOffsets[0] != 0 || textOffsets[tokens] != textBytes.size())
    return fail("has " + std::to_string(textOffsets.size()) + " text offsets that do not span its texts");
  for (uint32_t id = 0; id < tokens; ++id)
    if (textOffsets[id] > textOffsets[id + 1])
      return fail("has the text of token " + std::to_string(id) + " ending before it begins");
  if (!isUtf8(textBytes))
    return fail("has token texts that are not UTF-8");
  for (uint32_t offset : textOffsets)
    if (offset < textBytes.size() && (uint8_t(textBytes[offset]) & 0xC0) == 0x80)
      return fail("has a token text that begins inside a character");
  return true;
}

bool Image::checkVocabularyHash() {
  if (!std::has_single_bit(vocabulary.size()))
    return fail("has a vocabulary hash of " + std::to_string(vocabulary.size()) + " slots; wanted is a power of two");
  size_t used = 0;
  uint32_t highest = 0;
  for (uint32_t entry : vocabulary) {
    used += entry != 0;
    highest = entry > highest ? entry : highest;
  }
  if (highest > tokens || used == vocabulary.size())
    return fail("has a vocabulary hash with " + std::to_string(used) + " of " + std::to_string(vocabulary.size()) +
                " slots in use and token " + std::to_string(highest) + " of " + std::to_string(tokens));
  vocabularyMask = vocabulary.size() - 1;
  return true;
}

bool Image::checkMergeHash() {
  if (mergeSlots.empty())
    return merges == 0 || fail("has no table for its " + std::to_string(merges) + " merges");
  if (!std::has_single_bit(mergeSlots.size()))
    return fail("has a merge hash of " + std::to_string(mergeSlots.size()) + " slots; wanted is a power of two");
  size_t used = 0;
  for (const MergeSlot &entry : mergeSlots) {
    if (entry.result == freeSlot)
      continue;
    ++used;
    if (entry.left >= tokens || entry.right >= tokens || entry.result >= tokens || entry.rank >= merges)
      return fail("has the merge " + std::to_string(entry.left) + " " + std::to_string(entry.right) + " -> " +
                  std::to_string(entry.result) + " in a vocabulary of " + std::to_string(tokens));
  }
  if (used == mergeSlots.size())
    return fail("has a merge hash without a free slot");
  mergeMask = mergeSlots.size() - 1;
  return true;
}

bool Image::checkCharsmap() {
  std::span<const uint32_t> words;
  if (!view(words, SectionKind::Charsmap))
    return false;
  if (words.empty())
    return true;
  if (words.size() - 1 < words[0])
    return fail("has " + std::to_string(words[0]) + " normalisation units in " + std::to_string(words.size()) +
                " words");
  trieUnits = words.subspan(1, words[0]);
  std::span<const uint32_t> rest = words.subspan(1 + words[0]);
  trieTexts = {reinterpret_cast<const char *>(rest.data()), rest.size_bytes()};
  if (trieTexts.empty() || trieTexts.back() != 0 || !isUtf8(trieTexts))
    return fail("has normalisation texts that are not NUL-ended UTF-8");
  return true;
}

std::optional<Image> Image::open(std::span<const uint8_t> bytes, std::string &error) {
  Image image;
  if (image.readHeader(bytes) && image.checkTexts() && image.readSections() && image.checkVocabularyHash() &&
      image.checkMergeHash() && image.checkCharsmap())
    return image;
  error = image.problem;
  return std::nullopt;
}

} // namespace mcc::tokenizer
