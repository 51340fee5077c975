// manifest.json and the model's info: what was compiled, from what, for what.
#pragma once

#include "compiler/Import/ModelSpec.h"
#include "dialects/Exec/IR/ExecOps.h"

#include <array>
#include <optional>
#include <string>

namespace mcc {

/// What a plan is predicted to cost, and by which machine's calibration; times are those of the whole expected work.
struct PredictedCost {
  double opsNs, copiesNs, uploadsNs;
  double boundNs; ///< no plan that fits costs less
  uint64_t gpuBytes;
  int64_t expectPrompt, expectNew; ///< tokens
  std::string cpu;
  int64_t threads;
  std::string gpu, driver, link; ///< empty: none
};

/// Facts of one compilation. No path, time or host name: the same input gives the same text.
struct ManifestFacts {
  const ModelSpec &spec;
  exec::ProgramOp program;
  std::array<uint8_t, 16> blobId;
  uint64_t blobBytes;
  std::string targetCpu;
  bool tokenizer;
  std::optional<PredictedCost> predicted; ///< of the plan, where a calibration was given
};

/// Returns the JSON object that `out/model --info` shows.
std::string modelInfo(const ManifestFacts &facts);
/// Returns manifest.json: the info, and the plan with a device for every launch and what it is predicted to cost.
std::string manifest(const ManifestFacts &facts);

} // namespace mcc
