// What the user named on the command line, opened: a spec, a checkpoint, a tokenizer.
#pragma once

#include "compiler/Import/Checkpoint.h"
#include "compiler/Import/ModelSpec.h"

#include "llvm/Support/Error.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mcc {

/// A model's inputs.
struct Source {
  ModelSpec spec;
  std::unique_ptr<Checkpoint> checkpoint; ///< null where only a spec was named (inspect)
  std::string tokenizer;                  ///< path of a tokenizer.json; empty: none, or the GGUF's own
  std::optional<int32_t> defaultBos;      ///< what texts begin with where tokenizer.json leaves it open
};

/// Opens `inputs` as `mcc` takes them: a model folder, a GGUF file, a checkpoint with a config.json beside it, or a spec
/// (config.json, or mcc's own) and a checkpoint (file, folder, or random:SEED[:FORMAT]). Tensors are checked against the spec.
/// `tokenizer`, where not empty, is used instead of what lies beside the inputs.
llvm::Expected<Source> openSource(const std::vector<std::string> &inputs, llvm::StringRef tokenizer);

/// Reads a spec file: mcc's own form, or a config.json with the generation_config.json beside it.
llvm::Expected<ModelSpec> readSpecFile(llvm::StringRef path);

/// Returns the spec that belongs to the checkpoint at `path` (its GGUF metadata, or the config.json beside it).
llvm::Expected<ModelSpec> specOfCheckpoint(llvm::StringRef path, const Checkpoint &checkpoint);

} // namespace mcc
