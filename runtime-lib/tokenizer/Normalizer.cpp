// Normalizer steps as the Hugging Face library defines them.
//
// Every step takes UTF-8 and leaves UTF-8. The precompiled map of sentencepiece models is a double-array trie from
// byte strings to replacement texts; it is asked grapheme by grapheme, then character by character, and the shortest
// prefix wins: odd, but what models were trained with.
#include "runtime-lib/tokenizer/Normalizer.h"

#include "runtime-lib/tokenizer/Unicode.h"
#include "runtime-lib/tokenizer/Utf8.h"

#include <utf8proc.h>

namespace mcc::tokenizer {

bool Normalizer::read(SettingsReader &settings, const Image &image, std::string &error) {
  units = image.charsmapUnits();
  mapped = image.charsmapTexts();
  for (uint32_t left = settings.readCount(); left && settings.ok(); --left) {
    Step step{settings.readEnum(NormalizerKind::Bert), {}, {}, {}, nullptr};
    switch (step.kind) {
    case NormalizerKind::ReplaceText:
    case NormalizerKind::ReplaceRegex:
      step.pattern = settings.readText();
      step.content = settings.readText();
      break;
    case NormalizerKind::Prepend:
      step.content = settings.readText();
      break;
    case NormalizerKind::Strip:
      step.options[0] = settings.readByte();
      step.options[1] = settings.readByte();
      break;
    case NormalizerKind::Bert:
      for (bool &option : step.options)
        option = settings.readByte();
      break;
    default:
      break;
    }
    if (step.kind == NormalizerKind::ReplaceRegex && !(step.regex = Regex::compile(step.pattern, error)))
      return false;
    if (step.kind == NormalizerKind::ReplaceText && step.pattern.empty()) {
      error = "the serialised tokenizer replaces an empty text";
      return false;
    }
    steps.push_back(std::move(step));
  }
  return true;
}

bool Normalizer::run(std::string &text, bool &keepsStart) const {
  for (const Step &step : steps) {
    size_t before = text.size();
    std::string first = text.substr(0, 4);
    if (!apply(step, text))
      return false;
    // Steps that can remove the text's first character.
    bool removes = step.kind == NormalizerKind::Strip || step.kind == NormalizerKind::StripAccents ||
                   step.kind == NormalizerKind::Nmt || step.kind == NormalizerKind::Bert;
    if (removes && text.size() < before && removesFirst(step, first))
      keepsStart = false;
  }
  return true;
}

bool Normalizer::run(std::string &text) const {
  bool keepsStart = true;
  return run(text, keepsStart);
}

void replaceText(std::string &text, std::string_view pattern, std::string_view content) {
  size_t found = text.find(pattern);
  if (found == std::string::npos)
    return;
  std::string out;
  out.reserve(text.size());
  size_t done = 0;
  for (; found != std::string::npos; found = text.find(pattern, done)) {
    out.append(text, done, found - done);
    out += content;
    done = found + pattern.size();
  }
  out.append(text, done);
  text = std::move(out);
}

bool replaceMatches(std::string &text, const Regex &regex, std::string_view content) {
  std::string out;
  Matcher matcher(regex);
  bool done = forEachMatch(matcher, text, [&](size_t begin, size_t end, bool isMatch) {
    out += isMatch ? content : std::string_view(text).substr(begin, end - begin);
  });
  text = std::move(out);
  return done;
}

bool Normalizer::removesFirst(const Step &step, std::string_view text) const {
  if (text.empty())
    return false;
  // The first character, and a letter for what follows it.
  size_t at = 0;
  nextCharacter(text, at);
  std::string probe = std::string(text.substr(0, at)) + "x";
  return apply(step, probe) && probe == "x";
}

/// Rewrites `text` character by character: `rewrite` appends what one becomes.
template <typename Rewrite>
static void rewriteCharacters(std::string &text, Rewrite rewrite) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    char32_t character = nextCharacter(text, at);
    rewrite(out, character);
  }
  text = std::move(out);
}

static void stripWhiteSpace(std::string &text, bool left, bool right) {
  size_t begin = 0, end = text.size();
  while (left && begin < end) {
    size_t next = begin;
    if (!isWhiteSpace(nextCharacter(text, next)))
      break;
    begin = next;
  }
  while (right && end > begin) {
    size_t last = previousCharacter(text, end), next = last;
    if (!isWhiteSpace(nextCharacter(text, next)))
      break;
    end = last;
  }
  text = text.substr(begin, end - begin);
}

