// The measurement. Decode steps are timed together, as a generating program runs them; the median is over repetitions.
#include "runtime-lib/src/Bench.h"

#include "runtime-lib/src/Text.h"

#include <algorithm>
#include <chrono>

namespace mcc::runtime {

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static double medianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

/// One prompt and its steps. Returns seconds of the prompt and of a step.
static Result<std::pair<double, double>> runOnce(Session &session, std::span<const int32_t> prompt, int64_t steps) {
  session.reset();
  const double start = now();
  if (Status status = session.prefill(prompt, steps); !status.ok())
    return Failure{status.message()};
  const double between = now();
  for (int64_t i = 0; i < steps; ++i)
    if (Status status = session.decode(session.token(), steps - i - 1); !status.ok())
      return Failure{status.message()};
  return std::pair(between - start, (now() - between) / double(std::max<int64_t>(steps, 1)));
}

Result<BenchResult> runBench(Session &session, int64_t promptTokens, int64_t steps) {
  constexpr int repeats = 5;
  BenchResult result{promptTokens, steps, 0, 0, 0, session.threads(), session.gpuMachine() != nullptr, 0, 0};
  if (result.gpu) {
    result.uploadSeconds = session.gpuMachine()->uploadSeconds();
    result.uploadBytes = double(session.gpuMachine()->uploadedBytes());
  }
  std::vector<int32_t> prompt;
  for (int64_t i = 0; i < promptTokens; ++i)
    prompt.push_back(static_cast<int32_t>((i * 7919 + 1) % session.model().vocabulary));
  std::vector<double> prefills, decodes;
  for (int i = 0; i <= repeats; ++i) {
    Result<std::pair<double, double>> once = runOnce(session, prompt, steps);
    if (!once.ok())
      return once.failure();
    if (i == 0) {
      result.firstPrefill = once.value().first;
      continue;
    }
    prefills.push_back(once.value().first);
    decodes.push_back(once.value().second);
  }
  result.prefill = medianOf(prefills);
  result.decode = medianOf(decodes);
  return result;
}

nlohmann::ordered_json benchToJson(const BenchResult &r) {
  nlohmann::ordered_json json;
  json["prompt_tokens"] = r.promptTokens;
  json["steps"] = r.steps;
  json["first_prefill_ms"] = r.firstPrefill * 1e3;
  json["prefill_ms"] = r.prefill * 1e3;
  json["decode_ms"] = r.decode * 1e3;
  json["threads"] = r.threads;
  json["gpu"] = r.gpu;
  if (r.gpu) {
    json["upload_s"] = r.uploadSeconds;
    json["upload_gb_s"] = r.uploadBytes * 1e-9 / std::max(r.uploadSeconds, 1e-9);
  }
  return json;
}

std::string describeBench(const BenchResult &r) {
  std::string text = concat("prefill of ", r.promptTokens, " tokens: ", r.prefill * 1e3, " ms (", double(r.promptTokens) / r.prefill,
                            " tokens/s), the first time ", r.firstPrefill * 1e3, " ms\n");
  if (r.steps > 0)
    text += concat("decode: ", r.decode * 1e3, " ms a token (", 1 / r.decode, " tokens/s), ", r.steps, " steps\n");
  if (r.gpu)
    text += concat("upload: ", r.uploadBytes * 1e-9, " GB in ", r.uploadSeconds, " s (", r.uploadBytes * 1e-9 / std::max(r.uploadSeconds, 1e-9), " GB/s)\n");
  return text;
}

} // namespace mcc::runtime
