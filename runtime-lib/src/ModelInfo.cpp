// Reads the JSON object that the compiler put into the model's object file.
#include "runtime-lib/src/ModelInfo.h"

#include "runtime-lib/src/Json.h"
#include "runtime-lib/src/Text.h"

namespace mcc::runtime {

std::optional<std::string> infoText(const MccModel &model, const char *key) {
  const nlohmann::json info = nlohmann::json::parse(model.info, nullptr, /*allow_exceptions=*/false);
  if (!info.is_object() || !info.contains(key) || !info[key].is_string())
    return std::nullopt;
  return info[key].get<std::string>();
}

nlohmann::ordered_json describeModel(const MccModel &model) {
  nlohmann::ordered_json info = nlohmann::ordered_json::parse(model.info, nullptr, /*allow_exceptions=*/false);
  if (!info.is_object())
    info = nlohmann::ordered_json::object();
  info["context"] = model.context;
  info["chunk"] = model.chunk;
  info["vocabulary"] = model.vocabulary;
  info["bos"] = model.bosToken;
  info["eos"] = std::vector<int32_t>(model.eosTokens, model.eosTokens + model.eosCount);
  info["weights"] = {{"id", hex(model.blobId)}, {"bytes", model.blobBytes}};
  info["memory"] = {{"arena", model.arenaBytes}, {"cache", model.cacheBytes}, {"scratchPerThread", model.scratchBytes}};
  info["cpuFeatures"] = model.cpuFeatures;
  return info;
}

} // namespace mcc::runtime
