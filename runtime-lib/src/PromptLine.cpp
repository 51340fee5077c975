// One line of JSON Lines into a request. A misspelt key is an error, so that `"m": 5` is not silently ignored.
#include "runtime-lib/src/PromptLine.h"

#include "runtime-lib/src/Golden.h"
#include "runtime-lib/src/JsonDocument.h"
#include "runtime-lib/src/Text.h"

namespace mcc::runtime {

using nlohmann::json;
using Path = std::vector<JsonStep>;

static Status readCount(const JsonDocument &document, const json &object, PromptLine &line) {
  if (!object.contains("n"))
    return {};
  const json &count = object["n"];
  if (!count.is_number_unsigned() || count.get<uint64_t>() > uint64_t(INT32_MAX))
    return document.failure(Path{"n"},
                            concat("'n' must be a count of tokens from 0 to ", INT32_MAX, ", not ", dumpJson(count)));
  line.newTokens = count.get<int64_t>();
  return {};
}

static Result<PromptLine> readObject(const JsonDocument &document, int64_t vocabulary) {
  const json &root = document.root();
  for (const auto &[key, value] : root.items())
    if (key != "prompt" && key != "tokens" && key != "n")
      return document.failure(Path{std::string_view(key)},
                              concat("unknown key '", key, "'; known: 'prompt', 'tokens', 'n'"));
  if (root.contains("prompt") == root.contains("tokens"))
    return document.failure({}, "an object needs either 'prompt' or 'tokens'");
  PromptLine line;
  if (Status status = readCount(document, root, line); !status.ok())
    return Failure{status.message()};
  if (root.contains("tokens")) {
    Result<std::vector<int32_t>> tokens = readTokens(document, root["tokens"], Path{"tokens"}, vocabulary);
    if (!tokens.ok())
      return tokens.failure();
    line.prompt = std::move(tokens.value());
    return line;
  }
  if (!root["prompt"].is_string())
    return document.failure(Path{"prompt"}, concat("'prompt' must be a string, not ", root["prompt"].type_name()));
  line.prompt = root["prompt"].get<std::string>();
  return line;
}

Result<PromptLine> parsePromptLine(const std::string &path, int64_t number, const std::string &line,
                                   int64_t vocabulary) {
  Result<JsonDocument> parsed = JsonDocument::parse(path, line, number);
  if (!parsed.ok())
    return parsed.failure();
  const json &root = parsed.value().root();
  if (root.is_string())
    return PromptLine{root.get<std::string>(), std::nullopt};
  if (root.is_object())
    return readObject(parsed.value(), vocabulary);
  return parsed.value().failure({}, concat("a line must be a string or an object, not ", root.type_name()));
}

} // namespace mcc::runtime
