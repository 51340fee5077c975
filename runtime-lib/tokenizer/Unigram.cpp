// Unigram: the segmentation of a word into tokens with the highest sum of scores, by dynamic programming over its bytes.
//
// best[e] is the best way to reach byte e. From every character's beginning, all tokens that start there are tried
// (narrowing a range of the sorted vocabulary byte by byte); a character that is no token by itself can also be taken
// as unknown, for ten less than the lowest score of all. Ties keep the first found, the one with the earlier start.
#include "runtime-lib/tokenizer/Model.h"
#include "runtime-lib/tokenizer/Utf8.h"

#include <algorithm>

namespace mcc::tokenizer {

namespace {

class Unigram final : public Model {
public:
  explicit Unigram(const Image &image) : Model(image) {}

protected:
  bool prepare(std::string &error) override;
  bool encodeWord(std::string_view word, ModelWorkspace &work, std::vector<int32_t> &ids) const override;

private:
  template <typename Visit>
  void forEachPrefix(std::string_view text, Visit visit) const;
  bool findBestPath(std::string_view word, std::vector<ModelWorkspace::Best> &best) const;
  bool appendPiece(std::string_view piece, std::vector<int32_t> &ids) const;

  /// firstByte[b] .. firstByte[b + 1]: the sorted tokens that begin with byte b.
  std::array<uint32_t, 257> firstByte{};
};

bool Unigram::prepare(std::string &error) {
  std::span<const uint32_t> sorted = image.sortedIds();
  if (image.scores().empty()) {
    error = "the serialised tokenizer has no scores";
    return false;
  }
  uint32_t at = 0;
  for (int byte = 0; byte < 256; ++byte) {
    while (at < sorted.size() && (image.text(sorted[at]).empty() || uint8_t(image.text(sorted[at])[0]) < byte))
      ++at;
    firstByte[byte] = at;
  }
  firstByte[256] = uint32_t(sorted.size());
  return true;
}

/// Calls visit(id, bytes) for every token that `text` (not empty) begins with, shortest first.
template <typename Visit>
void Unigram::forEachPrefix(std::string_view text, Visit visit) const {
  std::span<const uint32_t> sorted = image.sortedIds();
  uint8_t first = text[0];
  auto low = sorted.begin() + firstByte[first], high = sorted.begin() + firstByte[first + 1];
  for (size_t depth = 1; low != high; ++depth) {
    // [low, high): tokens that share their first `depth` bytes with the text; those of that length come first.
    while (low != high && image.text(*low).size() == depth)
      visit(*low++, depth);
    if (depth == text.size() || low == high)
      return;
    uint8_t wanted = text[depth];
    auto byteAt = [&](uint32_t id) { return uint8_t(image.text(id)[depth]); };
    low = std::partition_point(low, high, [&](uint32_t id) { return byteAt(id) < wanted; });
    high = std::partition_point(low, high, [&](uint32_t id) { return byteAt(id) == wanted; });
  }
}

bool Unigram::findBestPath(std::string_view word, std::vector<ModelWorkspace::Best> &best) const {
  best.assign(word.size() + 1, {0, -1, -1});
  double unknownScore = minimalScore - 10.0;
  for (size_t start = 0; start < word.size();) {
    double here = best[start].score;
    size_t bytes = std::min(characterBytes(uint8_t(word[start])), word.size() - start);
    bool coversCharacter = false;
    auto offer = [&](size_t end, double score, int32_t id) {
      if (best[end].start < 0 || score > best[end].score)
        best[end] = {score, int32_t(start), id};
    };
    forEachPrefix(word.substr(start), [&](uint32_t id, size_t length) {
      offer(start + length, image.scores()[id] + here, int32_t(id));
      coversCharacter |= length == bytes;
    });
    if (!coversCharacter) {
      if (unknown < 0)
        return false;
      offer(start + bytes, unknownScore + here, unknown);
    }
    start += bytes;
  }
  return true;
}

bool Unigram::appendPiece(std::string_view piece, std::vector<int32_t> &ids) const {
  int32_t id = image.find(piece);
  if (id < 0 && (flags & modelByteFallback) && appendBytes(piece, ids))
    return true;
  if (id < 0 && unknown < 0)
    return false;
  ids.push_back(id >= 0 ? id : unknown);
  return true;
}

bool Unigram::encodeWord(std::string_view word, ModelWorkspace &work, std::vector<int32_t> &ids) const {
  std::vector<ModelWorkspace::Best> &best = work.best;
  if (!findBestPath(word, best))
    return false;
  // Back from the end; the pieces' beginnings replace the scores' slots in order, then come out forwards.
  std::vector<std::pair<size_t, size_t>> pieces;
  bool lastUnknown = false;
  for (size_t end = word.size(); end > 0;) {
    // A damaged vocabulary (tokens that end inside a character) can leave a byte unreached.
    if (best[end].start < 0 || size_t(best[end].start) >= end)
      return false;
    size_t start = size_t(best[end].start);
    bool isUnknown = (flags & modelFuseUnknown) && unknown >= 0 && best[end].id == unknown;
    if (isUnknown && lastUnknown)
      pieces.back().first = start;
    else
      pieces.push_back({start, end});
    lastUnknown = isUnknown;
    end = start;
  }
  for (size_t i = pieces.size(); i-- > 0;)
    if (!appendPiece(word.substr(pieces[i].first, pieces[i].second - pieces[i].first), ids))
      return false;
  return true;
}

} // namespace

std::unique_ptr<Model> createUnigram(const Image &image) { return std::make_unique<Unigram>(image); }

} // namespace mcc::tokenizer
