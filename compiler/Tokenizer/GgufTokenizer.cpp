// The tokenizer of a GGUF file, kinds "gpt2" (byte-level BPE) and "llama" (sentencepiece BPE by scores).
//
// Defaults, token types and special cases are llama.cpp's. A merge may name pieces that are no tokens: they get ids
// behind the vocabulary, which the runtime never gives out but resolves into the tokens of their characters.
#include "compiler/Tokenizer/TokenizerImport.h"

#include "compiler/Import/Gguf.h"
#include "compiler/Support/Error.h"
#include "compiler/Support/Suggest.h"
#include "compiler/Tokenizer/JsonSteps.h"
#include "compiler/Tokenizer/PreTokenizerTable.h"
#include "runtime-lib/tokenizer/Utf8.h"

#include "llvm/ADT/StringMap.h"

namespace mcc {

using namespace tokenizer;

namespace {

/// Token types as the format numbers them.
enum TokenType : int64_t { Normal = 1, Unknown = 2, Control = 3, UserDefined = 4, Unused = 5, Byte = 6 };

class GgufTokenizer {
public:
  explicit GgufTokenizer(const GgufFile &file) : file(file) {}
  llvm::Error run();
  TokenizerDescription description;

private:
  llvm::Error readTokens();
  llvm::Error readTypes();
  llvm::Error readScores();
  llvm::Error readMerges();
  llvm::Error importGpt2();
  llvm::Error importLlama();
  llvm::Error addSpecials(bool addBos, int64_t defaultBos, int64_t defaultEos);
  void markEndsOfTurn();
  void addMatchedTokens();
  uint32_t idOf(llvm::StringRef text);
  uint8_t stripFlags(const TokenizerDescription::Token &token, bool isPhi3) const;
  template <typename... Args>
  llvm::Error refuse(const char *key, const char *format, Args &&...args) {
    return diagnose(file.path() + ": key '" + key + "'", format, std::forward<Args>(args)...);
  }

