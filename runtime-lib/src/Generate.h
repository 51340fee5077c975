// Greedy generation from a prompt.
#pragma once

#include "runtime-lib/src/Session.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace mcc::runtime {

/// Why generation ended.
enum class Stop {
  Length,    ///< as many tokens as asked for
  EndOfText, ///< the model chose one of its end tokens
  Context,   ///< the cache is full
  Consumer,  ///< a hook returned false
};

/// Returns "length", "eos", "context" or "interrupted".
const char *stopName(Stop stop);

/// What to generate.
struct Request {
  std::span<const int32_t> prompt; ///< not empty
  int64_t newTokens = 0;
  bool ignoreEos = false;
};

/// Called as generation goes on; either may be empty. Returning false ends it.
struct Hooks {
  /// Gets the logits [vocabulary] after the prompt and after each generated token that was fed back:
  /// row i chose token i. Called before the token is looked at.
  std::function<bool(std::span<const float>)> onLogits;
  /// Gets every generated token; not the end token that stopped generation.
  std::function<bool(int32_t)> onToken;
};

/// What came out.
struct Generation {
  std::vector<int32_t> tokens;
  Stop stop = Stop::Length;
  double promptSeconds = 0; ///< until the first token was chosen
  double decodeSeconds = 0; ///< all later steps
  int64_t decodeSteps = 0;
};

/// Resets the session and generates. Fails as Session::prefill does, naming the step.
Result<Generation> generate(Session &session, const Request &request, const Hooks &hooks);

} // namespace mcc::runtime
