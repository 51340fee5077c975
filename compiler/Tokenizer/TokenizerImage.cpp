// The serialisation of a tokenizer: settings, then tables ready for lookup, each section aligned to 8 bytes.
//
// Hash tables are filled in the order of ids and ranks, so equal descriptions give equal bytes.
#include "compiler/Tokenizer/TokenizerImage.h"

#include "compiler/Support/Error.h"
#include "runtime-lib/tokenizer/Normalizer.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <limits>

namespace mcc {

using namespace tokenizer;

TokenizerDescription::Token &TokenizerDescription::token(uint32_t id) {
  if (id >= tokens.size())
    tokens.resize(size_t(id) + 1);
  return tokens[id];
}

namespace {

struct Section {
  SectionKind kind;
  std::vector<uint8_t> bytes;
};

template <typename T>
Section makeSection(SectionKind kind, const std::vector<T> &table) {
  const uint8_t *data = reinterpret_cast<const uint8_t *>(table.data());
  return {kind, std::vector<uint8_t>(data, data + table.size() * sizeof(T))};
}

class Serializer {
public:
  explicit Serializer(const TokenizerDescription &description) : description(description) {}
  std::vector<uint8_t> run();

private:
  void addSettings();
  void addWordSeparator(SettingsWriter &settings) const;
  void addTexts();
  void addVocabularyHash();
  void addMergeHash();
  void addScores();
  void addSortedIds();

