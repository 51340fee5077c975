// manifest.json and the model's info: what was compiled, from what, for what.
#pragma once

#include "compiler/Import/ModelSpec.h"
#include "dialects/Exec/IR/ExecOps.h"

#include <array>
#include <string>

namespace mcc {

/// Facts of one compilation. No path, time or host name: the same input gives the same text.
struct ManifestFacts {
  const ModelSpec &spec;
  exec::ProgramOp program;
  std::array<uint8_t, 16> blobId;
  uint64_t blobBytes;
  std::string targetCpu;
  bool tokenizer;
};

/// Returns the JSON object that `out/model --info` shows.
std::string modelInfo(const ManifestFacts &facts);
/// Returns manifest.json: the info, and the plan with a device for every launch.
std::string manifest(const ManifestFacts &facts);

} // namespace mcc
