// Hugging Face's config.json, in the spellings of transformers 4 and 5, as a ModelSpec.
#pragma once

#include "compiler/Import/ModelSpec.h"
#include "compiler/Support/LocatedJson.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

#include <vector>

namespace mcc {

/// Reads a config.json of a known family. `generation`, where not null, is the generation_config.json beside it: its
/// end-of-text tokens are added. Keys that cannot change the result are ignored; a key, or a value of one, that
/// can and is not understood is an error at file:line:column. The result has no problem (see findProblem).
llvm::Expected<ModelSpec> readHuggingFaceConfig(const JsonDocument &config, const JsonDocument *generation = nullptr);

/// Published checkpoints may leave out the base model's prefix ("transformer.", "model."). Where `has` knows the
/// embedding only by its name without the prefix, removes the prefix from every name of `spec`.
void fitTensorPrefix(ModelSpec &spec, llvm::function_ref<bool(llvm::StringRef name)> has);

/// Returns every `model_type` that is understood, sorted, aliases included.
std::vector<llvm::StringRef> knownModelTypes();

} // namespace mcc
