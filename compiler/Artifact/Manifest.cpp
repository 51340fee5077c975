// manifest.json and the model's info. See Manifest.h.
#include "compiler/Artifact/Manifest.h"

#include "compiler/Import/SpecJson.h"
#include "dialects/Exec/IR/ProgramTable.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"
#include "mcc/Blob.h"
#include "mcc/Model.h"

#include <nlohmann/json.hpp>

using Json = nlohmann::ordered_json;

namespace mcc {

static std::string hex(llvm::ArrayRef<uint8_t> bytes) { return llvm::toHex(bytes, /*LowerCase=*/true); }

static Json describe(const ManifestFacts &facts) {
  exec::ProgramOp program = facts.program;
  ModelSize size = modelSize(facts.spec);
  uint64_t specDigest = llvm::xxh3_64bits(printSpec(facts.spec));
  Json json;
  json["compiler"] = "mcc " MCC_VERSION;
  json["abi"] = MCC_ABI_VERSION;
  json["family"] = facts.spec.family;
  json["layers"] = facts.spec.layers.size();
  json["parameters"] = size.parameters;
  json["spec"] = llvm::utohexstr(specDigest, /*LowerCase=*/true, 16);
  json["weights"] = {{"id", hex(facts.blobId)}, {"bytes", facts.blobBytes}};
  json["targetCpu"] = facts.targetCpu;
  json["context"] = static_cast<int64_t>(program.getContext());
  json["vocabulary"] = static_cast<int64_t>(program.getVocabulary());
  json["tokenizer"] = facts.tokenizer;
  json["eos"] = facts.spec.eosTokens;
  return json;
}

static Json describe(const PredictedCost &cost) {
  return {{"expectPrompt", cost.expectPrompt},
          {"expectNew", cost.expectNew},
          {"totalNs", cost.opsNs + cost.copiesNs + cost.uploadsNs},
          {"opsNs", cost.opsNs},
          {"copiesNs", cost.copiesNs},
          {"uploadsNs", cost.uploadsNs},
          {"boundNs", cost.boundNs},
          {"gpuBytes", cost.gpuBytes},
          {"machine", {{"cpu", cost.cpu}, {"threads", cost.threads}, {"gpu", cost.gpu}, {"driver", cost.driver}, {"link", cost.link}}}};
}

static std::string dump(const Json &json, int indent) { return json.dump(indent, ' ', false, Json::error_handler_t::replace); }

std::string modelInfo(const ManifestFacts &facts) { return dump(describe(facts), -1); }

std::string manifest(const ManifestFacts &facts) {
  exec::ProgramOp program = facts.program;
  Json json = describe(facts);
  json["memory"] = {{"arena", *program.getArenaBytes()}, {"cache", *program.getCacheBytes()}, {"scratchPerThread", *program.getScratchBytes()}};
  Json plan = Json::array();
  program.walk([&](exec::LaunchOp launch) {
    std::string kernel = launch.getKernel().str() + (launch.getFormat() ? "." + launch.getFormat()->str() : "");
    plan.push_back({{"op", exec::placeName(launch.getLoc())}, {"kernel", kernel}, {"device", ir::stringifyDevice(launch.getDevice()).str()}});
  });
  json["plan"] = std::move(plan);
  if (facts.predicted)
    json["predicted"] = describe(*facts.predicted);
  return dump(json, 2) + "\n";
}

} // namespace mcc