static void appendNmt(std::string &out, char32_t c) {
  bool dropped = (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
  bool space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
               c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
  if (!dropped)
    appendCharacter(out, space ? U' ' : c);
}

bool Normalizer::apply(const Step &step, std::string &text) const {
  switch (step.kind) {
  case NormalizerKind::Nfc:
  case NormalizerKind::Nfd:
  case NormalizerKind::Nfkc:
  case NormalizerKind::Nfkd:
    text = normalizeUnicode(text, NormalForm(int(step.kind) - int(NormalizerKind::Nfc)));
    return true;
  case NormalizerKind::Lowercase:
    rewriteCharacters(text, appendLowercase);
    return true;
  case NormalizerKind::Strip:
    stripWhiteSpace(text, step.options[0], step.options[1]);
    return true;
  case NormalizerKind::StripAccents:
    rewriteCharacters(text, [](std::string &out, char32_t c) {
      if (!isMark(c))
        appendCharacter(out, c);
    });
    return true;
  case NormalizerKind::ReplaceText:
    replaceText(text, step.pattern, step.content);
    return true;
  case NormalizerKind::ReplaceRegex:
    return replaceMatches(text, *step.regex, step.content);
  case NormalizerKind::Prepend:
    if (!text.empty())
      text.insert(0, step.content);
    return true;
  case NormalizerKind::ByteLevel: {
    std::string out;
    byteAlphabet().append(out, text);
    text = std::move(out);
    return true;
  }
  case NormalizerKind::Charsmap:
    applyCharsmap(text);
    return true;
  case NormalizerKind::Nmt:
    rewriteCharacters(text, appendNmt);
    return true;
  case NormalizerKind::Bert:
    applyBert(step, text);
    return true;
  }
  return true;
}

static bool isChinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

void Normalizer::applyBert(const Step &step, std::string &text) const {
  if (step.options[0])
    rewriteCharacters(text, [](std::string &out, char32_t c) {
      bool space = isWhiteSpace(c) && c != 0x0B && c != 0x0C;
      if (c == 0 || c == 0xFFFD || (isOther(c) && c != '\t' && c != '\n' && c != '\r'))
        return;
      appendCharacter(out, space ? U' ' : c);
    });
  if (step.options[1])
    rewriteCharacters(text, [](std::string &out, char32_t c) {
      bool chinese = isChinese(c);
      if (chinese)
        out += ' ';
      appendCharacter(out, c);
      if (chinese)
        out += ' ';
    });
  if (step.options[2]) {
    text = normalizeUnicode(text, NormalForm::Nfd);
    rewriteCharacters(text, [](std::string &out, char32_t c) {
      if (!isNonspacingMark(c))
        appendCharacter(out, c);
    });
  }
  if (step.options[3])
    rewriteCharacters(text, appendLowercase);
}

std::string_view Normalizer::mapPrefix(std::string_view part) const {
  if (units.empty())
    return {};
  // A unit holds its label in the low byte, a leaf mark in bit 8, and the offset to its children above.
  auto childOffset = [](uint32_t unit) { return size_t(unit >> 10) << ((unit & (1u << 9)) >> 6); };
  size_t node = childOffset(units[0]);
  for (char c : part) {
    node ^= uint8_t(c);
    if (c == 0 || node >= units.size() || (units[node] & 0x800000FFu) != uint8_t(c))
      return {};
    uint32_t unit = units[node];
    node ^= childOffset(unit);
    if (!(unit & 0x100))
      continue;
    size_t start = node < units.size() ? units[node] & 0x7FFFFFFFu : mapped.size();
    return start < mapped.size() ? std::string_view(mapped.data() + start) : std::string_view();
  }
  return {};
}

void Normalizer::applyCharsmap(std::string &text) const {
  std::string out;
  out.reserve(text.size());
  auto appendPart = [&](std::string_view part) {
    std::string_view replacement = mapPrefix(part);
    if (!replacement.data())
      return false;
    out += replacement;
    return true;
  };
  for (size_t begin = 0; begin < text.size();) {
    utf8proc_int32_t state = 0;
    size_t end = begin;
    char32_t last = nextCharacter(text, end);
    for (size_t next = end; next < text.size(); end = next) {
      char32_t character = nextCharacter(text, next);
      if (utf8proc_grapheme_break_stateful(utf8proc_int32_t(last), utf8proc_int32_t(character), &state))
        break;
      last = character;
    }
    std::string_view grapheme(text.data() + begin, end - begin);
    begin = end;
    if (grapheme.size() < 6 && appendPart(grapheme))
      continue;
    for (size_t at = 0; at < grapheme.size();) {
      size_t start = at;
      nextCharacter(grapheme, at);
      std::string_view character = grapheme.substr(start, at - start);
      if (!appendPart(character))
        out += character;
    }
  }
  text = std::move(out);
}

} // namespace mcc::tokenizer
