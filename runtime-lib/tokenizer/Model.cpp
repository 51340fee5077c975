// What the models share: settings, the cutting of unsegmented text into words, and the cache.
//
// Models without a pre-tokenizer see a whole document as one piece. Where the word separator follows a byte that no
// token has before a separator, no merge can cross, so the piece is cut there: same ids, and words that the cache knows.
#include "runtime-lib/tokenizer/Model.h"

#include "runtime-lib/tokenizer/Unicode.h"

#include <algorithm>
#include <bit>

namespace mcc::tokenizer {

static constexpr size_t maxCachedBytes = 128;
static constexpr size_t maxCacheStore = size_t(16) << 20;

PieceCache::PieceCache(size_t textBytes)
    : entries(std::bit_ceil(std::clamp<size_t>(textBytes / 8, 16, 32768))) {}

bool PieceCache::append(std::string_view piece, uint64_t hash, std::vector<int32_t> &ids) const {
  const Entry &entry = entries[hash & (entries.size() - 1)];
  if (entry.hash != hash || entry.textBytes != piece.size() ||
      std::memcmp(texts.data() + entry.text, piece.data(), piece.size()))
    return false;
  const int32_t *known = idStore.data() + entry.ids;
  ids.insert(ids.end(), known, known + entry.idCount);
  return true;
}

void PieceCache::remember(std::string_view piece, uint64_t hash, const std::vector<int32_t> &ids, size_t first) {
  size_t count = ids.size() - first;
  if (texts.size() + 4 * idStore.size() > maxCacheStore)
    return;
  entries[hash & (entries.size() - 1)] = {hash, uint32_t(texts.size()), uint32_t(piece.size()),
                                          uint32_t(idStore.size()), uint32_t(count)};
  texts += piece;
  idStore.insert(idStore.end(), ids.begin() + ptrdiff_t(first), ids.end());
}

std::unique_ptr<Model> Model::read(SettingsReader &settings, const Image &image, std::string &error) {
  std::unique_ptr<Model> model;
  switch (settings.readEnum(ModelKind::ScoredMerges)) {
  case ModelKind::Bpe:
    model = createBpe(image);
    break;
  case ModelKind::Unigram:
    model = createUnigram(image);
    break;
  case ModelKind::ScoredMerges:
    model = createScoredMerges(image);
    break;
  }
  model->flags = settings.readWord();
  model->unknown = int32_t(settings.readWord());
  model->continuingPrefix = settings.readText();
  model->endSuffix = settings.readText();
  model->minimalScore = settings.readReal();
  model->separator = settings.readText();
  for (uint8_t &bits : model->crossing)
    bits = settings.readByte();
  if (!settings.ok() || model->unknown < -1 || model->unknown >= int32_t(image.tokenCount())) {
    error = "the serialised tokenizer has damaged model settings";
    return nullptr;
  }
  for (int byte = 0; byte < 256; ++byte) {
    const char digits[] = "0123456789ABCDEF";
    const char text[6] = {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
    model->byteTokens[byte] = image.find({text, 6});
  }
  return model->prepare(error) ? std::move(model) : nullptr;
}

bool Model::appendBytes(std::string_view text, std::vector<int32_t> &ids) const {
  for (char c : text)
    if (byteTokens[uint8_t(c)] < 0)
      return false;
  for (char c : text)
    ids.push_back(byteTokens[uint8_t(c)]);
  return true;
}

bool Model::encodeCached(std::string_view word, ModelWorkspace &work, std::vector<int32_t> &ids) const {
  if (word.size() > maxCachedBytes)
    return encodeWord(word, work, ids);
  uint64_t hash = hashText(word);
  if (work.cache.append(word, hash, ids))
    return true;
  size_t first = ids.size();
  if (!encodeWord(word, work, ids))
    return false;
  work.cache.remember(word, hash, ids, first);
  return true;
}

bool Model::encode(std::string_view piece, ModelWorkspace &work, std::vector<int32_t> &ids) const {
  if (pieceIsBytes && !mapsBytes()) {
    work.mapped.clear();
    byteAlphabet().append(work.mapped, piece);
    piece = work.mapped;
  }
  if (separator.empty())
    return encodeCached(piece, work, ids);
  size_t begin = 0;
  for (size_t at = piece.find(separator, 1); at != std::string_view::npos; at = piece.find(separator, at + 1)) {
    uint8_t before = piece[at - 1];
    if (crossing[before >> 3] >> (before & 7) & 1)
      continue;
    if (!encodeCached(piece.substr(begin, at - begin), work, ids))
      return false;
    begin = at;
  }
  return encodeCached(piece.substr(begin), work, ids);
}

} // namespace mcc::tokenizer
