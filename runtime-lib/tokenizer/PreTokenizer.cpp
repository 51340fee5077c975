// Pre-tokenizer steps as the Hugging Face library defines them.
//
// A piece runs depth first through the steps: each cuts or rewrites it and passes the parts on, so that memory stays
// at one buffer per step however long the text. A split has two parts: dividing the text into matches and what lies
// between, and the behaviour, which joins neighbours. Isolated and Removed need no neighbour and are not collected.
#include "runtime-lib/tokenizer/PreTokenizer.h"

#include "runtime-lib/tokenizer/Unicode.h"
#include "runtime-lib/tokenizer/Utf8.h"

#include <algorithm>
#include <optional>

namespace mcc::tokenizer {

namespace {

/// A part of a piece.
struct Part {
  size_t begin, end;
  bool isMatch;
};

} // namespace

struct PreTokenizer::Run::Workspace {
  std::optional<Matcher> matcher;
  std::string rewritten;
  std::vector<Part> parts;
};

bool PreTokenizer::readStep(SettingsReader &settings, std::string &error) {
  Step step;
  step.kind = settings.readEnum(PreTokenizerKind::FixedLength);
  switch (step.kind) {
  case PreTokenizerKind::SplitRegex:
  case PreTokenizerKind::SplitText:
    step.behavior = settings.readEnum(SplitBehavior::Contiguous);
    step.flag = settings.readByte();
    step.text = settings.readText();
    break;
  case PreTokenizerKind::Punctuation:
    step.behavior = settings.readEnum(SplitBehavior::Contiguous);
    break;
  case PreTokenizerKind::Digits:
    step.flag = settings.readByte();
    step.behavior = step.flag ? SplitBehavior::Isolated : SplitBehavior::Contiguous;
    break;
  case PreTokenizerKind::WhitespaceSplit:
    step.behavior = SplitBehavior::Removed;
    break;
  case PreTokenizerKind::Metaspace:
    step.scheme = settings.readEnum(PrependScheme::Always);
    step.flag = settings.readByte();
    step.text = settings.readText();
    step.behavior = SplitBehavior::MergedWithNext;
    break;
  case PreTokenizerKind::FixedLength:
    step.length = settings.readWord();
    break;
  default:
    break;
  }
  bool needsText = step.kind == PreTokenizerKind::SplitText || step.kind == PreTokenizerKind::Metaspace;
  if (settings.ok() && ((needsText && step.text.empty()) ||
                        (step.kind == PreTokenizerKind::FixedLength && step.length == 0))) {
    error = "the serialised tokenizer has an empty splitting text";
    return false;
  }
  if (step.kind == PreTokenizerKind::SplitRegex && !(step.regex = Regex::compile(step.text, error)))
    return false;
  steps.push_back(std::move(step));
  return true;
}

bool PreTokenizer::read(SettingsReader &settings, std::string &error) {
  for (uint32_t left = settings.readCount(); left && settings.ok(); --left)
    if (!readStep(settings, error))
      return false;
  // Depth first: each step is a few stack frames.
  if (steps.size() > 64) {
    error = "the serialised tokenizer has " + std::to_string(steps.size()) + " pre-tokenizers; at most 64 are run";
    return false;
  }
  bytesLeft = !steps.empty() && steps.back().kind == PreTokenizerKind::ByteLevel;
  if (bytesLeft)
    steps.pop_back();
  return true;
}

/// Divides a text by a property of characters: each character that has it is a match of its own.
template <typename Property, typename Visit>
static bool divideByCharacter(std::string_view text, Property property, Visit visit) {
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    size_t begin = at;
    if (!property(nextCharacter(text, at)))
      continue;
    if (done < begin)
      visit(done, begin, false);
    visit(begin, at, true);
    done = at;
  }
  if (done < text.size())
    visit(done, text.size(), false);
  return true;
}

template <typename Visit>
static bool divideByText(std::string_view text, std::string_view pattern, Visit visit) {
  size_t done = 0;
  for (size_t found; (found = text.find(pattern, done)) != std::string_view::npos; done = found + pattern.size()) {
    if (done < found)
      visit(done, found, false);
    visit(found, found + pattern.size(), true);
  }
  if (done < text.size())
    visit(done, text.size(), false);
  return true;
}

template <typename Visit>
static bool divideByLength(std::string_view text, uint32_t characters, Visit visit) {
  for (size_t begin = 0, at = 0; begin < text.size(); begin = at) {
    for (uint32_t i = 0; i < characters && at < text.size(); ++i)
      nextCharacter(text, at);
    visit(begin, at, true);
  }
  return true;
}

