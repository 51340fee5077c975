// The greedy loop. The prompt's last row chooses the first token; each chosen token is fed back only if another
// one is wanted, so n tokens cost n - 1 decode steps and need prompt + n - 1 cache positions.
#include "runtime-lib/src/Generate.h"

#include "runtime-lib/src/Text.h"

#include <algorithm>
#include <chrono>

namespace mcc::runtime {

const char *stopName(Stop stop) {
  switch (stop) {
  case Stop::Length:
    return "length";
  case Stop::EndOfText:
    return "eos";
  case Stop::Context:
    return "context";
  case Stop::Consumer:
    break;
  }
  return "interrupted";
}

static double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

static bool isEndToken(const MccModel &model, int32_t token) {
  return std::find(model.eosTokens, model.eosTokens + model.eosCount, token) != model.eosTokens + model.eosCount;
}

/// Looks at the step just run; returns why generation ends here, if it does.
static std::optional<Stop> consume(Session &session, const Request &request, const Hooks &hooks,
                                   Generation &result) {
  if (hooks.onLogits && !hooks.onLogits(session.logits()))
    return Stop::Consumer;
  const auto wanted = static_cast<size_t>(request.newTokens);
  if (result.tokens.size() >= wanted)
    return Stop::Length;
  const int32_t token = session.token();
  if (!request.ignoreEos && isEndToken(session.model(), token))
    return Stop::EndOfText;
  result.tokens.push_back(token);
  if (hooks.onToken && !hooks.onToken(token))
    return Stop::Consumer;
  if (result.tokens.size() >= wanted)
    return Stop::Length;
  if (session.position() >= session.model().context)
    return Stop::Context;
  return std::nullopt;
}

Result<Generation> generate(Session &session, const Request &request, const Hooks &hooks) {
  Generation result;
  session.reset();
  auto start = std::chrono::steady_clock::now();
  // How many further steps are sure to follow: all, but none where someone looks at the logits in between.
  const auto ahead = [&] {
    const int64_t wanted = request.newTokens - 1 - static_cast<int64_t>(result.tokens.size());
    return hooks.onLogits ? 0 : std::max<int64_t>(wanted, 0);
  };
  if (Status status = session.prefill(request.prompt, ahead()); !status.ok())
    return Failure{status.message()};
  result.promptSeconds = secondsSince(start);
  while (true) {
    if (const std::optional<Stop> stop = consume(session, request, hooks, result)) {
      result.stop = *stop;
      return result;
    }
    start = std::chrono::steady_clock::now();
    if (Status status = session.decode(result.tokens.back(), ahead()); !status.ok())
      return Failure{concat(status.message(), " (decode step ", result.decodeSteps + 1, " after a prompt of ",
                            request.prompt.size(), " tokens)")};
    result.decodeSeconds += secondsSince(start);
    ++result.decodeSteps;
  }
}

} // namespace mcc::runtime
