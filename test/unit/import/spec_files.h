// Helpers of the spec tests: read JSON texts, and name the first error.
#pragma once

#include "compiler/Import/HuggingFaceConfig.h"
#include "compiler/Import/SpecJson.h"

#include "llvm/Support/Error.h"

#include <string>

namespace mcc::test {

/// Returns the document of `text`, which must be JSON.
inline JsonDocument json(const std::string &text, const std::string &file = "config.json") {
  return llvm::cantFail(JsonDocument::parse(text, file));
}

/// Returns the spec of a config, which must be accepted.
inline ModelSpec configSpec(const std::string &text) { return llvm::cantFail(readHuggingFaceConfig(json(text))); }

/// Returns the message about a config, or "" where it is accepted.
inline std::string configError(const std::string &text) {
  llvm::Expected<ModelSpec> spec = readHuggingFaceConfig(json(text));
  return spec ? "" : llvm::toString(spec.takeError());
}

/// Returns the message about a spec, or "" where it is accepted.
inline std::string specError(const std::string &text) {
  llvm::Expected<ModelSpec> spec = readSpec(json(text, "spec.json"));
  return spec ? "" : llvm::toString(spec.takeError());
}

/// Returns `text` with the first `from` replaced by `to`; `from` must occur.
inline std::string replaced(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  if (at == std::string::npos)
    std::abort();
  return text.replace(at, from.size(), to);
}

} // namespace mcc::test
