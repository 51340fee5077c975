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
  nlohmann::ordered_json &limits = info["limits"];
  limits["context"] = model.context;
  limits["chunk"] = model.chunk;
  limits["vocabulary"] = model.vocabulary;
  limits["weights_bytes"] = model.blobBytes;
  limits["cache_bytes"] = model.cacheBytes;
  limits["arena_bytes"] = model.arenaBytes;
  limits["scratch_bytes_per_thread"] = model.scratchBytes;
  info["weights_id"] = hex(model.blobId);
  info["cpu_features"] = model.cpuFeatures;
  info["bos_token"] = model.bosToken;
  info["eos_tokens"] = std::vector<int32_t>(model.eosTokens, model.eosTokens + model.eosCount);
  return info;
}

} // namespace mcc::runtime
