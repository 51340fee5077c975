// Byte-pair encoding: the adjacent pair whose merge has the lowest rank, leftmost first, until no pair merges.
//
// Short words scan all pairs for the lowest rank; long ones keep a heap of candidates and a linked list of symbols, so
// that a word of n characters costs O(n log n). A candidate is stale when its pair has changed since; that is seen by
// looking the pair up again. Both give the same result: a pair at one place only ever grows, so that a stale candidate
// cannot name the same merged token as a fresh one.
#include "runtime-lib/tokenizer/Model.h"
#include "runtime-lib/tokenizer/Unicode.h"
#include "runtime-lib/tokenizer/Utf8.h"

#include <algorithm>

namespace mcc::tokenizer {

namespace {

constexpr size_t maxScannedSymbols = 40;

class Bpe final : public Model {
public:
  explicit Bpe(const Image &image) : Model(image) {}

protected:
  bool prepare(std::string &error) override;
  bool mapsBytes() const override { return true; }
  bool encodeWord(std::string_view word, ModelWorkspace &work, std::vector<int32_t> &ids) const override;

private:
  void collectSymbols(std::string_view word, ModelWorkspace &work) const;
  bool encodeBytes(std::string_view word, ModelWorkspace &work, std::vector<int32_t> &ids) const;
  size_t mergeScanning(uint32_t *symbols, size_t count) const;
  void mergeHeap(ModelWorkspace &work) const;
  void pushCandidate(ModelWorkspace &work, int32_t left) const;
  void appendSymbols(const ModelWorkspace &work, std::vector<int32_t> &ids) const;
  void appendSymbol(uint32_t id, std::vector<int32_t> &ids) const;
  void addSymbol(ModelWorkspace &work, int32_t id, uint32_t bytes) const {
    int32_t index = int32_t(work.symbols.size());
    work.symbols.push_back({uint32_t(id), 0, bytes, index - 1, index + 1});
  }

