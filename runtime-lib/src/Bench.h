// --bench: how fast a model runs, with made-up tokens.
#pragma once

#include "runtime-lib/src/Json.h"
#include "runtime-lib/src/Session.h"

namespace mcc::runtime {

/// What one measurement took; times are seconds.
struct BenchResult {
  int64_t promptTokens = 0, steps = 0;
  double firstPrefill = 0;  ///< the first time: code and weights come in
  double prefill = 0;       ///< the median of the others
  double decode = 0;        ///< a step, the median over runs of all steps together
  int64_t threads = 0;
  bool gpu = false;
  double uploadSeconds = 0, uploadBytes = 0;
};

/// Runs `promptTokens` tokens and `steps` decode steps after them a few times. Fails where they do not fit the context.
Result<BenchResult> runBench(Session &session, int64_t promptTokens, int64_t steps);

nlohmann::ordered_json benchToJson(const BenchResult &result);
/// Returns lines for the reader.
std::string describeBench(const BenchResult &result);

} // namespace mcc::runtime