  const GgufFile &file;
  uint32_t count = 0; ///< tokens of the file; ids behind are pieces of merges
  std::vector<int64_t> types;
  llvm::StringMap<uint32_t> ids;
};

llvm::Error GgufTokenizer::readTokens() {
  auto texts = file.requireStrings("tokenizer.ggml.tokens");
  if (!texts)
    return texts.takeError();
  if (texts->empty() || texts->size() > maxTokens)
    return refuse("tokenizer.ggml.tokens", "the vocabulary has {0} tokens; expected are 1 to {1}", texts->size(),
                  maxTokens);
  count = uint32_t(texts->size());
  description.tokens.reserve(count);
  for (uint32_t id = 0; id < count; ++id) {
    llvm::StringRef text = (*texts)[id];
    if (!isUtf8(text))
      return refuse("tokenizer.ggml.tokens", "token {0} is not UTF-8", id);
    // An empty text is never found, but the id exists.
    description.token(id) = {text.str(), 0, !text.empty(), 0};
    if (!text.empty())
      ids[text] = id;
  }
  return llvm::Error::success();
}

llvm::Error GgufTokenizer::readTypes() {
  auto values = file.getNumbers("tokenizer.ggml.token_type");
  if (!values)
    return values.takeError();
  types.assign(count, Normal);
  if (!*values)
    return llvm::Error::success();
  if ((*values)->size() != count)
    return refuse("tokenizer.ggml.token_type", "there are {0} token types for {1} tokens", (*values)->size(), count);
  for (uint32_t id = 0; id < count; ++id) {
    std::optional<int64_t> type = (*values)->intAt(id);
    if (!type || *type < 0 || *type > Byte)
      return refuse("tokenizer.ggml.token_type", "the type of token {0} is {1}; expected is 1 to 6", id,
                    type ? std::to_string(*type) : "no integer");
    types[id] = *type;
  }
  return llvm::Error::success();
}

llvm::Error GgufTokenizer::readScores() {
  auto values = file.getNumbers("tokenizer.ggml.scores");
  if (!values)
    return values.takeError();
  if (!*values || (*values)->size() != count)
    return refuse("tokenizer.ggml.scores", "there are {0} scores for {1} tokens", *values ? (*values)->size() : 0,
                  count);
  for (uint32_t id = 0; id < count; ++id) {
    std::optional<double> score = (*values)->floatAt(id);
    if (!score || *score != *score)
      return refuse("tokenizer.ggml.scores", "the score of token {0} is not a number", id);
    description.tokens[id].score = *score;
  }
  return llvm::Error::success();
}

/// Returns the id of a piece, a new one behind the vocabulary where it is no token.
uint32_t GgufTokenizer::idOf(llvm::StringRef text) {
  auto [entry, isNew] = ids.try_emplace(text, uint32_t(description.tokens.size()));
  if (isNew)
    description.token(entry->second) = {text.str(), tokenAbsent, true, 0};
  return entry->second;
}

llvm::Error GgufTokenizer::readMerges() {
  auto merges = file.requireStrings("tokenizer.ggml.merges");
  if (!merges)
    return merges.takeError();
  for (size_t rank = 0; rank < merges->size(); ++rank) {
    llvm::StringRef merge = (*merges)[rank];
    size_t space = merge.find(' ', 1);
    if (space == llvm::StringRef::npos || space + 1 == merge.size() || !isUtf8(merge))
      return refuse("tokenizer.ggml.merges", "merge {0} is '{1}'; expected are two pieces with a space between", rank,
                    replaceIllFormed(merge));
    llvm::StringRef left = merge.take_front(space), right = merge.drop_front(space + 1);
    description.merges.push_back({idOf(left), idOf(right), idOf((left + right).str())});
  }
  return llvm::Error::success();
}

/// Tokens by which published models end a turn are special whatever type the file gives them.
void GgufTokenizer::markEndsOfTurn() {
  for (llvm::StringRef text : {"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>",
                               "<|eom_id|>", "<EOT>", "_<EOT>", "<｜end▁of▁sentence｜>"}) {
    auto entry = ids.find(text);
    if (entry != ids.end() && entry->second < count)
      types[entry->second] = Control;
  }
}

uint8_t GgufTokenizer::stripFlags(const TokenizerDescription::Token &token, bool isPhi3) const {
  // Phi-3 was trained with white space dropped behind its chat markers; GGUF does not say so.
  llvm::StringRef text = token.text;
  return isPhi3 && text != "<unk>" && text != "<s>" && text != "<|endoftext|>" ? addedStripRight : 0;
}

/// Sets the tokens' flags by their types; control, unknown and user-defined tokens are matched in the text.
void GgufTokenizer::addMatchedTokens() {
  description.matching = AddedMatching::LongestFirst;
  const GgufValue *name = file.find("general.name");
  std::string modelName = name && name->asString() ? name->asString()->lower() : "";
  bool isPhi3 = modelName.find("phi-3") != std::string::npos || modelName.find("phi3") != std::string::npos;
  for (uint32_t id = 0; id < count; ++id) {
    TokenizerDescription::Token &token = description.tokens[id];
    int64_t type = types[id];
    bool special = type == Control || type == Unknown;
    token.flags = uint8_t((special ? tokenSpecial : 0) | (type == UserDefined ? tokenVerbatim : 0) |
                          (type == Byte ? tokenByte : 0) | (type == Unused ? tokenSilent : 0));
    if (!(special || type == UserDefined) || token.text.empty() || ids[token.text] != id)
      continue;
    token.flags |= tokenAdded;
    description.added.push_back({id, stripFlags(token, isPhi3), token.text});
  }
}

/// Sets what is put around a text: BOS and EOS where the file, or else the kind, says so.
llvm::Error GgufTokenizer::addSpecials(bool addBos, int64_t defaultBos, int64_t defaultEos) {
  struct Special {
    const char *addKey, *idKey;
    bool add;
    int64_t id;
    std::vector<uint32_t> &list;
  };
  for (Special special : {Special{"tokenizer.ggml.add_bos_token", "tokenizer.ggml.bos_token_id", addBos, defaultBos,
                                  description.before},
                          Special{"tokenizer.ggml.add_eos_token", "tokenizer.ggml.eos_token_id", false, defaultEos,
                                  description.after}}) {
    auto add = file.getBool(special.addKey);
    if (!add)
      return add.takeError();
    auto id = file.getInt(special.idKey);
    if (!id)
      return id.takeError();
    int64_t token = id->value_or(special.id);
    if (!add->value_or(special.add))
      continue;
    if (token < 0 || token >= int64_t(count))
      return refuse(special.idKey, "the id is {0}, to be put around texts; the vocabulary has {1} tokens", token, count);
    special.list.push_back(uint32_t(token));
  }
  return llvm::Error::success();
}

llvm::Error GgufTokenizer::importGpt2() {
  auto pre = file.getString("tokenizer.ggml.pre");
  if (!pre)
    return pre.takeError();
  llvm::StringRef name = pre->value_or("default");
  const PreTokenizerEntry *entry = findPreTokenizer(name);
  if (!entry)
    return refuse("tokenizer.ggml.pre", "the pre-tokenizer '{0}' is not supported{1}", name,
                  suggestName(name, preTokenizerNames()));
  description.model = ModelKind::Bpe;
  description.modelFlags = modelSplitUnknown | (entry->ignoreMerges ? modelIgnoreMerges : 0u);
  for (const char *pattern : entry->patterns)
    addRegexSplit(description, pattern, SplitBehavior::Isolated);
  description.preTokenizers.add(PreTokenizerKind::ByteLevel);
  description.decoders.add(DecoderKind::PieceBytes).byte(true);
  if (llvm::Error error = readMerges())
    return error;
  return addSpecials(entry->addBos, 11, 11);
}

llvm::Error GgufTokenizer::importLlama() {
  description.model = ModelKind::ScoredMerges;
  if (llvm::Error error = readScores())
    return error;
  auto prefix = file.getBool("tokenizer.ggml.add_space_prefix");
  if (!prefix)
    return prefix.takeError();
  auto unknown = file.getInt("tokenizer.ggml.unknown_token_id");
  if (!unknown)
    return unknown.takeError();
  int64_t unknownId = unknown->value_or(0);
  description.unknown = unknownId >= 0 && unknownId < int64_t(count) ? int32_t(unknownId) : -1;
  bool addsPrefix = prefix->value_or(true);
  constexpr llvm::StringLiteral marker("\xE2\x96\x81");
  if (addsPrefix)
    description.normalizers.add(NormalizerKind::Prepend).text(marker);
  description.normalizers.add(NormalizerKind::ReplaceText).text(" ").text(marker);
  description.decoders.add(DecoderKind::PieceBytes).byte(false);
  if (addsPrefix)
    description.decoders.add(DecoderKind::Strip).text(" ").word(1).word(0);
  return addSpecials(true, 1, 2);
}

llvm::Error GgufTokenizer::run() {
  auto kind = file.requireString("tokenizer.ggml.model");
  if (!kind)
    return kind.takeError();
  if (*kind != "gpt2" && *kind != "llama")
    return refuse("tokenizer.ggml.model", "the tokenizer '{0}' is not supported; supported are 'gpt2' and 'llama'",
                  *kind);
  if (llvm::Error error = readTokens())
    return error;
  if (llvm::Error error = readTypes())
    return error;
  markEndsOfTurn();
  addMatchedTokens();
  return *kind == "gpt2" ? importGpt2() : importLlama();
}

} // namespace

llvm::Expected<std::vector<uint8_t>> importGgufTokenizer(const GgufFile &file) {
  GgufTokenizer importer(file);
  if (llvm::Error error = importer.run())
    return error;
  return serializeTokenizer(importer.description, file.path());
}

} // namespace mcc
