// Judging a model against a golden file.
#pragma once

#include "runtime-lib/src/Golden.h"
#include "runtime-lib/src/Json.h"
#include "runtime-lib/src/Session.h"
#include "runtime-lib/tokenizer/Tokenizer.h"

#include <optional>
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

/// Runs every sequence greedily from an empty state until its first difference, past end tokens, and compares the
/// recorded texts with `tokenizer`, which may be null. Fails where a step fails, naming the sequence.
Result<CheckReport> checkGolden(Session &session, const Golden &golden, const Tokenizer *tokenizer,
                                const CheckTolerance &tolerance);

/// Compares logits; the sizes must be equal.
LogitDifference compareLogits(std::span<const float> found, std::span<const float> expected, double tolerance);

/// Returns the report as lines of text, the last a summary that begins with `path`.
std::string describeReport(const CheckReport &report, const std::string &path, const CheckTolerance &tolerance);

/// Returns the report as an object.
nlohmann::ordered_json reportToJson(const CheckReport &report);

} // namespace mcc::runtime
