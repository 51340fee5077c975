#include "runtime-lib/src/Judgement.h"

#include <algorithm>
#include <cmath>

namespace mcc::runtime {

size_t CheckReport::count(Verdict verdict) const {
  return static_cast<size_t>(std::count_if(sequences.begin(), sequences.end(),
                                           [verdict](const SequenceReport &s) { return s.verdict == verdict; }));
}

bool CheckReport::ok() const {
  const auto sequenceOk = [](const SequenceReport &sequence) {
    return sequence.verdict != Verdict::Wrong && sequence.textFaults.empty() &&
           (!sequence.lastLogits || sequence.lastLogits->within);
  };
  return (!logits || logits->within) && std::all_of(sequences.begin(), sequences.end(), sequenceOk);
}

LogitDifference compareLogits(std::span<const float> found, std::span<const float> expected, double tolerance) {
  LogitDifference result;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::fabs(double(found[i]) - double(expected[i]));
    // Written so that NaN counts as the greatest difference of all.
    if (!(difference <= result.greatest)) {
      result.greatest = difference;
      result.index = static_cast<int64_t>(i);
    }
    if (std::isnan(difference))
      break;
  }
  result.within = result.greatest <= tolerance;
  return result;
}

void recordDifference(const GoldenSequence &sequence, size_t step, int32_t found, const CheckTolerance &tolerance,
                      SequenceReport &report) {
  report.step = static_cast<int64_t>(step);
  report.expected = sequence.expect[step];
  report.found = found;
  if (!sequence.margin.empty())
    report.margin = sequence.margin[step];
  report.verdict = report.margin && *report.margin < tolerance.margin ? Verdict::Tie : Verdict::Wrong;
}

SequenceReport judgeTokens(const GoldenSequence &sequence, std::span<const int32_t> found,
                           const CheckTolerance &tolerance) {
  SequenceReport report;
  report.tokens = sequence.expect.size();
  for (size_t step = 0; step < std::min(found.size(), sequence.expect.size()); ++step)
    if (found[step] != sequence.expect[step]) {
      recordDifference(sequence, step, found[step], tolerance, report);
      break;
    }
  return report;
}

} // namespace mcc::runtime
