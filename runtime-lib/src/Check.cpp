// The judge. A sequence runs freely: the model's own tokens are fed back, which are the expected ones up to the
// first difference, where its judging ends. So logits recorded for the last token are only compared in a sequence
// whose earlier tokens were all equal; logits recorded after a prompt are always compared.
#include "runtime-lib/src/Check.h"

#include "runtime-lib/src/Generate.h"
#include "runtime-lib/src/Text.h"
#include "runtime-lib/src/TextPrompt.h"

namespace mcc::runtime {

static std::string joinIds(std::span<const int32_t> ids) {
  std::string text;
  for (int32_t id : ids)
    text += concat(text.empty() ? "" : ",", id);
  return text;
}

/// Compares the tokenizer with the recorded texts.
static std::vector<std::string> checkText(const GoldenSequence &sequence, const Tokenizer &tokenizer) {
  std::vector<std::string> faults;
  if (sequence.text) {
    Result<std::vector<int32_t>> ids = encodePrompt(tokenizer, *sequence.text, /*addSpecial=*/true);
    if (!ids.ok())
      faults.push_back(ids.message());
    else if (ids.value() != sequence.prompt)
      faults.push_back(concat("the text encodes to ", joinIds(ids.value()), "; expected ", joinIds(sequence.prompt)));
  }
  if (sequence.expectText) {
    const std::string text = tokenizer.decode(sequence.expect, /*skipSpecial=*/true);
    if (text != *sequence.expectText)
      faults.push_back(concat("the expected ids decode to ", dumpJson(nlohmann::json(text)), "; expected ",
                              dumpJson(nlohmann::json(*sequence.expectText))));
  }
  return faults;
}

namespace {

/// Where one sequence's logits are recorded and where the comparison goes.
struct Judge {
  const GoldenSequence &sequence;
  const CheckTolerance &tolerance;
  std::span<const float> promptLogits; ///< empty: none recorded
  SequenceReport report;
  std::optional<LogitDifference> logits;
  size_t rows = 0, tokens = 0;

  bool onLogits(std::span<const float> row) {
    if (rows == 0 && !promptLogits.empty())
      logits = compareLogits(row, promptLogits, tolerance.logit);
    if (rows + 1 == sequence.expect.size() && !sequence.lastLogits.empty())
      report.lastLogits = compareLogits(row, sequence.lastLogits, tolerance.logit);
    ++rows;
    return true;
  }

  bool onToken(int32_t token) {
    const size_t step = tokens++;
    if (token == sequence.expect[step])
      return true;
    recordDifference(sequence, step, token, tolerance, report);
    return false;
  }
};

} // namespace

Result<CheckReport> checkGolden(Session &session, const Golden &golden, const Tokenizer *tokenizer,
                                const CheckTolerance &tolerance) {
  CheckReport result;
  for (size_t i = 0; i < golden.sequences.size(); ++i) {
    const GoldenSequence &sequence = golden.sequences[i];
    Judge judge{sequence, tolerance, i == 1 ? std::span<const float>(golden.logits) : std::span<const float>(), {}, {}};
    judge.report.tokens = sequence.expect.size();
    const Request request{sequence.prompt, static_cast<int64_t>(sequence.expect.size()), /*ignoreEos=*/true};
    const Hooks hooks{[&judge](std::span<const float> row) { return judge.onLogits(row); },
                      [&judge](int32_t token) { return judge.onToken(token); }};
    Result<Generation> generated = generate(session, request, hooks);
    if (!generated.ok())
      return Failure{concat("sequences[", i, "]: ", generated.message())};
    if (tokenizer != nullptr)
      judge.report.textFaults = checkText(sequence, *tokenizer);
    else if (sequence.text || sequence.expectText)
      result.textUnchecked = true;
    if (judge.logits)
      result.logits = judge.logits;
    result.sequences.push_back(std::move(judge.report));
  }
  return result;
}

} // namespace mcc::runtime
