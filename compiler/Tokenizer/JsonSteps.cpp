// The steps of a tokenizer.json, one function per step type, found in a table by the type's name.
//
// Each function reads its fields, refuses those it does not know, and writes the step in the runtime's form. Steps that
// are compositions (ByteLevel with its pattern, Whitespace, BertPreTokenizer) are written as what they are composed of.
#include "compiler/Tokenizer/JsonSteps.h"

#include "compiler/Tokenizer/OnigurumaPattern.h"
#include "runtime-lib/tokenizer/Regex.h"
#include "runtime-lib/tokenizer/Utf8.h"

#include "llvm/Support/Base64.h"

namespace mcc {

using namespace tokenizer;

const char *const byteLevelPattern =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

namespace {

using Importer = void (*)(JsonFields &, TokenizerDescription &);
struct StepType {
  llvm::StringLiteral name;
  Importer import;
};

/// Looks `value`'s type up in `types` and runs its importer.
void importStep(JsonProblem &problem, const JsonValue &value, TokenizerDescription &description,
                llvm::StringRef family, llvm::ArrayRef<StepType> types) {
  JsonFields fields(problem, value, ("the " + family).str());
  std::string type = fields.text("type");
  if (!problem.ok())
    return;
  std::vector<llvm::StringRef> names;
  for (const StepType &known : types) {
    names.push_back(known.name);
    if (known.name != type)
      continue;
    JsonFields typed(problem, value, ("the " + family + " '").str() + type + "'");
    typed.ignore("type");
    known.import(typed, description);
    typed.done();
    return;
  }
  problem.fail(value.find("type")->value.offset, "the {0} '{1}' is not supported{2}", family, type,
               suggestName(type, names));
}

/// A pattern field: {"String": s} or {"Regex": s}; the latter as PCRE2 has it.
struct Pattern {
  bool isRegex = false;
  std::string text;
};
Pattern importPattern(JsonFields &step) {
  Pattern pattern;
  const JsonValue *value = step.require("pattern");
  if (!value)
    return pattern;
  const JsonMember *member = value->isObject() && value->members.size() == 1 ? &value->members[0] : nullptr;
  if (!member || !member->value.isString() || (member->key != "String" && member->key != "Regex")) {
    step.problem.fail(value->offset, "'pattern' is {0}; expected is {{\"String\": ...} or {{\"Regex\": ...}",
                      step.problem.document.quoted(*value));
    return pattern;
  }
  pattern.isRegex = member->key == "Regex";
  pattern.text = member->value.string;
  if (!pattern.isRegex) {
    if (pattern.text.empty())
      step.problem.fail(member->value.offset, "the pattern of {0} is empty", step.what);
    return pattern;
  }
  OnigurumaResult result = translateOniguruma(pattern.text);
  std::string error = result.problem;
  if (error.empty())
    Regex::compile(result.pattern, error);
  if (!error.empty())
    step.problem.fail(member->value.offset, "the pattern of {0}, at its byte {1}: {2}", step.what, result.offset,
                      error);
  pattern.text = result.pattern;
  return pattern;
}

/// An enumerator by its name.
template <typename Enum>
Enum importEnum(JsonFields &step, llvm::StringRef key, std::optional<std::string> otherwise,
                llvm::ArrayRef<llvm::StringRef> names) {
  std::string name = step.text(key, std::move(otherwise));
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name)
      return Enum(i);
  if (step.problem.ok())
    step.problem.fail(step.value.find(key)->value.offset, "'{0}' is '{1}'; expected is {2}", key, name,
                      quotedList(names));
  return Enum(0);
}
SplitBehavior importBehavior(JsonFields &step, std::optional<std::string> otherwise) {
  return importEnum<SplitBehavior>(step, "behavior", std::move(otherwise),
                                   {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"});
}

/// Metaspace has an older spelling: add_prefix_space in place of prepend_scheme.
PrependScheme importScheme(JsonFields &step) {
  bool prefix = step.flag("add_prefix_space", true);
  PrependScheme scheme =
      importEnum<PrependScheme>(step, "prepend_scheme", prefix ? "always" : "never", {"never", "first", "always"});
  return prefix ? scheme : PrependScheme::Never;
}

/// A field of exactly one character.
std::string importCharacter(JsonFields &step, llvm::StringRef key) {
  std::string text = step.text(key);
  if (step.problem.ok() && (text.empty() || characterBytes(uint8_t(text[0])) != text.size()))
    step.problem.fail(step.value.find(key)->value.offset, "'{0}' is '{1}'; expected is one character", key, text);
  return text;
}

// Normalizers.

template <NormalizerKind kind>
void plainNormalizer(JsonFields &, TokenizerDescription &description) {
  description.normalizers.add(kind);
}

/// Returns whether a pattern, known to compile, matches the empty text.
bool matchesNothing(const std::string &pattern) {
  std::string error;
  std::shared_ptr<const Regex> regex = Regex::compile(pattern, error);
  return regex && Matcher(*regex).find("", 0) != Matcher::Outcome::None;
}

void replaceNormalizer(JsonFields &step, TokenizerDescription &description) {
  Pattern pattern = importPattern(step);
  // The library then cuts the text at shifted places.
  if (step.problem.ok() && pattern.isRegex && matchesNothing(pattern.text))
    step.problem.fail(step.value.find("pattern")->value.offset,
                      "the pattern of {0} matches the empty text, which is not supported", step.what);
  description.normalizers.add(pattern.isRegex ? NormalizerKind::ReplaceRegex : NormalizerKind::ReplaceText)
      .text(pattern.text)
      .text(step.text("content"));
}

void prependNormalizer(JsonFields &step, TokenizerDescription &description) {
  description.normalizers.add(NormalizerKind::Prepend).text(step.text("prepend"));
}

void stripNormalizer(JsonFields &step, TokenizerDescription &description) {
  bool left = step.flag("strip_left"), right = step.flag("strip_right");
  description.normalizers.add(NormalizerKind::Strip).byte(left).byte(right);
}

void bertNormalizer(JsonFields &step, TokenizerDescription &description) {
  bool clean = step.flag("clean_text", true), chinese = step.flag("handle_chinese_chars", true);
  bool lowercase = step.flag("lowercase", true), accents = step.flag("strip_accents", lowercase);
  description.normalizers.add(NormalizerKind::Bert).byte(clean).byte(chinese).byte(accents).byte(lowercase);
}

/// The map is base64 of: u32 bytes of the trie, the trie's u32 units, NUL-ended texts.
void precompiledNormalizer(JsonFields &step, TokenizerDescription &description) {
  const JsonValue *value = step.find("precompiled_charsmap");
  std::vector<char> bytes;
  if (!value || value->string.empty())
    return;
  uint32_t trieBytes = 0;
  bool sound = value->isString() && !llvm::errorToBool(llvm::decodeBase64(value->string, bytes)) && bytes.size() >= 4;
  if (sound)
    std::memcpy(&trieBytes, bytes.data(), 4);
  sound = sound && trieBytes % 4 == 0 && trieBytes > 0 && trieBytes < bytes.size() - 4;
  if (!sound || !isUtf8({bytes.data() + 4 + trieBytes, bytes.size() - 4 - trieBytes})) {
    step.problem.fail(value->offset, "'precompiled_charsmap' is not base64 of a trie and its texts");
    return;
  }
  if (!description.charsmap.empty()) {
    step.problem.fail(value->offset, "a second 'precompiled_charsmap' is not supported");
    return;
  }
  bytes.resize((bytes.size() + 4) / 4 * 4, 0);
  description.charsmap.resize(bytes.size() / 4);
  std::memcpy(description.charsmap.data(), bytes.data(), bytes.size());
  description.charsmap[0] = trieBytes / 4;
  description.normalizers.add(NormalizerKind::Charsmap);
}

constexpr StepType normalizerTypes[] = {
    {"NFC", plainNormalizer<NormalizerKind::Nfc>},
    {"NFD", plainNormalizer<NormalizerKind::Nfd>},
    {"NFKC", plainNormalizer<NormalizerKind::Nfkc>},
    {"NFKD", plainNormalizer<NormalizerKind::Nfkd>},
    {"Lowercase", plainNormalizer<NormalizerKind::Lowercase>},
    {"StripAccents", plainNormalizer<NormalizerKind::StripAccents>},
    {"Nmt", plainNormalizer<NormalizerKind::Nmt>},
    {"ByteLevel", plainNormalizer<NormalizerKind::ByteLevel>},
    {"Strip", stripNormalizer},
    {"Replace", replaceNormalizer},
    {"Prepend", prependNormalizer},
    {"Precompiled", precompiledNormalizer},
    {"BertNormalizer", bertNormalizer},
    {"Sequence", nullptr},
};

// Pre-tokenizers.

void byteLevelPreTokenizer(JsonFields &step, TokenizerDescription &description) {
  step.ignore("trim_offsets");
  if (step.flag("add_prefix_space", true))
    description.preTokenizers.add(PreTokenizerKind::PrependSpace);
  if (step.flag("use_regex", true))
    addRegexSplit(description, byteLevelPattern, SplitBehavior::Isolated);
  description.preTokenizers.add(PreTokenizerKind::ByteLevel);
}

void splitPreTokenizer(JsonFields &step, TokenizerDescription &description) {
  Pattern pattern = importPattern(step);
  SplitBehavior behavior = importBehavior(step, std::nullopt);
  description.preTokenizers.add(pattern.isRegex ? PreTokenizerKind::SplitRegex : PreTokenizerKind::SplitText)
      .byte(uint8_t(behavior))
      .byte(step.flag("invert", false))
      .text(pattern.text);
}

void digitsPreTokenizer(JsonFields &step, TokenizerDescription &description) {
  description.preTokenizers.add(PreTokenizerKind::Digits).byte(step.flag("individual_digits", false));
}

void punctuationPreTokenizer(JsonFields &step, TokenizerDescription &description) {
  description.preTokenizers.add(PreTokenizerKind::Punctuation).byte(uint8_t(importBehavior(step, "Isolated")));
}

void metaspacePreTokenizer(JsonFields &step, TokenizerDescription &description) {
  step.ignore("str_rep");
  std::string replacement = importCharacter(step, "replacement");
  PrependScheme scheme = importScheme(step);
  bool splits = step.flag("split", true);
  description.preTokenizers.add(PreTokenizerKind::Metaspace).byte(uint8_t(scheme)).byte(splits).text(replacement);
}

/// `\w+|[^\w\s]+` in the syntax of Rust's regex library, whose words are those of isWordCharacter: runs of word
/// characters, and of what is neither word nor white space.
void whitespacePreTokenizer(JsonFields &, TokenizerDescription &description) {
  std::string word = "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{200C}\\x{200D}\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}"
                     "\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}";
  std::string space = translateOniguruma("\\s").pattern; // a class
  description.preTokenizers.add(PreTokenizerKind::SplitRegex)
      .byte(uint8_t(SplitBehavior::Removed))
      .byte(true)
      .text("[" + word + "]+|[^" + word + space.substr(1, space.size() - 2) + "]+");
}

void whitespaceSplitPreTokenizer(JsonFields &, TokenizerDescription &description) {
  description.preTokenizers.add(PreTokenizerKind::WhitespaceSplit);
}

void bertPreTokenizer(JsonFields &, TokenizerDescription &description) {
  description.preTokenizers.add(PreTokenizerKind::WhitespaceSplit);
  description.preTokenizers.add(PreTokenizerKind::BertPunctuation);
}

void delimiterPreTokenizer(JsonFields &step, TokenizerDescription &description) {
  std::string delimiter = importCharacter(step, "delimiter");
  description.preTokenizers.add(PreTokenizerKind::SplitText)
      .byte(uint8_t(SplitBehavior::Removed))
      .byte(false)
      .text(delimiter);
}

void fixedLengthPreTokenizer(JsonFields &step, TokenizerDescription &description) {
  uint32_t length = step.number("length", INT32_MAX, 5);
  if (length == 0)
    step.problem.fail(step.value.offset, "'length' is 0; expected is at least 1");
  description.preTokenizers.add(PreTokenizerKind::FixedLength).word(length);
}

constexpr StepType preTokenizerTypes[] = {
    {"ByteLevel", byteLevelPreTokenizer},
    {"Split", splitPreTokenizer},
    {"Digits", digitsPreTokenizer},
    {"Punctuation", punctuationPreTokenizer},
    {"Metaspace", metaspacePreTokenizer},
    {"Whitespace", whitespacePreTokenizer},
    {"WhitespaceSplit", whitespaceSplitPreTokenizer},
    {"BertPreTokenizer", bertPreTokenizer},
    {"CharDelimiterSplit", delimiterPreTokenizer},
    {"FixedLength", fixedLengthPreTokenizer},
    {"Sequence", nullptr},
};

// Decoders.

template <DecoderKind kind>
void plainDecoder(JsonFields &, TokenizerDescription &description) {
  description.decoders.add(kind);
}

void byteLevelDecoder(JsonFields &step, TokenizerDescription &description) {
  for (llvm::StringRef key : {"add_prefix_space", "trim_offsets", "use_regex"})
    step.ignore(key);
  description.decoders.add(DecoderKind::ByteLevel);
}

void metaspaceDecoder(JsonFields &step, TokenizerDescription &description) {
  step.ignore("str_rep");
  step.ignore("split");
  std::string replacement = importCharacter(step, "replacement");
  description.decoders.add(DecoderKind::Metaspace).byte(uint8_t(importScheme(step))).text(replacement);
}

void stripDecoder(JsonFields &step, TokenizerDescription &description) {
  std::string content = importCharacter(step, "content");
  uint32_t start = step.number("start", UINT32_MAX), stop = step.number("stop", UINT32_MAX);
  description.decoders.add(DecoderKind::Strip).text(content).word(start).word(stop);
}

void replaceDecoder(JsonFields &step, TokenizerDescription &description) {
  Pattern pattern = importPattern(step);
  description.decoders.add(pattern.isRegex ? DecoderKind::ReplaceRegex : DecoderKind::ReplaceText)
      .text(pattern.text)
      .text(step.text("content"));
}

void wordPieceDecoder(JsonFields &step, TokenizerDescription &description) {
  std::string prefix = step.text("prefix", "##");
  description.decoders.add(DecoderKind::WordPiece).text(prefix).byte(step.flag("cleanup", true));
}

void wordSuffixDecoder(JsonFields &step, TokenizerDescription &description) {
  description.decoders.add(DecoderKind::WordSuffix).text(step.text("suffix", "</w>"));
}

constexpr StepType decoderTypes[] = {
    {"ByteLevel", byteLevelDecoder},
    {"ByteFallback", plainDecoder<DecoderKind::ByteFallback>},
    {"Fuse", plainDecoder<DecoderKind::Fuse>},
    {"Metaspace", metaspaceDecoder},
    {"Strip", stripDecoder},
    {"Replace", replaceDecoder},
    {"WordPiece", wordPieceDecoder},
    {"BPEDecoder", wordSuffixDecoder},
    {"Sequence", nullptr},
};

// Post-processors.

void importIds(JsonFields &step, const JsonValue &piece, const JsonValue *specials, TokenizerDescription &description,
               std::vector<uint32_t> &ids) {
  JsonFields fields(step.problem, piece, "the piece 'SpecialToken'");
  fields.ignore("type_id");
  std::string name = fields.text("id");
  const JsonMember *special = specials ? specials->find(name) : nullptr;
  if (!special) {
    step.problem.fail(piece.offset, "the special token '{0}' is not among 'special_tokens'", name);
    return;
  }
  JsonFields entry(step.problem, special->value, "the special token '" + name + "'");
  for (const JsonValue &id : entry.array("ids")) {
    if (id.kind != JsonValue::Kind::Integer || id.integer < 0 || uint64_t(id.integer) >= description.tokens.size())
      step.problem.fail(id.offset, "the special token '{0}' has the id {1}; the vocabulary has {2} tokens", name,
                        step.problem.document.quoted(id), description.tokens.size());
    else
      ids.push_back(uint32_t(id.integer));
  }
}

/// Puts `before` and `after` around what is put around a text so far.
void wrap(TokenizerDescription &description, const std::vector<uint32_t> &before, const std::vector<uint32_t> &after) {
  description.before.insert(description.before.begin(), before.begin(), before.end());
  description.after.insert(description.after.end(), after.begin(), after.end());
}

void templateProcessor(JsonFields &step, TokenizerDescription &description) {
  step.ignore("pair");
  const JsonValue *specials = step.find("special_tokens");
  std::vector<uint32_t> before, after;
  bool seenText = false;
  for (const JsonValue &piece : step.array("single")) {
    const JsonMember *member = piece.isObject() && piece.members.size() == 1 ? &piece.members[0] : nullptr;
    if (member && member->key == "SpecialToken" && member->value.isObject()) {
      importIds(step, member->value, specials, description, seenText ? after : before);
    } else if (member && member->key == "Sequence" && member->value.isObject() && !seenText) {
      seenText = true;
      JsonFields fields(step.problem, member->value, "the piece 'Sequence'");
      fields.ignore("type_id");
      if (fields.text("id") != "A")
        step.problem.fail(member->value.offset, "the template 'single' has a sequence other than 'A'");
    } else {
      step.problem.fail(piece.offset, "the template 'single' has the piece {0}; expected are special tokens and one "
                                      "sequence",
                        step.problem.document.quoted(piece));
    }
  }
  if (step.problem.ok() && !seenText)
    step.problem.fail(step.value.offset, "the template 'single' has no sequence");
  wrap(description, before, after);
}

/// ["text", id]
uint32_t importPairId(JsonFields &step, llvm::StringRef key, TokenizerDescription &description) {
  const std::vector<JsonValue> &pair = step.array(key);
  if (!step.problem.ok())
    return 0;
  if (pair.size() == 2 && pair[1].kind == JsonValue::Kind::Integer && pair[1].integer >= 0 &&
      uint64_t(pair[1].integer) < description.tokens.size())
    return uint32_t(pair[1].integer);
  step.problem.fail(step.value.find(key)->value.offset,
                    "'{0}' is {1}; expected is [\"text\", id] with an id below {2}", key,
                    step.problem.document.quoted(step.value.find(key)->value), description.tokens.size());
  return 0;
}

void bertProcessor(JsonFields &step, TokenizerDescription &description) {
  step.ignore("trim_offsets");
  step.ignore("add_prefix_space");
  uint32_t before = importPairId(step, "cls", description), after = importPairId(step, "sep", description);
  wrap(description, {before}, {after});
}

/// Changes offsets only.
void byteLevelProcessor(JsonFields &step, TokenizerDescription &) {
  for (llvm::StringRef key : {"add_prefix_space", "trim_offsets", "use_regex"})
    step.ignore(key);
}

constexpr StepType postProcessorTypes[] = {
    {"TemplateProcessing", templateProcessor},
    {"ByteLevel", byteLevelProcessor},
    {"BertProcessing", bertProcessor},
    {"RobertaProcessing", bertProcessor},
    {"Sequence", nullptr},
};

/// Imports `value`, or the elements of the field `list` of a Sequence.
void importSteps(JsonProblem &problem, const JsonValue &value, TokenizerDescription &description,
                 llvm::StringRef family, llvm::StringRef list, llvm::ArrayRef<StepType> types) {
  const JsonMember *type = value.find("type");
  if (!value.isObject() || !type || type->value.string != "Sequence") {
    importStep(problem, value, description, family, types);
    return;
  }
  JsonFields fields(problem, value, ("the " + family + " 'Sequence'").str());
  fields.ignore("type");
  for (const JsonValue &element : fields.array(list))
    importSteps(problem, element, description, family, list, types);
  fields.done();
}

} // namespace

void addRegexSplit(TokenizerDescription &description, llvm::StringRef pattern, SplitBehavior behavior) {
  OnigurumaResult translated = translateOniguruma(pattern);
  description.preTokenizers.add(PreTokenizerKind::SplitRegex)
      .byte(uint8_t(behavior))
      .byte(false)
      .text(translated.pattern);
}

void importNormalizer(JsonProblem &problem, const JsonValue &value, TokenizerDescription &description) {
  importSteps(problem, value, description, "normalizer", "normalizers", normalizerTypes);
}

void importPreTokenizer(JsonProblem &problem, const JsonValue &value, TokenizerDescription &description) {
  importSteps(problem, value, description, "pre-tokenizer", "pretokenizers", preTokenizerTypes);
}

void importDecoder(JsonProblem &problem, const JsonValue &value, TokenizerDescription &description) {
  importSteps(problem, value, description, "decoder", "decoders", decoderTypes);
}

void importPostProcessor(JsonProblem &problem, const JsonValue &value, TokenizerDescription &description) {
  importSteps(problem, value, description, "post-processor", "processors", postProcessorTypes);
}

} // namespace mcc
