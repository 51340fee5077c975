// The tokenizer as its steps: added tokens, normalizer, added tokens again, pre-tokenizer, model, and the way back.
//
// Every step is immutable after loading; what an encode call needs lives on its stack, so calls may run at once. The
// serialised tables are used in place. Exceptions (memory) end at this file's functions.
#include "runtime-lib/tokenizer/Tokenizer.h"

#include "runtime-lib/tokenizer/AddedTokens.h"
#include "runtime-lib/tokenizer/Decoder.h"
#include "runtime-lib/tokenizer/Model.h"
#include "runtime-lib/tokenizer/Normalizer.h"
#include "runtime-lib/tokenizer/PreTokenizer.h"
#include "runtime-lib/tokenizer/Utf8.h"

#include <exception>
#include <unordered_map>

namespace mcc {

namespace tokenizer {

struct TokenizerState {
  Image image;
  std::unique_ptr<Model> model;
  std::vector<int32_t> before, after;
  Normalizer normalizer;
  PreTokenizer preTokenizer;
  Decoder decoder;
  AddedTokens added;
  std::unordered_map<std::string_view, int32_t> addedIds; ///< those the model's vocabulary lacks
  std::unordered_map<int32_t, std::string_view> shown; ///< tokens decoded as another text than their own
  uint32_t size = 0;

  bool read(std::string &error);
  bool encode(std::string_view text, bool addSpecial, std::vector<int32_t> &ids, std::string &error) const;
  bool isToken(int32_t id) const {
    return id >= 0 && uint32_t(id) < image.tokenCount() && !(image.flags(uint32_t(id)) & tokenAbsent);
  }
};

struct StreamState {
  const TokenizerState &tokenizer;
  Decoder::Run run;
  std::string push(int32_t id, bool skipSpecial) {
    if (!tokenizer.isToken(id))
      return {};
    uint8_t flags = tokenizer.image.flags(uint32_t(id));
    if (skipSpecial && (flags & tokenSpecial))
      return {};
    auto other = tokenizer.shown.empty() ? tokenizer.shown.end() : tokenizer.shown.find(id);
    return run.push(other == tokenizer.shown.end() ? tokenizer.image.text(uint32_t(id)) : other->second, flags);
  }
};

static bool readIds(SettingsReader &settings, uint32_t tokens, std::vector<int32_t> &ids) {
  for (uint32_t left = settings.readCount(); left && settings.ok(); --left) {
    uint32_t id = settings.readWord();
    if (id >= tokens)
      return false;
    ids.push_back(int32_t(id));
  }
  return settings.ok();
}

bool TokenizerState::read(std::string &error) {
  SettingsReader settings(image.settings());
  model = Model::read(settings, image, error);
  if (!model)
    return false;
  AddedMatching matching = settings.readEnum(AddedMatching::LongestFirst);
  if (!readIds(settings, image.tokenCount(), before) || !readIds(settings, image.tokenCount(), after)) {
    error = "the serialised tokenizer puts ids outside its " + std::to_string(image.tokenCount()) +
            " tokens around a text";
    return false;
  }
  if (!normalizer.read(settings, image, error) || !preTokenizer.read(settings, error) ||
      !decoder.read(settings, error) || !added.read(settings, image, matching, error))
    return false;
  for (uint32_t left = settings.readCount(); left && settings.ok(); --left) {
    int32_t id = int32_t(settings.readWord());
    shown[id] = settings.readText();
  }
  if (!settings.ok() || !settings.atEnd()) {
    error = "the serialised tokenizer has damaged settings";
    return false;
  }
  if (preTokenizer.leavesBytes())
    model->takeBytes();
  for (uint32_t id = 0; id < image.tokenCount(); ++id)
    if (!(image.flags(id) & tokenAbsent)) {
      size = id + 1;
      if (!image.text(id).empty() && (image.flags(id) & tokenAdded))
        addedIds.emplace(image.text(id), int32_t(id));
    }
  return true;
}

/// Encodes what is between added tokens.
bool TokenizerState::encode(std::string_view text, bool addSpecial, std::vector<int32_t> &ids,
                            std::string &error) const {
  ModelWorkspace work(text.size());
  bool modelOk = true;
  PreTokenizer::Run run(preTokenizer, [&](std::string_view piece) {
    modelOk = modelOk && model->encode(piece, work, ids);
  });
  if (addSpecial)
    ids.insert(ids.end(), before.begin(), before.end());
  std::vector<Segment> outer, inner;
  std::string rewritten;
  added.divide(text, false, outer);
  for (const Segment &part : outer) {
    if (part.token >= 0) {
      ids.push_back(part.token);
      continue;
    }
    std::string_view piece = text.substr(part.begin, part.end - part.begin);
    bool ok = true, atStart = part.begin == 0;
    if (!normalizer.empty()) {
      rewritten = piece;
      ok = normalizer.run(rewritten, atStart);
      piece = rewritten;
    }
    if (ok)
      added.divide(piece, true, inner);
    for (size_t i = 0; ok && i < inner.size(); ++i) {
      if (inner[i].token >= 0)
        ids.push_back(inner[i].token);
      else
        ok = run.cut(piece.substr(inner[i].begin, inner[i].end - inner[i].begin), atStart && inner[i].begin == 0);
    }
    if (!ok)
      error = "a pattern of the tokenizer needs more work for this text than its limit allows";
    else if (!modelOk)
      error = "a character of the text has no token, and the tokenizer has no unknown token";
    if (!error.empty())
      return false;
  }
  if (addSpecial)
    ids.insert(ids.end(), after.begin(), after.end());
  return true;
}

} // namespace tokenizer

using namespace tokenizer;

Tokenizer::Tokenizer(std::unique_ptr<TokenizerState> state) : state(std::move(state)) {}
Tokenizer::~Tokenizer() = default;

std::unique_ptr<Tokenizer> Tokenizer::load(const uint8_t *data, size_t bytes, std::string &error) {
  error.clear();
  try {
    std::optional<Image> image = Image::open({data, bytes}, error);
    if (!image)
      return nullptr;
    auto state = std::make_unique<TokenizerState>();
    state->image = *image;
    if (state->read(error))
      return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(state)));
  } catch (const std::exception &failure) {
    error = std::string("loading the tokenizer: ") + failure.what();
  }
  return nullptr;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool addSpecial, std::string *error) const {
  std::vector<int32_t> ids;
  std::string problem;
  try {
    std::string repaired;
    if (!isUtf8(text))
      text = repaired = replaceIllFormed(text);
    // Positions inside a piece are 32-bit; no prompt comes near.
    if (text.size() >= size_t(1) << 30)
      problem = "the text has " + std::to_string(text.size()) + " bytes; at most 1073741823 can be encoded at once";
    else if (state->encode(text, addSpecial, ids, problem))
      return ids;
  } catch (const std::exception &failure) {
    problem = std::string("encoding: ") + failure.what();
  }
  if (error)
    *error = problem;
  return {};
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skipSpecial) const {
  try {
    StreamState stream{*state, Decoder::Run(state->decoder)};
    std::string text;
    for (int32_t id : ids)
      text += stream.push(id, skipSpecial);
    return text += stream.run.finish();
  } catch (const std::exception &) {
    return {};
  }
}

