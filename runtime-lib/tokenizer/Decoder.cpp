// Decoder steps as the Hugging Face library defines them, each written for tokens that arrive one at a time.
//
// The library joins all tokens at once; here every step holds back only what later tokens can still change: a run of
// byte tokens until it ends (one bad byte makes the whole run U+FFFD), the end of a token that may be stripped, the
// beginning of a character. So the concatenation of what comes out is what decoding everything at once gives.
#include "runtime-lib/tokenizer/Decoder.h"

#include "runtime-lib/tokenizer/Normalizer.h"
#include "runtime-lib/tokenizer/Unicode.h"
#include "runtime-lib/tokenizer/Utf8.h"

namespace mcc::tokenizer {

namespace {

/// The last step: text.
class OutputStage final : public DecoderStage {
public:
  explicit OutputStage(std::string &out) : out(out) {}
  void push(std::string_view fragment, bool, uint8_t) override { assembler.push(fragment, out); }
  void finish() override { assembler.finish(out); }

private:
  std::string &out;
  Utf8Assembler assembler;
};

/// A step that has a next one.
class InnerStage : public DecoderStage {
public:
  explicit InnerStage(DecoderStage &next) : next(next) {}
  void finish() override { next.finish(); }

protected:
  DecoderStage &next;
};

/// A step that needs tokens whole.
class TokenStage : public InnerStage {
public:
  using InnerStage::InnerStage;
  void push(std::string_view fragment, bool ends, uint8_t flags) override {
    pending += fragment;
    if (!ends)
      return;
    std::string whole = std::move(pending);
    pending.clear();
    token(whole, flags);
  }

protected:
  virtual void token(std::string &text, uint8_t flags) = 0;

private:
  std::string pending;
};

/// All tokens become one.
class FuseStage final : public InnerStage {
public:
  using InnerStage::InnerStage;
  void push(std::string_view fragment, bool, uint8_t) override { next.push(fragment, false, 0); }
  void finish() override {
    next.push({}, true, 0);
    next.finish();
  }
};

/// Tokens in the byte alphabet become one text.
class ByteLevelStage final : public TokenStage {
public:
  using TokenStage::TokenStage;
  void finish() override {
    std::string text;
    assembler.finish(text);
    next.push(text, true, 0);
    next.finish();
  }

protected:
  void token(std::string &text, uint8_t) override {
    std::string raw, certain;
    for (size_t at = 0; at < text.size();) {
      int byte = byteAlphabet().byte(nextCharacter(text, at));
      // A token with any other character stands for itself.
      if (byte < 0) {
        raw = text;
        break;
      }
      raw += char(byte);
    }
    assembler.push(raw, certain);
    next.push(certain, false, 0);
  }

private:
  Utf8Assembler assembler;
};

int hexDigit(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/// Returns the byte that `token` writes as <0xNN>, or -1.
int byteOfToken(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>')
    return -1;
  int high = token[3] == '+' ? 0 : hexDigit(token[3]), low = hexDigit(token[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/// A run of byte tokens becomes the characters they spell, or one U+FFFD for each where they spell none.
class ByteFallbackStage final : public TokenStage {
public:
  using TokenStage::TokenStage;
  void finish() override {
    flush();
    next.finish();
  }

protected:
  void token(std::string &text, uint8_t) override {
    int byte = byteOfToken(text);
    if (byte >= 0) {
      run += char(byte);
      return;
    }
    flush();
    next.push(text, true, 0);
  }

private:
  void flush() {
    if (isUtf8(run)) {
      if (!run.empty())
        next.push(run, true, 0);
    } else {
      for (size_t i = 0; i < run.size(); ++i)
        next.push(replacementCharacter, true, 0);
    }
    run.clear();
  }
  std::string run;
};

/// Word markers become spaces, those of the first token nothing.
class MetaspaceStage final : public TokenStage {
public:
  MetaspaceStage(DecoderStage &next, std::string_view marker, bool dropsFirst)
      : TokenStage(next), marker(marker), first(dropsFirst) {}

protected:
  void token(std::string &text, uint8_t) override {
    replaceText(text, marker, first ? "" : " ");
    first = false;
    next.push(text, true, 0);
  }

private:
  std::string_view marker;
  bool first;
};

/// Removes up to `start` leading and `stop` trailing repetitions of a character from every token.
class StripStage final : public InnerStage {
public:
  StripStage(DecoderStage &next, std::string_view content, uint32_t start, uint32_t stop)
      : InnerStage(next), content(content), start(start), stop(stop), left(start) {}
  void push(std::string_view fragment, bool ends, uint8_t) override {
    while (left && fragment.starts_with(content)) {
      fragment.remove_prefix(content.size());
      --left;
    }
    if (!fragment.empty())
      left = 0;
    held += fragment;
    // What can still be stripped at the end: the last repetitions, at most `stop`.
    size_t keep = held.size();
    for (uint32_t i = 0; i < stop && keep >= content.size() && held.compare(keep - content.size(), content.size(), content) == 0; ++i)
      keep -= content.size();
    if (ends) {
      held.resize(keep);
      next.push(held, true, 0);
      held.clear();
      left = start;
      return;
    }
    next.push(std::string_view(held).substr(0, keep), false, 0);
    held.erase(0, keep);
  }

private:
  std::string_view content;
  uint32_t start, stop, left;
  std::string held;
};

/// Replaces a text or a pattern in every token.
class ReplaceStage final : public TokenStage {
public:
  ReplaceStage(DecoderStage &next, std::string_view pattern, const Regex *regex, std::string_view content)
      : TokenStage(next), pattern(pattern), regex(regex), content(content) {}

protected:
  void token(std::string &text, uint8_t) override {
    if (regex)
      replaceMatches(text, *regex, content);
    else
      replaceText(text, pattern, content);
    next.push(text, true, 0);
  }

private:
  std::string_view pattern;
  const Regex *regex;
  std::string_view content;
};

/// Joins word pieces: a space before every token but the first and those with the continuation prefix.
class WordPieceStage final : public TokenStage {
public:
  WordPieceStage(DecoderStage &next, std::string_view prefix, bool cleanUp)
      : TokenStage(next), prefix(prefix), cleanUp(cleanUp) {}

protected:
  void token(std::string &text, uint8_t) override {
    if (!first) {
      if (!prefix.empty() && text.starts_with(prefix))
        text.erase(0, prefix.size());
      else
        text.insert(0, " ");
    }
    first = false;
    constexpr std::pair<const char *, const char *> contractions[] = {
        {" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"},
        {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    if (cleanUp)
      for (auto [from, to] : contractions)
        replaceText(text, from, to);
    next.push(text, true, 0);
  }

private:
  std::string_view prefix;
  bool cleanUp, first = true;
};

/// The suffix that ends a word becomes a space, in the last token nothing.
class WordSuffixStage final : public TokenStage {
public:
  WordSuffixStage(DecoderStage &next, std::string_view suffix) : TokenStage(next), suffix(suffix) {}
  void finish() override {
    if (any)
      emit("");
    next.finish();
  }

protected:
  void token(std::string &text, uint8_t) override {
    if (any)
      emit(" ");
    any = true;
    last = std::move(text);
  }

private:
  void emit(std::string_view replacement) {
    if (!suffix.empty())
      replaceText(last, suffix, replacement);
    next.push(last, true, 0);
  }
  std::string_view suffix;
  std::string last;
  bool any = false;
};

/// A space between tokens.
class JoinStage final : public TokenStage {
public:
  using TokenStage::TokenStage;

protected:
  void token(std::string &text, uint8_t) override {
    if (!first)
      next.push(" ", false, 0);
    first = false;
    next.push(text, true, 0);
  }

private:
  bool first = true;
};

/// What llama.cpp prints for a token, by the token's flags: raw bytes, joined by the output.
class PieceBytesStage final : public TokenStage {
public:
  PieceBytesStage(DecoderStage &next, bool byteLevel) : TokenStage(next), byteLevel(byteLevel) {}
  void finish() override {
    std::string text;
    assembler.finish(text);
    next.push(text, true, 0);
    next.finish();
  }

protected:
  void token(std::string &text, uint8_t flags) override {
    int byte = flags & tokenByte ? byteOfToken(text) : -1;
    if (flags & tokenSilent) {
      text.clear();
    } else if (byte >= 0) {
      text.assign(1, char(byte));
    } else if (!(flags & (tokenVerbatim | tokenSpecial))) {
      if (byteLevel)
        mapFromAlphabet(text);
      else
        replaceText(text, "\xE2\x96\x81", " ");
    }
    std::string certain;
    assembler.push(text, certain);
    next.push(certain, false, 0);
  }

private:
  /// Characters outside the alphabet stand for themselves.
  static void mapFromAlphabet(std::string &text) {
    std::string raw;
    for (size_t at = 0; at < text.size();) {
      char32_t character = nextCharacter(text, at);
      int byte = byteAlphabet().byte(character);
      if (byte >= 0)
        raw += char(byte);
      else
        appendCharacter(raw, character);
    }
    text = std::move(raw);
  }
  bool byteLevel;
  Utf8Assembler assembler;
};

} // namespace

bool Decoder::read(SettingsReader &settings, std::string &error) {
  for (uint32_t left = settings.readCount(); left && settings.ok(); --left) {
    Step step{settings.readEnum(DecoderKind::PieceBytes), {}, {}, false, 0, 0, nullptr};
    switch (step.kind) {
    case DecoderKind::Metaspace:
      step.flag = settings.readEnum(PrependScheme::Always) != PrependScheme::Never;
      step.pattern = settings.readText();
      break;
    case DecoderKind::Strip:
      step.pattern = settings.readText();
      step.start = settings.readWord();
      step.stop = settings.readWord();
      break;
    case DecoderKind::ReplaceText:
    case DecoderKind::ReplaceRegex:
      step.pattern = settings.readText();
      step.content = settings.readText();
      break;
    case DecoderKind::WordPiece:
      step.content = settings.readText();
      step.flag = settings.readByte();
      break;
    case DecoderKind::WordSuffix:
      step.content = settings.readText();
      break;
    case DecoderKind::PieceBytes:
      step.flag = settings.readByte();
      break;
    default:
      break;
    }
    bool needsPattern = step.kind == DecoderKind::Metaspace || step.kind == DecoderKind::Strip ||
                        step.kind == DecoderKind::ReplaceText;
    if (settings.ok() && needsPattern && step.pattern.empty()) {
      error = "the serialised tokenizer has a decoder with an empty text";
      return false;
    }
    if (step.kind == DecoderKind::ReplaceRegex && !(step.regex = Regex::compile(step.pattern, error)))
      return false;
    steps.push_back(std::move(step));
  }
  if (steps.size() > 64) {
    error = "the serialised tokenizer has " + std::to_string(steps.size()) + " decoders; at most 64 are run";
    return false;
  }
  return true;
}

Decoder::Run::Run(const Decoder &decoder) {
  stages.push_back(std::make_unique<OutputStage>(out));
  for (size_t i = decoder.steps.size(); i-- > 0;) {
    const Step &step = decoder.steps[i];
    DecoderStage &next = *stages.back();
    switch (step.kind) {
    case DecoderKind::ByteLevel:
      stages.push_back(std::make_unique<ByteLevelStage>(next));
      break;
    case DecoderKind::ByteFallback:
      stages.push_back(std::make_unique<ByteFallbackStage>(next));
      break;
    case DecoderKind::Fuse:
      stages.push_back(std::make_unique<FuseStage>(next));
      break;
    case DecoderKind::Metaspace:
      stages.push_back(std::make_unique<MetaspaceStage>(next, step.pattern, step.flag));
      break;
    case DecoderKind::Strip:
      stages.push_back(std::make_unique<StripStage>(next, step.pattern, step.start, step.stop));
      break;
    case DecoderKind::ReplaceText:
    case DecoderKind::ReplaceRegex:
      stages.push_back(std::make_unique<ReplaceStage>(next, step.pattern, step.regex.get(), step.content));
      break;
    case DecoderKind::WordPiece:
      stages.push_back(std::make_unique<WordPieceStage>(next, step.content, step.flag));
      break;
    case DecoderKind::WordSuffix:
      stages.push_back(std::make_unique<WordSuffixStage>(next, step.content));
      break;
    case DecoderKind::Join:
      stages.push_back(std::make_unique<JoinStage>(next));
      break;
    case DecoderKind::PieceBytes:
      stages.push_back(std::make_unique<PieceBytesStage>(next, step.flag));
      break;
    }
  }
}

Decoder::Run::~Run() = default;

std::string Decoder::Run::take() {
  std::string taken = std::move(out);
  out.clear();
  return taken;
}

std::string Decoder::Run::push(std::string_view text, uint8_t flags) {
  stages.back()->push(text, true, flags);
  return take();
}

std::string Decoder::Run::finish() {
  stages.back()->finish();
  return take();
}

} // namespace mcc::tokenizer
