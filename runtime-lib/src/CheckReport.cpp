// The check's report as text and as JSON.
#include "runtime-lib/src/Judgement.h"
#include "runtime-lib/src/Text.h"

#include <cmath>

namespace mcc::runtime {

static const char *verdictName(Verdict verdict) {
  return verdict == Verdict::Pass ? "pass" : verdict == Verdict::Tie ? "tie" : "wrong";
}

static std::string describeDifference(const LogitDifference &difference, double tolerance) {
  return concat(difference.within ? "pass" : "wrong", ", greatest difference ", difference.greatest, " at index ",
                difference.index, "; tolerance ", tolerance);
}

static std::string describeTokens(const SequenceReport &sequence) {
  if (sequence.verdict == Verdict::Pass)
    return concat("pass, ", sequence.tokens, " tokens");
  return concat(verdictName(sequence.verdict), " at step ", sequence.step, " of ", sequence.tokens, ": expected ",
                sequence.expected, ", got ", sequence.found, "; ",
                sequence.margin ? concat("margin ", *sequence.margin) : std::string("no margin recorded"));
}

std::string describeReport(const CheckReport &report, const std::string &path, const CheckTolerance &tolerance) {
  std::string text;
  double greatest = 0;
  size_t compared = 0;
  const auto addLogits = [&](const std::string &name, const LogitDifference &difference) {
    text += concat(name, ": ", describeDifference(difference, tolerance.logit), '\n');
    // NaN is the greatest of all and stays.
    if (!std::isnan(greatest) && !(difference.greatest <= greatest))
      greatest = difference.greatest;
    ++compared;
  };
  for (size_t i = 0; i < report.sequences.size(); ++i) {
    const SequenceReport &sequence = report.sequences[i];
    const std::string name = concat("sequences[", i, "]");
    text += concat(name, ": ", describeTokens(sequence), '\n');
    if (i == 1 && report.logits)
      addLogits("logits", *report.logits);
    if (sequence.lastLogits)
      addLogits(name + ".last_logits", *sequence.lastLogits);
    for (const std::string &fault : sequence.textFaults)
      text += concat(name, ": wrong text: ", fault, '\n');
  }
  if (report.textUnchecked)
    text += "texts: not checked, this model has no tokenizer\n";
  text += concat(path, ": ", report.sequences.size(), " sequences: ", report.count(Verdict::Pass), " pass, ",
                 report.count(Verdict::Tie), " tie, ", report.count(Verdict::Wrong), " wrong");
  if (compared > 0)
    text += concat("; ", compared, " rows of logits, greatest difference ", greatest);
  return text + (report.ok() ? "; ok\n" : "; WRONG\n");
}

static nlohmann::ordered_json differenceToJson(const LogitDifference &difference) {
  nlohmann::ordered_json object;
  object["greatestDifference"] = difference.greatest;
  object["index"] = difference.index;
  object["withinTolerance"] = difference.within;
  return object;
}

nlohmann::ordered_json reportToJson(const CheckReport &report) {
  nlohmann::ordered_json object;
  object["ok"] = report.ok();
  for (Verdict verdict : {Verdict::Pass, Verdict::Tie, Verdict::Wrong})
    object[verdictName(verdict)] = report.count(verdict);
  object["sequences"] = nlohmann::ordered_json::array();
  for (const SequenceReport &sequence : report.sequences) {
    nlohmann::ordered_json item;
    item["verdict"] = verdictName(sequence.verdict);
    item["tokens"] = sequence.tokens;
    if (sequence.verdict != Verdict::Pass) {
      item["step"] = sequence.step;
      item["expected"] = sequence.expected;
      item["found"] = sequence.found;
      if (sequence.margin)
        item["margin"] = *sequence.margin;
    }
    if (sequence.lastLogits)
      item["lastLogits"] = differenceToJson(*sequence.lastLogits);
    if (!sequence.textFaults.empty())
      item["textFaults"] = sequence.textFaults;
    object["sequences"].push_back(std::move(item));
  }
  if (report.logits)
    object["logits"] = differenceToJson(*report.logits);
  return object;
}

} // namespace mcc::runtime
