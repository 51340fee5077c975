// Golden files: what a model has to answer.
#pragma once

#include "runtime-lib/src/JsonDocument.h"
#include "runtime-lib/src/Result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mcc::runtime {

/// One prompt and its greedy continuation.
struct GoldenSequence {
  std::vector<int32_t> prompt;
  std::vector<int32_t> expect;
  std::vector<double> margin;            ///< top1 - top2 logit per step; empty where not recorded
  std::vector<float> lastLogits;         ///< [vocabulary], those that chose the last of `expect`; or empty
  std::optional<std::string> text;       ///< what `prompt` was encoded from
  std::optional<std::string> expectText; ///< what `expect` decodes to
};

/// A golden file. Every id is within the vocabulary and every sequence fits the context.
struct Golden {
  std::vector<GoldenSequence> sequences;
  std::vector<float> logits; ///< [vocabulary], after the prompt of sequences[1]; or empty
};

/// Reads a parsed golden file for a model of `vocabulary` ids and `context` positions. Messages begin with
/// path:line:column.
Result<Golden> readGolden(const JsonDocument &document, int64_t vocabulary, int64_t context);

/// Reads an array of token ids at `steps`, each within the vocabulary; `value` is what stands there.
Result<std::vector<int32_t>> readTokens(const JsonDocument &document, const nlohmann::json &value,
                                        std::vector<JsonStep> steps, int64_t vocabulary);

} // namespace mcc::runtime
