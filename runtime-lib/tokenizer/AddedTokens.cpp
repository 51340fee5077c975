// Matching of added tokens, in the two ways that the references have.
//
// Hugging Face: one pass, at every position the longest token; a match that fails its word condition still hides what it
// covers. llama.cpp: token by token, longest first, each in the text that the longer ones left. For that, one pass
// first finds the few tokens that occur at all.
#include "runtime-lib/tokenizer/AddedTokens.h"

#include "runtime-lib/tokenizer/Unicode.h"
#include "runtime-lib/tokenizer/Utf8.h"

#include <algorithm>

namespace mcc::tokenizer {

bool AddedTokens::read(SettingsReader &settings, const Image &image, AddedMatching how, std::string &error) {
  matching = how;
  for (uint32_t left = settings.readCount(); left && settings.ok(); --left) {
    Token token;
    token.id = int32_t(settings.readWord());
    token.flags = settings.readByte();
    token.text = settings.readText();
    if (!settings.ok())
      break;
    if (uint32_t(token.id) >= image.tokenCount() || token.text.empty()) {
      error = "the serialised tokenizer adds token " + std::to_string(uint32_t(token.id)) + " of " +
              std::to_string(image.tokenCount());
      return false;
    }
    sets[(token.flags & addedNormalized) != 0].tokens.push_back(token);
  }
  for (Set &set : sets)
    set.index();
  return true;
}

void AddedTokens::Set::index() {
  for (uint32_t i = 0; i < tokens.size(); ++i)
    tokens[i].position = i;
  std::sort(tokens.begin(), tokens.end(), [](const Token &a, const Token &b) {
    int order = a.text.compare(b.text);
    return order ? order < 0 : a.position < b.position;
  });
  // Of two tokens with one text the first wins.
  auto sameText = [](const Token &a, const Token &b) { return a.text == b.text; };
  tokens.erase(std::unique(tokens.begin(), tokens.end(), sameText), tokens.end());
  uint32_t at = 0;
  for (int byte = 0; byte < 256; ++byte) {
    while (at < tokens.size() && uint8_t(tokens[at].text[0]) < byte)
      ++at;
    firstByte[byte] = at;
  }
  firstByte[256] = uint32_t(tokens.size());
}

template <typename Visit>
void AddedTokens::Set::forEachPrefix(std::string_view text, Visit visit) const {
  uint8_t first = text[0];
  auto low = tokens.begin() + firstByte[first], high = tokens.begin() + firstByte[first + 1];
  for (size_t depth = 1; low != high; ++depth) {
    if (low->text.size() == depth)
      visit(*low++);
    if (depth == text.size() || low == high)
      return;
    uint8_t wanted = text[depth];
    low = std::partition_point(low, high, [&](const Token &t) { return uint8_t(t.text[depth]) < wanted; });
    high = std::partition_point(low, high, [&](const Token &t) { return uint8_t(t.text[depth]) == wanted; });
  }
}

/// Returns the first position at or behind `at` where a token can begin, or the size of the text.
size_t AddedTokens::Set::skipTo(std::string_view text, size_t at) const {
  while (at < text.size() && firstByte[uint8_t(text[at])] == firstByte[uint8_t(text[at]) + 1])
    ++at;
  return at;
}

void AddedTokens::divide(std::string_view text, bool normalized, std::vector<Segment> &segments) const {
  segments.clear();
  const Set &set = sets[normalized];
  if (text.empty())
    return;
  if (set.tokens.empty())
    segments.push_back({0, text.size(), -1});
  else if (matching == AddedMatching::LeftmostLongest)
    divideLeftmost(text, set, segments);
  else
    divideLongest(text, set, segments);
}

static bool isBetweenWords(std::string_view text, size_t begin, size_t end) {
  size_t before = begin, after = end;
  if (begin > 0 && isWordCharacter(nextCharacter(text, before = previousCharacter(text, begin))))
    return false;
  return end == text.size() || !isWordCharacter(nextCharacter(text, after));
}

static size_t skipSpaceBack(std::string_view text, size_t at) {
  while (at > 0) {
    size_t before = previousCharacter(text, at), next = before;
    if (!isWhiteSpace(nextCharacter(text, next)))
      break;
    at = before;
  }
  return at;
}

static size_t skipSpace(std::string_view text, size_t at) {
  while (at < text.size()) {
    size_t next = at;
    if (!isWhiteSpace(nextCharacter(text, next)))
      break;
    at = next;
  }
  return at;
}

void AddedTokens::divideLeftmost(std::string_view text, const Set &set, std::vector<Segment> &segments) const {
  size_t done = 0;
  for (size_t at = 0; (at = set.skipTo(text, at)) < text.size();) {
    const Token *token = nullptr;
    set.forEachPrefix(text.substr(at), [&](const Token &found) { token = &found; });
    if (!token) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + token->text.size();
    at = end;
    if ((token->flags & addedSingleWord) && !isBetweenWords(text, begin, end))
      continue;
    if (token->flags & addedStripLeft)
      begin = std::max(skipSpaceBack(text, begin), done);
    if (token->flags & addedStripRight)
      end = skipSpace(text, end);
    if (done < begin)
      segments.push_back({done, begin, -1});
    segments.push_back({begin, end, token->id});
    done = end;
  }
  if (done < text.size())
    segments.push_back({done, text.size(), -1});
}

void AddedTokens::divideLongest(std::string_view text, const Set &set, std::vector<Segment> &segments) const {
  std::vector<const Token *> occurring;
  std::vector<bool> seen(set.tokens.size());
  for (size_t at = 0; (at = set.skipTo(text, at)) < text.size(); ++at)
    set.forEachPrefix(text.substr(at), [&](const Token &token) {
      size_t index = size_t(&token - set.tokens.data());
      if (!seen[index])
        occurring.push_back(&token);
      seen[index] = true;
    });
  std::sort(occurring.begin(), occurring.end(), [](const Token *a, const Token *b) {
    return a->text.size() != b->text.size() ? a->text.size() > b->text.size() : a->text < b->text;
  });
  segments.push_back({0, text.size(), -1});
  std::vector<Segment> next;
  for (const Token *token : occurring) {
    next.clear();
    for (const Segment &segment : segments) {
      if (segment.token >= 0) {
        next.push_back(segment);
        continue;
      }
      std::string_view part = text.substr(0, segment.end);
      size_t done = segment.begin;
      for (size_t found; (found = part.find(token->text, done)) != std::string_view::npos;) {
        size_t begin = found, end = found + token->text.size();
        if (token->flags & addedStripLeft)
          begin = std::max(skipSpaceBack(text, begin), done);
        if (done < begin)
          next.push_back({done, begin, -1});
        next.push_back({found, end, token->id});
        done = token->flags & addedStripRight ? std::min(skipSpace(text, end), segment.end) : end;
      }
      if (done < segment.end)
        next.push_back({done, segment.end, -1});
    }
    segments.swap(next);
  }
}

} // namespace mcc::tokenizer
