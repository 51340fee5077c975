// tokenizer.json: the model, the added tokens, and the assembly of the whole.
//
// The file is read as JSON with places, so every refusal has file:line:column. Ids follow the library: a token of the
// model keeps its id, an added token that the model has takes that id, any other takes the next free one, whatever the
// file writes beside it.
#include "compiler/Tokenizer/TokenizerImport.h"

#include "compiler/Tokenizer/JsonSteps.h"

#include "llvm/ADT/StringMap.h"

#include <algorithm>

namespace mcc {

using namespace tokenizer;

namespace {

class TokenizerJson {
public:
  TokenizerJson(JsonProblem &problem, TokenizerDescription &description)
      : problem(problem), description(description) {}
  void run(const JsonValue &root);

private:
  void importModel(const JsonValue &model);
  void importBpe(JsonFields &fields);
  void importVocabulary(const JsonValue &vocabulary);
  void importMerges(const std::vector<JsonValue> &merges, llvm::StringRef prefix);
  bool importMergePair(const JsonValue &merge, llvm::StringRef &left, llvm::StringRef &right);
  void importUnigram(JsonFields &fields);
  void importAddedTokens(const std::vector<JsonValue> &tokens);
  uint32_t addedId(llvm::StringRef text);

  JsonProblem &problem;
  TokenizerDescription &description;
  llvm::StringMap<uint32_t> ids; ///< of the model's tokens
  uint32_t modelSize = 0;        ///< entries of the model's vocabulary
  llvm::StringMap<uint32_t> addedIds;
};

void TokenizerJson::importVocabulary(const JsonValue &vocabulary) {
  if (!vocabulary.isObject()) {
    problem.fail(vocabulary.offset, "'vocab' is {0}; expected is an object", describeKind(vocabulary));
    return;
  }
  for (const JsonMember &entry : vocabulary.members) {
    const JsonValue &id = entry.value;
    if (id.kind != JsonValue::Kind::Integer || id.integer < 0 || id.integer >= int64_t(maxTokens)) {
      problem.fail(id.offset, "the token '{0}' has the id {1}; expected is a whole number below {2}", entry.key,
                   problem.document.quoted(id), maxTokens);
      return;
    }
    TokenizerDescription::Token &token = description.token(uint32_t(id.integer));
    if (token.inModel) {
      problem.fail(id.offset, "the tokens '{0}' and '{1}' share the id {2}", token.text, entry.key, id.integer);
      return;
    }
    token = {entry.key, 0, true, 0};
    ids[entry.key] = uint32_t(id.integer);
  }
  modelSize = uint32_t(vocabulary.members.size());
}

/// A merge is "left right" or ["left", "right"].
bool TokenizerJson::importMergePair(const JsonValue &merge, llvm::StringRef &left, llvm::StringRef &right) {
  if (merge.isArray() && merge.elements.size() == 2 && merge.elements[0].isString() && merge.elements[1].isString()) {
    left = merge.elements[0].string;
    right = merge.elements[1].string;
    return true;
  }
  if (merge.isString()) {
    std::tie(left, right) = llvm::StringRef(merge.string).split(' ');
    if (!left.empty() && !right.empty() && !right.contains(' '))
      return true;
  }
  return problem.fail(merge.offset, "the merge {0} is not two token texts", problem.document.quoted(merge));
}

void TokenizerJson::importMerges(const std::vector<JsonValue> &merges, llvm::StringRef prefix) {
  for (const JsonValue &merge : merges) {
    llvm::StringRef left, right;
    if (!importMergePair(merge, left, right))
      return;
    if (right.size() < prefix.size()) {
      problem.fail(merge.offset, "the merge {0} has a right side shorter than the prefix '{1}'",
                   problem.document.quoted(merge), prefix);
      return;
    }
    std::string joined = (left + right.drop_front(prefix.size())).str();
    for (llvm::StringRef text : {left, right, llvm::StringRef(joined)})
      if (!ids.count(text)) {
        problem.fail(merge.offset, "the merge {0} needs the token '{1}', which the vocabulary lacks",
                     problem.document.quoted(merge), text);
        return;
      }
    description.merges.push_back({ids[left], ids[right], ids[joined]});
  }
}

void TokenizerJson::importBpe(JsonFields &fields) {
  description.model = ModelKind::Bpe;
  const JsonValue *dropout = fields.find("dropout");
  if (dropout && !(dropout->isNumber() && dropout->real == 0))
    problem.fail(dropout->offset, "'dropout' is {0}: merging at random is not supported; expected is null",
                 problem.document.quoted(*dropout));
  if (const JsonValue *vocabulary = fields.require("vocab"))
    importVocabulary(*vocabulary);
  description.continuingPrefix = fields.text("continuing_subword_prefix", "");
  description.endSuffix = fields.text("end_of_word_suffix", "");
  description.modelFlags = (fields.flag("fuse_unk", false) ? modelFuseUnknown : 0u) |
                           (fields.flag("byte_fallback", false) ? modelByteFallback : 0u) |
                           (fields.flag("ignore_merges", false) ? modelIgnoreMerges : 0u);
  if (const JsonValue *unknown = fields.find("unk_token")) {
    std::string text = fields.text("unk_token");
    if (!ids.count(text))
      problem.fail(unknown->offset, "'unk_token' is '{0}', which the vocabulary lacks", text);
    else
      description.unknown = int32_t(ids[text]);
  }
  if (problem.ok())
    importMerges(fields.array("merges"), description.continuingPrefix);
}

void TokenizerJson::importUnigram(JsonFields &fields) {
  description.model = ModelKind::Unigram;
  description.modelFlags = modelFuseUnknown | (fields.flag("byte_fallback", false) ? modelByteFallback : 0u);
  uint32_t id = 0;
  for (const JsonValue &entry : fields.array("vocab")) {
    if (!entry.isArray() || entry.elements.size() != 2 || !entry.elements[0].isString() ||
        !entry.elements[1].isNumber() || !(entry.elements[1].real - entry.elements[1].real == 0)) {
      problem.fail(entry.offset, "the vocabulary entry {0} is not [\"text\", score]", problem.document.quoted(entry));
      return;
    }
    description.token(id) = {entry.elements[0].string, 0, true, entry.elements[1].real};
    ids[entry.elements[0].string] = id++;
  }
  modelSize = id;
  if (fields.find("unk_id"))
    description.unknown = int32_t(fields.number("unk_id", id ? id - 1 : 0));
}

void TokenizerJson::importModel(const JsonValue &model) {
  JsonFields fields(problem, model, "the model");
  if (!problem.ok())
    return;
  // Older files leave the type out.
  const JsonMember *vocabulary = model.find("vocab");
  bool hasMerges = model.find("merges"), isList = vocabulary && vocabulary->value.isArray();
  std::string type = fields.text("type", hasMerges ? "BPE" : isList ? "Unigram" : "WordPiece");
  if (type == "BPE")
    importBpe(fields);
  else if (type == "Unigram")
    importUnigram(fields);
  else
    problem.fail(model.offset, "the model '{0}' is not supported; supported are 'BPE' and 'Unigram'", type);
  fields.done();
}

/// Returns the id that the library gives an added token.
uint32_t TokenizerJson::addedId(llvm::StringRef text) {
  auto known = addedIds.find(text);
  if (known != addedIds.end())
    return known->second;
  auto inModel = ids.find(text);
  if (inModel != ids.end())
    return addedIds[text] = inModel->second;
  uint32_t next = modelSize;
  for (const auto &entry : addedIds)
    next = std::max(next, entry.second + 1);
  return addedIds[text] = next;
}

void TokenizerJson::importAddedTokens(const std::vector<JsonValue> &tokens) {
  for (const JsonValue &value : tokens) {
    JsonFields fields(problem, value, "the added token");
    fields.number("id", maxTokens - 1);
    std::string text = fields.text("content");
    bool special = fields.flag("special");
    uint8_t flags = uint8_t((fields.flag("single_word") ? addedSingleWord : 0) |
                            (fields.flag("lstrip") ? addedStripLeft : 0) |
                            (fields.flag("rstrip") ? addedStripRight : 0) |
                            (fields.flag("normalized") ? addedNormalized : 0));
    if (!fields.done())
      return;
    if (text.empty())
      continue;
    uint32_t id = addedId(text);
    if (id >= maxTokens) {
      problem.fail(value.offset, "the added token '{0}' would have the id {1}; ids are below {2}", text, id, maxTokens);
      return;
    }
    TokenizerDescription::Token &token = description.token(id);
    if (!token.inModel)
      token = {text, 0, false, 0};
    if (token.text != text) {
      problem.fail(value.offset, "the tokens '{0}' and '{1}' share the id {2}", token.text, text, id);
      return;
    }
    token.flags = uint8_t((token.flags & ~tokenAbsent) | tokenAdded | (special ? tokenSpecial : 0));
    description.added.push_back({id, flags, text});
  }
}

void TokenizerJson::run(const JsonValue &root) {
  JsonFields fields(problem, root, "the tokenizer");
  if (!problem.ok())
    return;
  for (llvm::StringRef key : {"version", "truncation", "padding"})
    fields.ignore(key);
  if (const JsonValue *model = fields.require("model"))
    importModel(*model);
  if (problem.ok())
    importAddedTokens(fields.array("added_tokens", false));
  if (const JsonValue *value = fields.find("normalizer"); value && problem.ok())
    importNormalizer(problem, *value, description);
  if (const JsonValue *value = fields.find("pre_tokenizer"); value && problem.ok())
    importPreTokenizer(problem, *value, description);
  if (const JsonValue *value = fields.find("post_processor"); value && problem.ok())
    importPostProcessor(problem, *value, description);
  if (const JsonValue *value = fields.find("decoder"); value && problem.ok())
    importDecoder(problem, *value, description);
  else if (!value)
    description.decoders.add(DecoderKind::Join);
  fields.done();
}

/// Puts `bos` before every text where the file leaves open what goes around one.
llvm::Error addDefaultBos(const JsonDocument &document, std::optional<int32_t> bos, TokenizerDescription &description) {
  const JsonMember *processor = document.root.find("post_processor");
  if (!bos || (processor && !processor->value.isNull()))
    return llvm::Error::success();
  if (*bos < 0 || static_cast<size_t>(*bos) >= description.tokens.size())
    return diagnose(document.file(), "the model begins texts with token {0}; the vocabulary has {1} tokens", *bos, description.tokens.size());
  description.before.push_back(static_cast<uint32_t>(*bos));
  return llvm::Error::success();
}

llvm::Expected<std::vector<uint8_t>> importDocument(llvm::Expected<JsonDocument> document, std::optional<int32_t> bos) {
  if (!document)
    return document.takeError();
  JsonProblem problem(*document);
  TokenizerDescription description;
  TokenizerJson(problem, description).run(document->root);
  if (llvm::Error error = problem.take())
    return error;
  if (llvm::Error error = addDefaultBos(*document, bos, description))
    return error;
  if (llvm::Error error = normalizeAddedTokens(description, document->file()))
    return error;
  return serializeTokenizer(description, document->file());
}

} // namespace

llvm::Expected<std::vector<uint8_t>> importTokenizerJson(llvm::StringRef path, std::optional<int32_t> bos) {
  return importDocument(JsonDocument::read(path), bos);
}

llvm::Expected<std::vector<uint8_t>> parseTokenizerJson(llvm::StringRef text, llvm::StringRef file, std::optional<int32_t> bos) {
  return importDocument(JsonDocument::parse(text, file), bos);
}

} // namespace mcc