int64_t Tokenizer::size() const { return state->size; }

std::string_view Tokenizer::tokenText(int32_t id) const {
  return state->isToken(id) ? state->image.text(uint32_t(id)) : std::string_view();
}

int32_t Tokenizer::tokenId(std::string_view text) const {
  int32_t id = state->image.find(text);
  if (state->isToken(id))
    return id;
  auto found = state->addedIds.find(text);
  return found == state->addedIds.end() ? -1 : found->second;
}

bool Tokenizer::isSpecial(int32_t id) const {
  return state->isToken(id) && (state->image.flags(uint32_t(id)) & tokenSpecial);
}

StreamDecoder::StreamDecoder(const Tokenizer &tokenizer) {
  try {
    state.reset(new StreamState{*tokenizer.state, Decoder::Run(tokenizer.state->decoder)});
  } catch (const std::exception &) {
    // Out of memory: the decoder then gives no text.
  }
}
StreamDecoder::~StreamDecoder() = default;
StreamDecoder::StreamDecoder(StreamDecoder &&) noexcept = default;
StreamDecoder &StreamDecoder::operator=(StreamDecoder &&) noexcept = default;

std::string StreamDecoder::next(int32_t id) {
  try {
    return state ? state->push(id, true) : std::string();
  } catch (const std::exception &) {
    return {};
  }
}

std::string StreamDecoder::finish() {
  try {
    return state ? state->run.finish() : std::string();
  } catch (const std::exception &) {
    return {};
  }
}

} // namespace mcc
