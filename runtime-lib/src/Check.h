// Judging a model against a golden file.
#pragma once

#include "runtime-lib/src/Judgement.h"
#include "runtime-lib/src/Session.h"
#include "runtime-lib/tokenizer/Tokenizer.h"

namespace mcc::runtime {

/// Runs every sequence greedily from an empty state until its first difference, past end tokens, and compares the
/// recorded texts with `tokenizer`, which may be null. Fails where a step fails, naming the sequence.
Result<CheckReport> checkGolden(Session &session, const Golden &golden, const Tokenizer *tokenizer,
                                const CheckTolerance &tolerance);

} // namespace mcc::runtime
