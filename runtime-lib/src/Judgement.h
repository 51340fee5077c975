// The judgement of tokens and logits against a golden file, whoever computed them.
#pragma once

#include "runtime-lib/src/Golden.h"
#include "runtime-lib/src/Json.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mcc::runtime {

/// What counts as equal.
struct CheckTolerance {
  double logit = 2e-3;  ///< greatest absolute difference of a logit
  double margin = 1e-3; ///< a first difference where the recorded margin is below this is a tie
};

/// Pass: every token equal. Tie: the first difference is where the reference was undecided. Wrong: any other.
enum class Verdict { Pass, Tie, Wrong };

/// How far computed logits are from recorded ones.
struct LogitDifference {
  double greatest = 0; ///< NaN where a logit is NaN
  int64_t index = 0;   ///< where the greatest is
  bool within = true;  ///< of the tolerance
};

/// The judgement of one sequence.
struct SequenceReport {
  Verdict verdict = Verdict::Pass;
  int64_t step = 0; ///< of the first difference
  int32_t expected = 0, found = 0;
  std::optional<double> margin; ///< recorded at that step
  size_t tokens = 0;
  std::optional<LogitDifference> lastLogits; ///< absent where not recorded or not reached
  std::vector<std::string> textFaults;       ///< what the tokenizer did differently
};

/// The judgement of a file.
struct CheckReport {
  std::vector<SequenceReport> sequences;
  std::optional<LogitDifference> logits;
  bool textUnchecked = false; ///< texts are recorded, but the model has no tokenizer

  size_t count(Verdict verdict) const;
  /// Returns whether nothing is wrong: tokens, logits and texts.
  bool ok() const;
};

/// Notes in `report` that `found` came at `step` where another token is expected.
void recordDifference(const GoldenSequence &sequence, size_t step, int32_t found, const CheckTolerance &tolerance,
                      SequenceReport &report);

/// Judges the tokens that something generated for `sequence`, as many as are expected or up to a difference.
SequenceReport judgeTokens(const GoldenSequence &sequence, std::span<const int32_t> found,
                           const CheckTolerance &tolerance);

/// Compares logits; the sizes must be equal.
LogitDifference compareLogits(std::span<const float> found, std::span<const float> expected, double tolerance);

/// Returns the report as lines of text, the last a summary that begins with `path`.
std::string describeReport(const CheckReport &report, const std::string &path, const CheckTolerance &tolerance);

/// Returns the report as an object.
nlohmann::ordered_json reportToJson(const CheckReport &report);

} // namespace mcc::runtime