  const TokenizerDescription &description;
  std::vector<Section> sections;
};

} // namespace

static void writeSteps(SettingsWriter &settings, const SettingsSteps &steps) {
  settings.word(steps.count).raw(steps.fields.bytes.data(), steps.fields.bytes.size());
}

/// Text without a pre-tokenizer is cut into words before U+2581 where that changes nothing (Model.cpp says why); a
/// separator that is no token by itself, or affixes at the ends of pieces, would make the cut visible.
void Serializer::addWordSeparator(SettingsWriter &settings) const {
  constexpr llvm::StringLiteral separator("\xE2\x96\x81");
  std::array<uint8_t, 32> crossing{};
  bool known = false;
  for (const TokenizerDescription::Token &token : description.tokens) {
    if (!token.inModel)
      continue;
    known |= token.text == separator;
    for (size_t at = token.text.find(separator, 1); at != std::string::npos; at = token.text.find(separator, at + 1)) {
      uint8_t before = token.text[at - 1];
      crossing[before >> 3] |= uint8_t(1 << (before & 7));
    }
  }
  bool cuts = known && description.model != ModelKind::Unigram && description.continuingPrefix.empty() &&
              description.endSuffix.empty();
  settings.text(cuts ? llvm::StringRef(separator) : llvm::StringRef());
  settings.raw(crossing.data(), crossing.size());
}

void Serializer::addSettings() {
  double minimalScore = std::numeric_limits<double>::infinity();
  for (const TokenizerDescription::Token &token : description.tokens)
    if (token.inModel)
      minimalScore = std::min(minimalScore, token.score);
  SettingsWriter settings;
  settings.byte(uint8_t(description.model)).word(description.modelFlags).word(uint32_t(description.unknown));
  settings.text(description.continuingPrefix).text(description.endSuffix).real(minimalScore);
  addWordSeparator(settings);
  settings.byte(uint8_t(description.matching));
  for (const std::vector<uint32_t> *ids : {&description.before, &description.after}) {
    settings.word(uint32_t(ids->size()));
    for (uint32_t id : *ids)
      settings.word(id);
  }
  writeSteps(settings, description.normalizers);
  writeSteps(settings, description.preTokenizers);
  writeSteps(settings, description.decoders);
  settings.word(uint32_t(description.added.size()));
  for (const TokenizerDescription::Added &added : description.added)
    settings.word(added.id).byte(added.flags).text(added.text);
  settings.word(uint32_t(description.shown.size()));
  for (const auto &[id, text] : description.shown)
    settings.word(id).text(text);
  sections.push_back({SectionKind::Settings, {settings.bytes.begin(), settings.bytes.end()}});
}

void Serializer::addTexts() {
  std::vector<uint32_t> offsets{0};
  std::vector<uint8_t> bytes, flags;
  for (const TokenizerDescription::Token &token : description.tokens) {
    bytes.insert(bytes.end(), token.text.begin(), token.text.end());
    offsets.push_back(uint32_t(bytes.size()));
    flags.push_back(token.flags);
  }
  sections.push_back(makeSection(SectionKind::TextOffsets, offsets));
  sections.push_back(makeSection(SectionKind::TextBytes, bytes));
  sections.push_back(makeSection(SectionKind::TokenFlags, flags));
}

/// Returns a power of two that leaves a table with `entries` at most three quarters full.
static size_t tableSize(size_t entries) { return llvm::PowerOf2Ceil(std::max<size_t>(entries * 4 / 3 + 1, 4)); }

void Serializer::addVocabularyHash() {
  size_t count = 0;
  for (const TokenizerDescription::Token &token : description.tokens)
    count += token.inModel;
  std::vector<uint32_t> slots(tableSize(count));
  for (uint32_t id = 0; id < description.tokens.size(); ++id) {
    const TokenizerDescription::Token &token = description.tokens[id];
    if (!token.inModel)
      continue;
    size_t slot = hashText(token.text) & (slots.size() - 1);
    // Of two tokens with one text the later is found.
    while (slots[slot] && description.tokens[slots[slot] - 1].text != token.text)
      slot = (slot + 1) & (slots.size() - 1);
    slots[slot] = id + 1;
  }
  sections.push_back(makeSection(SectionKind::VocabularyHash, slots));
}

void Serializer::addMergeHash() {
  if (description.merges.empty())
    return;
  std::vector<MergeSlot> slots(tableSize(description.merges.size()), {0, 0, 0, freeSlot});
  for (uint32_t rank = 0; rank < description.merges.size(); ++rank) {
    const TokenizerDescription::Merge &merge = description.merges[rank];
    size_t slot = hashPair(merge.left, merge.right) & (slots.size() - 1);
    while (slots[slot].result != freeSlot && (slots[slot].left != merge.left || slots[slot].right != merge.right))
      slot = (slot + 1) & (slots.size() - 1);
    slots[slot] = {merge.left, merge.right, rank, merge.result};
  }
  sections.push_back(makeSection(SectionKind::MergeHash, slots));
}

void Serializer::addScores() {
  if (description.model == ModelKind::Bpe)
    return;
  std::vector<double> scores;
  for (const TokenizerDescription::Token &token : description.tokens)
    scores.push_back(token.score);
  sections.push_back(makeSection(SectionKind::Scores, scores));
}

void Serializer::addSortedIds() {
  if (description.model != ModelKind::Unigram)
    return;
  const std::vector<TokenizerDescription::Token> &tokens = description.tokens;
  std::vector<uint32_t> ids;
  for (uint32_t id = 0; id < tokens.size(); ++id)
    if (tokens[id].inModel && !tokens[id].text.empty())
      ids.push_back(id);
  // Of two tokens with one text the later is found.
  std::sort(ids.begin(), ids.end(), [&](uint32_t a, uint32_t b) {
    int order = tokens[a].text.compare(tokens[b].text);
    return order ? order < 0 : a > b;
  });
  auto sameText = [&](uint32_t a, uint32_t b) { return tokens[a].text == tokens[b].text; };
  ids.erase(std::unique(ids.begin(), ids.end(), sameText), ids.end());
  sections.push_back(makeSection(SectionKind::SortedIds, ids));
}

std::vector<uint8_t> Serializer::run() {
  addSettings();
  addTexts();
  addVocabularyHash();
  addMergeHash();
  addScores();
  addSortedIds();
  if (!description.charsmap.empty())
    sections.push_back(makeSection(SectionKind::Charsmap, description.charsmap));

  ImageHeader header{};
  std::copy(std::begin(imageMagic), std::end(imageMagic), header.magic);
  header.version = imageVersion;
  header.sectionCount = uint32_t(sections.size());
  header.tokenCount = uint32_t(description.tokens.size());
  header.mergeCount = uint32_t(description.merges.size());
  std::vector<ImageSection> table;
  uint64_t offset = sizeof header + sections.size() * sizeof(ImageSection);
  for (const Section &section : sections) {
    offset = llvm::alignTo(offset, sectionAlignment);
    table.push_back({section.kind, 0, offset, section.bytes.size()});
    offset += section.bytes.size();
  }
  header.totalBytes = offset;
  std::vector<uint8_t> image(offset);
  std::memcpy(image.data(), &header, sizeof header);
  std::memcpy(image.data() + sizeof header, table.data(), table.size() * sizeof(ImageSection));
  for (size_t i = 0; i < sections.size(); ++i)
    std::copy(sections[i].bytes.begin(), sections[i].bytes.end(), image.begin() + ptrdiff_t(table[i].offset));
  return image;
}

llvm::Expected<std::vector<uint8_t>> serializeTokenizer(const TokenizerDescription &description,
                                                        llvm::StringRef where) {
  uint64_t textBytes = 0;
  for (const TokenizerDescription::Token &token : description.tokens)
    textBytes += token.text.size();
  if (description.tokens.empty() || description.tokens.size() > maxTokens || description.merges.size() > maxMerges ||
      textBytes > UINT32_MAX)
    return diagnose(where.str(),
                    "the tokenizer has {0} tokens, {1} merges and {2} bytes of token texts; between 1 and {3} tokens, up "
                    "to {4} merges and {5} bytes can be stored",
                    description.tokens.size(), description.merges.size(), textBytes, maxTokens, maxMerges, UINT32_MAX);
  return Serializer(description).run();
}

llvm::Error normalizeAddedTokens(TokenizerDescription &description, llvm::StringRef where) {
  if (description.normalizers.count == 0)
    return llvm::Error::success();
  // The runtime's own normalizer does it, over an image that holds nothing but the map it may need.
  TokenizerDescription carrier;
  carrier.token(0) = {"x", 0, true, 0};
  carrier.charsmap = description.charsmap;
  std::vector<uint8_t> bytes = Serializer(carrier).run();
  std::string error;
  std::optional<Image> image = Image::open(bytes, error);
  SettingsWriter settings;
  writeSteps(settings, description.normalizers);
  SettingsReader reader(settings.bytes);
  Normalizer normalizer;
  if (!image || !normalizer.read(reader, *image, error))
    return diagnose(where.str(), "the normalizer cannot be used: {0}", error);
  for (TokenizerDescription::Added &added : description.added) {
    std::string text = added.text;
    if ((added.flags & addedNormalized) && !normalizer.run(added.text))
      return diagnose(where.str(), "the normalizer needs more work for the added token '{0}' than its limit allows",
                      text);
    // The library would find it between any two characters.
    if (added.text.empty())
      return diagnose(where.str(), "the normalizer leaves nothing of the added token '{0}'", text);
    if (added.text == text)
      continue;
    description.shown.push_back({added.id, added.text});
    description.tokens[added.id].flags &= uint8_t(~tokenSpecial);
  }
  return llvm::Error::success();
}

} // namespace mcc
