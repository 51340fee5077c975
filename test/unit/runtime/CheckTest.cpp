// Verdicts of the golden check, over the fake model.
#include "runtime-lib/src/Check.h"
#include "runtime-lib/src/Generate.h"
#include "test/unit/runtime/FakeSession.h"

#include <cmath>

using namespace mcc::runtime;
using namespace mcc::test;

/// Returns a golden of two sequences that the fake model passes, margins 1.
static Golden passingGolden(Session &session) {
  Golden golden;
  for (std::vector<int32_t> prompt : {std::vector<int32_t>{1}, std::vector<int32_t>{2, 3}}) {
    GoldenSequence sequence;
    sequence.prompt = prompt;
    size_t rows = 0;
    const Hooks hooks{[&](std::span<const float> row) {
                        sequence.lastLogits.assign(row.begin(), row.end());
                        if (rows++ == 0)
                          golden.logits = sequence.lastLogits;
                        return true;
                      },
                      {}};
    sequence.expect = generate(session, {sequence.prompt, 6, true}, hooks).value().tokens;
    sequence.margin.assign(6, 1.0);
    golden.sequences.push_back(sequence);
  }
  return golden;
}

static CheckReport judge(Session &session, const Golden &golden, CheckTolerance tolerance = {}) {
  auto report = checkGolden(session, golden, /*tokenizer=*/nullptr, tolerance);
  REQUIRE(report.ok());
  return report.value();
}

TEST_CASE("equal tokens and logits pass") {
  FakeSession fake(2);
  const CheckReport report = judge(*fake.session, passingGolden(*fake.session));
  CHECK(report.ok());
  CHECK(report.count(Verdict::Pass) == 2);
  CHECK(report.logits->greatest == 0);
  CHECK(report.sequences[1].lastLogits->greatest == 0);
}

TEST_CASE("a difference is a tie below the margin tolerance and wrong from it on") {
  FakeSession fake(1);
  Golden golden = passingGolden(*fake.session);
  golden.sequences[0].expect[2] ^= 1;
  for (auto [margin, verdict] : {std::pair(0.0009, Verdict::Tie), std::pair(0.001, Verdict::Wrong)}) {
    golden.sequences[0].margin[2] = margin;
    const CheckReport report = judge(*fake.session, golden);
    CHECK(report.sequences[0].verdict == verdict);
    CHECK(report.sequences[0].step == 2);
    CHECK(report.sequences[0].expected == golden.sequences[0].expect[2]);
    CHECK(report.sequences[0].found == (golden.sequences[0].expect[2] ^ 1));
    CHECK(!report.sequences[0].lastLogits);
    CHECK(report.ok() == (verdict == Verdict::Tie));
  }
}

TEST_CASE("judging ends at the first difference") {
  FakeSession fake(1);
  Golden golden = passingGolden(*fake.session);
  golden.sequences[0].expect[1] ^= 1;
  golden.sequences[0].margin[1] = 0;
  golden.sequences[0].expect[4] ^= 1;
  CHECK(judge(*fake.session, golden).sequences[0].verdict == Verdict::Tie);
}

TEST_CASE("end tokens are tokens like others") {
  FakeSession fake(1);
  for (int32_t start = 0; start < 60; ++start) {
    Golden golden;
    GoldenSequence sequence;
    sequence.prompt = {start};
    sequence.expect = generate(*fake.session, {sequence.prompt, 20, true}, {}).value().tokens;
    golden.sequences.push_back(sequence);
    CHECK(judge(*fake.session, golden).ok());
  }
}

TEST_CASE("logits: the greatest difference, its place, and NaN") {
  const std::vector<float> expected = {1, 2, 3, 4};
  CHECK(compareLogits(expected, expected, 0).within);
  const LogitDifference near = compareLogits(std::vector<float>{1, 2.5, 3, 3.75}, expected, 0.5);
  CHECK(near.greatest == 0.5);
  CHECK(near.index == 1);
  CHECK(near.within);
  CHECK(!compareLogits(std::vector<float>{1, 2.5, 3, 4}, expected, 0.49).within);
  const LogitDifference nan = compareLogits(std::vector<float>{1, NAN, 3, 400}, expected, 1e9);
  CHECK(std::isnan(nan.greatest));
  CHECK(nan.index == 1);
  CHECK(!nan.within);
}

TEST_CASE("wrong logits fail a file whose tokens pass") {
  FakeSession fake(1);
  Golden golden = passingGolden(*fake.session);
  golden.logits[5] += 1;
  CHECK(!judge(*fake.session, golden).ok());
  golden = passingGolden(*fake.session);
  golden.sequences[1].lastLogits[5] += 1;
  CHECK(!judge(*fake.session, golden).ok());
  CHECK(judge(*fake.session, golden, {1.0, 1e-3}).ok());
}
