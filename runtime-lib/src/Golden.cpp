// Reading golden files. The keys that matter are checked one by one with their place; unknown keys are notes of
// whoever made the file ("reference", "dtype") and are ignored.
#include "runtime-lib/src/Golden.h"

#include "runtime-lib/src/Text.h"

namespace mcc::runtime {

using nlohmann::json;
using Path = std::vector<JsonStep>;

static Path extend(Path path, JsonStep step) {
  path.push_back(step);
  return path;
}

static Failure expected(const JsonDocument &document, const Path &path, const char *name, const char *kind,
                        const json &value) {
  return document.failure(path, concat("'", name, "' must be ", kind, ", not ", value.type_name()));
}

Result<std::vector<int32_t>> readTokens(const JsonDocument &document, const json &value, Path path,
                                        int64_t vocabulary) {
  const std::string name(path.empty() ? std::string_view("tokens") : path.back().key);
  if (!value.is_array())
    return expected(document, path, name.c_str(), "an array of token ids", value);
  std::vector<int32_t> tokens;
  tokens.reserve(value.size());
  for (size_t i = 0; i < value.size(); ++i) {
    const json &id = value[i];
    if (!id.is_number_integer())
      return document.failure(extend(path, i), concat("'", name, "[", i, "]' must be a token id, not ",
                                                      id.is_number() ? dumpJson(id) : std::string(id.type_name())));
    const bool inside = id.is_number_unsigned() ? id.get<uint64_t>() < uint64_t(vocabulary) : false;
    if (!inside)
      return document.failure(extend(path, i),
                              concat("'", name, "[", i, "]' is ", dumpJson(id), "; the vocabulary has ", vocabulary,
                                     " ids, 0 to ", vocabulary - 1));
    tokens.push_back(id.get<int32_t>());
  }
  return tokens;
}

/// Reads `object[key]`, an optional array of `count` numbers.
template <typename Number>
static Result<std::vector<Number>> readNumbers(const JsonDocument &document, const json &object, const Path &path,
                                               const char *key, size_t count, const char *countName) {
  std::vector<Number> numbers;
  if (!object.contains(key))
    return numbers;
  const Path here = extend(path, key);
  const json &value = object[key];
  if (!value.is_array())
    return expected(document, here, key, "an array of numbers", value);
  if (value.size() != count)
    return document.failure(here, concat("'", key, "' has ", value.size(), " numbers; ", countName, " ", count));
  numbers.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    if (!value[i].is_number())
      return document.failure(extend(here, i),
                              concat("'", key, "[", i, "]' must be a number, not ", value[i].type_name()));
    numbers.push_back(value[i].get<Number>());
  }
  return numbers;
}

static Result<std::optional<std::string>> readText(const JsonDocument &document, const json &object, const Path &path,
                                                   const char *key) {
  if (!object.contains(key))
    return std::optional<std::string>();
  if (!object[key].is_string())
    return expected(document, extend(path, key), key, "a string", object[key]);
  return std::optional(object[key].get<std::string>());
}

/// Reads the tokens of a sequence and checks that they fit the context.
static Status readSequenceTokens(const JsonDocument &document, const json &object, const Path &path, int64_t vocabulary,
                                 int64_t context, GoldenSequence &sequence) {
  for (const char *key : {"prompt", "expect"}) {
    if (!object.contains(key))
      return document.failure(path, concat("sequence has no '", key, "'"));
    Result<std::vector<int32_t>> tokens = readTokens(document, object[key], extend(path, key), vocabulary);
    if (!tokens.ok())
      return tokens.failure();
    if (tokens.value().empty())
      return document.failure(extend(path, key), concat("'", key, "' is empty"));
    (key[0] == 'p' ? sequence.prompt : sequence.expect) = std::move(tokens.value());
  }
  // The last expected token is chosen, not fed back.
  const size_t needed = sequence.prompt.size() + sequence.expect.size() - 1;
  if (needed > size_t(context))
    return document.failure(path, concat("sequence needs ", needed, " cache positions (", sequence.prompt.size(),
                                         " of the prompt, ", sequence.expect.size() - 1,
                                         " fed back); the program has a context of ", context));
  return {};
}

static Result<GoldenSequence> readSequence(const JsonDocument &document, const json &object, const Path &path,
                                           int64_t vocabulary, int64_t context) {
  GoldenSequence sequence;
  if (!object.is_object())
    return expected(document, path, "sequences[]", "an object", object);
  if (Status status = readSequenceTokens(document, object, path, vocabulary, context, sequence); !status.ok())
    return Failure{status.message()};
  Result<std::vector<double>> margin =
      readNumbers<double>(document, object, path, "margin", sequence.expect.size(), "'expect' has");
  if (!margin.ok())
    return margin.failure();
  Result<std::vector<float>> logits =
      readNumbers<float>(document, object, path, "last_logits", size_t(vocabulary), "the vocabulary has");
  if (!logits.ok())
    return logits.failure();
  Result<std::optional<std::string>> text = readText(document, object, path, "text");
  if (!text.ok())
    return text.failure();
  Result<std::optional<std::string>> expectText = readText(document, object, path, "expect_text");
  if (!expectText.ok())
    return expectText.failure();
  sequence.margin = std::move(margin.value());
  sequence.lastLogits = std::move(logits.value());
  sequence.text = std::move(text.value());
  sequence.expectText = std::move(expectText.value());
  return sequence;
}

Result<Golden> readGolden(const JsonDocument &document, int64_t vocabulary, int64_t context) {
  const json &root = document.root();
  if (!root.is_object() || !root.contains("sequences") || !root["sequences"].is_array())
    return document.failure({}, "a golden file is an object with an array 'sequences'");
  Golden golden;
  const json &sequences = root["sequences"];
  if (sequences.empty())
    return document.failure(Path{"sequences"}, "'sequences' is empty; nothing would be checked");
  for (size_t i = 0; i < sequences.size(); ++i) {
    Result<GoldenSequence> sequence = readSequence(document, sequences[i], Path{"sequences", i}, vocabulary, context);
    if (!sequence.ok())
      return sequence.failure();
    golden.sequences.push_back(std::move(sequence.value()));
  }
  Result<std::vector<float>> logits =
      readNumbers<float>(document, root, {}, "logits", size_t(vocabulary), "the vocabulary has");
  if (!logits.ok())
    return logits.failure();
  golden.logits = std::move(logits.value());
  if (!golden.logits.empty() && golden.sequences.size() < 2)
    return document.failure(Path{"logits"}, "'logits' belong to sequences[1]; there is 1 sequence");
  return golden;
}

} // namespace mcc::runtime
