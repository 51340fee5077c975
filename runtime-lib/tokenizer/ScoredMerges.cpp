// Sentencepiece BPE as GGUF stores it: there are no merge rules, any two neighbours whose joined text is a token may
// merge, the pair with the highest score first, leftmost among equals.
//
// A heap of candidates over a linked list of symbols, O(n log n). A candidate is stale when the bytes of its pair have
// changed. What is no token in the end becomes byte tokens.
#include "runtime-lib/tokenizer/Model.h"
#include "runtime-lib/tokenizer/Utf8.h"

#include <algorithm>

namespace mcc::tokenizer {

namespace {

class ScoredMerges final : public Model {
public:
  explicit ScoredMerges(const Image &image) : Model(image) {}

protected:
  bool prepare(std::string &error) override;
  bool encodeWord(std::string_view word, ModelWorkspace &work, std::vector<int32_t> &ids) const override;

private:
  void offer(std::string_view word, ModelWorkspace &work, int32_t left, int32_t right) const;
  bool appendSymbol(std::string_view symbol, std::vector<int32_t> &ids) const;
  size_t longest = 0; ///< bytes of the longest token
};

bool goesLater(const ModelWorkspace::Candidate &a, const ModelWorkspace::Candidate &b) {
  return a.order > b.order || (a.order == b.order && a.left > b.left);
}

bool ScoredMerges::prepare(std::string &error) {
  if (image.scores().empty()) {
    error = "the serialised tokenizer has no scores";
    return false;
  }
  for (uint32_t id = 0; id < image.tokenCount(); ++id) {
    longest = std::max(longest, image.text(id).size());
    if (image.scores()[id] != image.scores()[id]) {
      error = "the serialised tokenizer has the score NaN for token " + std::to_string(id);
      return false;
    }
  }
  return true;
}

void ScoredMerges::offer(std::string_view word, ModelWorkspace &work, int32_t left, int32_t right) const {
  if (left < 0 || right < 0)
    return;
  uint32_t bytes = work.symbols[left].bytes + work.symbols[right].bytes;
  if (bytes > longest)
    return;
  int32_t id = image.find(word.substr(work.symbols[left].begin, bytes));
  if (id < 0)
    return;
  work.heap.push_back({-image.scores()[uint32_t(id)], left, bytes});
  std::push_heap(work.heap.begin(), work.heap.end(), goesLater);
}

bool ScoredMerges::appendSymbol(std::string_view symbol, std::vector<int32_t> &ids) const {
  int32_t id = image.find(symbol);
  if (id >= 0) {
    ids.push_back(id);
    return true;
  }
  for (char c : symbol) {
    int32_t byte = byteTokens[uint8_t(c)];
    if (byte < 0)
      byte = image.find({&c, 1});
    if (byte < 0)
      byte = unknown;
    if (byte < 0)
      return false;
    ids.push_back(byte);
  }
  return true;
}

bool ScoredMerges::encodeWord(std::string_view word, ModelWorkspace &work, std::vector<int32_t> &ids) const {
  std::vector<ModelWorkspace::Symbol> &symbols = work.symbols;
  symbols.clear();
  work.heap.clear();
  for (size_t at = 0; at < word.size();) {
    uint32_t bytes = uint32_t(characterBytes(uint8_t(word[at])));
    int32_t index = int32_t(symbols.size());
    symbols.push_back({0, uint32_t(at), bytes, index - 1, index + 1});
    at += bytes;
  }
  symbols.back().next = -1;
  for (int32_t i = 1; i < int32_t(symbols.size()); ++i)
    offer(word, work, i - 1, i);
  while (!work.heap.empty()) {
    std::pop_heap(work.heap.begin(), work.heap.end(), goesLater);
    ModelWorkspace::Candidate top = work.heap.back();
    work.heap.pop_back();
    ModelWorkspace::Symbol &left = symbols[top.left];
    if (left.bytes == 0 || left.next < 0 || left.bytes + symbols[left.next].bytes != top.result)
      continue;
    ModelWorkspace::Symbol &right = symbols[left.next];
    left.bytes += right.bytes;
    right.bytes = 0;
    left.next = right.next;
    if (left.next >= 0)
      symbols[left.next].previous = top.left;
    offer(word, work, left.previous, top.left);
    offer(word, work, top.left, left.next);
  }
  for (const ModelWorkspace::Symbol &symbol : symbols)
    if (symbol.bytes && !appendSymbol(word.substr(symbol.begin, symbol.bytes), ids))
      return false;
  return true;
}

} // namespace

std::unique_ptr<Model> createScoredMerges(const Image &image) { return std::make_unique<ScoredMerges>(image); }

} // namespace mcc::tokenizer
