// The normalizers, pre-tokenizers, post-processors and decoders of a tokenizer.json.
#pragma once

#include "compiler/Tokenizer/JsonFields.h"
#include "compiler/Tokenizer/TokenizerImage.h"

namespace mcc {

/// Each appends the steps of `value` (a Sequence is flattened) to the description, or records a problem.
void importNormalizer(JsonProblem &problem, const JsonValue &value, TokenizerDescription &description);
void importPreTokenizer(JsonProblem &problem, const JsonValue &value, TokenizerDescription &description);
void importDecoder(JsonProblem &problem, const JsonValue &value, TokenizerDescription &description);
/// Wraps the ids that are put around a text so far.
void importPostProcessor(JsonProblem &problem, const JsonValue &value, TokenizerDescription &description);

/// The pattern of byte-level pre-tokenizers, in Oniguruma's syntax.
extern const char *const byteLevelPattern;

/// Appends a split by a pattern in Oniguruma's syntax, which must be known to be right.
void addRegexSplit(TokenizerDescription &description, llvm::StringRef pattern, tokenizer::SplitBehavior behavior);

} // namespace mcc