  std::array<int32_t, 256> alphabetTokens; ///< of each byte's printable character
  bool alphabetComplete = true;
};

bool Bpe::prepare(std::string &) {
  for (int byte = 0; byte < 256; ++byte) {
    alphabetTokens[byte] = image.find(byteAlphabet().text(uint8_t(byte)));
    alphabetComplete &= alphabetTokens[byte] >= 0;
  }
  alphabetComplete &= continuingPrefix.empty() && endSuffix.empty();
  return true;
}

/// Fills work.symbols with the first symbols of `word`: its characters, their bytes, or the unknown token.
void Bpe::collectSymbols(std::string_view word, ModelWorkspace &work) const {
  work.symbols.clear();
  // The bytes of the unknown token that waits to be added; a character with byte tokens does not end the wait.
  uint32_t waiting = 0;
  std::string affixed;
  std::vector<int32_t> bytes;
  for (size_t at = 0; at < word.size();) {
    size_t begin = at;
    nextCharacter(word, at);
    std::string_view symbol = word.substr(begin, at - begin);
    uint32_t length = uint32_t(symbol.size());
    bool hasPrefix = begin > 0 && !continuingPrefix.empty(), hasSuffix = at == word.size() && !endSuffix.empty();
    if (hasPrefix || hasSuffix) {
      affixed.assign(hasPrefix ? continuingPrefix : std::string_view()).append(symbol);
      affixed += hasSuffix ? endSuffix : std::string_view();
      symbol = affixed;
    }
    int32_t id = image.find(symbol);
    if (id >= 0) {
      if (waiting)
        addSymbol(work, unknown, waiting);
      waiting = 0;
      addSymbol(work, id, length);
      continue;
    }
    bytes.clear();
    if ((flags & modelByteFallback) && appendBytes(symbol, bytes)) {
      for (int32_t byte : bytes)
        addSymbol(work, byte, 1);
      continue;
    }
    if (unknown < 0)
      continue;
    if (waiting && !(flags & modelFuseUnknown)) {
      addSymbol(work, unknown, waiting);
      waiting = 0;
    }
    waiting += length;
  }
  if (waiting)
    addSymbol(work, unknown, waiting);
}

/// Merges in place; returns how many symbols are left.
size_t Bpe::mergeScanning(uint32_t *symbols, size_t count) const {
  const MergeSlot *merges[maxScannedSymbols];
  for (size_t i = 0; i + 1 < count; ++i)
    merges[i] = image.findMerge(symbols[i], symbols[i + 1]);
  while (count > 1) {
    size_t best = count;
    uint32_t rank = UINT32_MAX;
    for (size_t i = 0; i + 1 < count; ++i)
      if (merges[i] && merges[i]->rank < rank) {
        rank = merges[i]->rank;
        best = i;
      }
    if (best == count)
      break;
    symbols[best] = merges[best]->result;
    --count;
    for (size_t i = best + 1; i < count; ++i) {
      symbols[i] = symbols[i + 1];
      merges[i - 1] = merges[i];
    }
    if (best + 1 < count)
      merges[best] = image.findMerge(symbols[best], symbols[best + 1]);
    if (best > 0)
      merges[best - 1] = image.findMerge(symbols[best - 1], symbols[best]);
  }
  return count;
}

static bool goesLater(const ModelWorkspace::Candidate &a, const ModelWorkspace::Candidate &b) {
  return a.order > b.order || (a.order == b.order && a.left > b.left);
}

void Bpe::pushCandidate(ModelWorkspace &work, int32_t left) const {
  const ModelWorkspace::Symbol &symbol = work.symbols[left];
  if (const MergeSlot *merge = image.findMerge(symbol.id, work.symbols[symbol.next].id)) {
    work.heap.push_back({double(merge->rank), left, merge->result});
    std::push_heap(work.heap.begin(), work.heap.end(), goesLater);
  }
}

/// Merges work.symbols, whose last `next` is the number of symbols; symbols merged away get bytes = 0.
void Bpe::mergeHeap(ModelWorkspace &work) const {
  std::vector<ModelWorkspace::Symbol> &symbols = work.symbols;
  int32_t count = int32_t(symbols.size());
  work.heap.clear();
  for (int32_t i = 0; i + 1 < count; ++i)
    if (const MergeSlot *merge = image.findMerge(symbols[i].id, symbols[i + 1].id))
      work.heap.push_back({double(merge->rank), i, merge->result});
  std::make_heap(work.heap.begin(), work.heap.end(), goesLater);
  while (!work.heap.empty()) {
    std::pop_heap(work.heap.begin(), work.heap.end(), goesLater);
    ModelWorkspace::Candidate top = work.heap.back();
    work.heap.pop_back();
    ModelWorkspace::Symbol &left = symbols[top.left];
    if (left.bytes == 0 || left.next >= count)
      continue;
    ModelWorkspace::Symbol &right = symbols[left.next];
    const MergeSlot *merge = image.findMerge(left.id, right.id);
    if (!merge || merge->result != top.result)
      continue;
    left.id = top.result;
    left.bytes += right.bytes;
    right.bytes = 0;
    left.next = right.next;
    if (left.next < count) {
      symbols[left.next].previous = top.left;
      pushCandidate(work, top.left);
    }
    if (left.previous >= 0)
      pushCandidate(work, left.previous);
  }
}

void Bpe::appendSymbol(uint32_t id, std::vector<int32_t> &ids) const {
  if (!(flags & modelSplitUnknown) || !(image.flags(id) & tokenAbsent)) {
    ids.push_back(int32_t(id));
    return;
  }
  // A piece that merges make but no token has: the tokens of its ASCII characters, as llama.cpp does.
  for (const char &c : image.text(id)) {
    int32_t character = uint8_t(c) < 0x80 ? image.find({&c, 1}) : -1;
    if (character >= 0 && !(image.flags(uint32_t(character)) & tokenAbsent))
      ids.push_back(character);
  }
}

void Bpe::appendSymbols(const ModelWorkspace &work, std::vector<int32_t> &ids) const {
  for (const ModelWorkspace::Symbol &symbol : work.symbols)
    if (symbol.bytes)
      appendSymbol(symbol.id, ids);
}

/// Encodes a word of bytes that all have a token.
bool Bpe::encodeBytes(std::string_view word, ModelWorkspace &work, std::vector<int32_t> &ids) const {
  if (word.size() <= maxScannedSymbols) {
    uint32_t symbols[maxScannedSymbols];
    for (size_t i = 0; i < word.size(); ++i)
      symbols[i] = uint32_t(alphabetTokens[uint8_t(word[i])]);
    size_t count = mergeScanning(symbols, word.size());
    for (size_t i = 0; i < count; ++i)
      appendSymbol(symbols[i], ids);
    return true;
  }
  work.symbols.clear();
  for (char c : word)
    addSymbol(work, alphabetTokens[uint8_t(c)], 1);
  mergeHeap(work);
  appendSymbols(work, ids);
  return true;
}

bool Bpe::encodeWord(std::string_view word, ModelWorkspace &work, std::vector<int32_t> &ids) const {
  std::string_view text = word;
  if (pieceIsBytes && (!alphabetComplete || (flags & modelIgnoreMerges))) {
    work.mapped.clear();
    byteAlphabet().append(work.mapped, word);
    text = work.mapped;
  }
  if (flags & modelIgnoreMerges) {
    int32_t id = image.find(text);
    if (id >= 0 && !(image.flags(uint32_t(id)) & tokenAbsent)) {
      ids.push_back(id);
      return true;
    }
  }
  if (pieceIsBytes && alphabetComplete)
    return encodeBytes(word, work, ids);
  collectSymbols(text, work);
  if (work.symbols.size() <= maxScannedSymbols) {
    uint32_t symbols[maxScannedSymbols];
    for (size_t i = 0; i < work.symbols.size(); ++i)
      symbols[i] = work.symbols[i].id;
    size_t count = mergeScanning(symbols, work.symbols.size());
    for (size_t i = 0; i < count; ++i)
      appendSymbol(symbols[i], ids);
    return true;
  }
  mergeHeap(work);
  appendSymbols(work, ids);
  return true;
}

} // namespace

std::unique_ptr<Model> createBpe(const Image &image) { return std::make_unique<Bpe>(image); }

} // namespace mcc::tokenizer