template <typename Visit>
bool PreTokenizer::divide(const Step &step, Matcher *matcher, std::string_view text, Visit visit) {
  switch (step.kind) {
  case PreTokenizerKind::SplitRegex:
    return forEachMatch(*matcher, text, visit);
  case PreTokenizerKind::SplitText:
  case PreTokenizerKind::Metaspace:
    return divideByText(text, step.text, visit);
  case PreTokenizerKind::Digits:
    return divideByCharacter(text, isNumeric, visit);
  case PreTokenizerKind::WhitespaceSplit:
    return divideByCharacter(text, isWhiteSpace, visit);
  case PreTokenizerKind::FixedLength:
    return divideByLength(text, step.length, visit);
  default:
    return divideByCharacter(text, isPunctuation, visit);
  }
}

/// Joins neighbouring parts as `behavior` says.
static void joinParts(std::vector<Part> &parts, SplitBehavior behavior) {
  bool backwards = behavior == SplitBehavior::MergedWithNext;
  if (backwards)
    std::reverse(parts.begin(), parts.end());
  std::vector<Part> joined;
  bool previous = false;
  for (const Part &part : parts) {
    bool joins = behavior == SplitBehavior::Contiguous ? part.isMatch == previous : part.isMatch && !previous;
    previous = part.isMatch;
    if (!joins || joined.empty())
      joined.push_back(part);
    else if (backwards)
      joined.back().begin = part.begin;
    else
      joined.back().end = part.end;
  }
  if (backwards)
    std::reverse(joined.begin(), joined.end());
  parts = std::move(joined);
}

PreTokenizer::Run::Run(const PreTokenizer &owner, Sink sink)
    : owner(owner), sink(std::move(sink)), spaces(owner.steps.size()) {
  for (size_t i = 0; i < spaces.size(); ++i)
    if (owner.steps[i].regex)
      spaces[i].matcher.emplace(*owner.steps[i].regex);
}

PreTokenizer::Run::~Run() = default;

bool PreTokenizer::Run::cut(std::string_view text, bool atStart) { return apply(0, text, atStart); }

bool PreTokenizer::Run::forward(size_t index, std::string_view text, size_t begin, size_t end, bool atStart) {
  return begin == end || apply(index + 1, text.substr(begin, end - begin), atStart && begin == 0);
}

bool PreTokenizer::Run::split(size_t index, std::string_view text, bool atStart) {
  const Step &step = owner.steps[index];
  Workspace &space = spaces[index];
  Matcher *matcher = space.matcher ? &*space.matcher : nullptr;
  bool inverted = step.flag && (step.kind == PreTokenizerKind::SplitRegex || step.kind == PreTokenizerKind::SplitText);
  bool ok = true;
  if (step.behavior == SplitBehavior::Isolated || step.behavior == SplitBehavior::Removed) {
    bool removing = step.behavior == SplitBehavior::Removed;
    bool divided = divide(step, matcher, text, [&](size_t begin, size_t end, bool isMatch) {
      if (ok && !(removing && isMatch != inverted))
        ok = forward(index, text, begin, end, atStart);
    });
    return divided && ok;
  }
  space.parts.clear();
  if (!divide(step, matcher, text, [&](size_t begin, size_t end, bool isMatch) {
        space.parts.push_back({begin, end, isMatch != inverted});
      }))
    return false;
  joinParts(space.parts, step.behavior);
  for (const Part &part : space.parts)
    if (!forward(index, text, part.begin, part.end, atStart))
      return false;
  return true;
}

bool PreTokenizer::Run::apply(size_t index, std::string_view text, bool atStart) {
  if (index == owner.steps.size()) {
    sink(text);
    return true;
  }
  const Step &step = owner.steps[index];
  std::string &rewritten = spaces[index].rewritten;
  switch (step.kind) {
  case PreTokenizerKind::PrependSpace:
    if (text.starts_with(' '))
      return apply(index + 1, text, atStart);
    rewritten.assign(1, ' ').append(text);
    return apply(index + 1, rewritten, atStart);
  case PreTokenizerKind::ByteLevel:
    rewritten.clear();
    byteAlphabet().append(rewritten, text);
    return apply(index + 1, rewritten, atStart);
  case PreTokenizerKind::Metaspace: {
    std::string_view marker = step.text;
    rewritten.clear();
    divideByText(text, " ", [&](size_t begin, size_t end, bool isSpace) {
      rewritten += isSpace ? marker : text.substr(begin, end - begin);
    });
    bool prepends = step.scheme == PrependScheme::Always || (step.scheme == PrependScheme::First && atStart);
    if (prepends && !rewritten.starts_with(marker))
      rewritten.insert(0, marker);
    return step.flag ? split(index, rewritten, atStart) : apply(index + 1, rewritten, atStart);
  }
  default:
    return split(index, text, atStart);
  }
}

} // namespace mcc::tokenizer
