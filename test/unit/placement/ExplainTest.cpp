// Every reason of the explanation, and the table's text.
#include "runtime-lib/placement/Explain.h"
#include "test/unit/placement/Problems.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace mcc::placement;
using namespace mcc::placement::test;

static Op op(const char *name, double cpuNs, double gpuNs) { return {name, {PhaseNs{cpuNs, 0}, PhaseNs{gpuNs, 0}}}; }

/// Solves and returns the report of one op.
static OpReport reportOf(const Problem &problem, uint32_t number) {
  Result<Plan> plan = solve(problem);
  REQUIRE_MESSAGE(plan.ok(), plan.message());
  return explain(problem, plan.value()).value()[number];
}

TEST_CASE("reasons") {
  Problem problem;
  SUBCASE("cheaper, with the margin") {
    problem.ops = {op("a", 30, 10)};
    const OpReport report = reportOf(problem, 0);
    CHECK(report.device == Device::Gpu);
    CHECK(report.reason == Reason::Cheaper);
    CHECK(report.marginNs == 20);
  }
  SUBCASE("equal") {
    problem.ops = {op("a", 10, 10)};
    CHECK(reportOf(problem, 0).reason == Reason::Equal);
  }
  SUBCASE("only kernel") {
    problem.ops = {op("a", 30, 10)};
    problem.ops[0].allowed[1] = false;
    const OpReport report = reportOf(problem, 0);
    CHECK(report.reason == Reason::OnlyKernel);
    CHECK(std::isnan(report.marginNs));
    CHECK(std::isnan(report.costNs[1]));
  }
  SUBCASE("rule") {
    problem.ops = {op("a", 30, 10)};
    problem.ops[0].forced = Device::Cpu;
    problem.ops[0].rule = "r.txt:7";
    CHECK(reportOf(problem, 0).reason == Reason::Rule);
    CHECK(reportOf(problem, 0).detail == "r.txt:7");
  }
  SUBCASE("state") {
    problem.ops = {op("rope", 10, 20), op("attention", 100, 10)};
    problem.stores = {{"cache", Store::Kind::State, 8, 0, 0, {0, 1}}};
    const OpReport report = reportOf(problem, 0);
    CHECK(report.device == Device::Gpu);
    CHECK(report.reason == Reason::State);
    CHECK(report.detail == "cache");
    CHECK(report.marginNs == 80);
  }
  SUBCASE("upload") {
    problem.ops = {op("a", 30, 10)};
    problem.stores = {{"w", Store::Kind::Weight, 8, 25, 0, {0}}};
    CHECK(reportOf(problem, 0).reason == Reason::Upload);
    CHECK(reportOf(problem, 0).marginNs == 5);
  }
  SUBCASE("memory") {
    problem.ops = {op("a", 30, 10)};
    problem.stores = {{"w", Store::Kind::Weight, 8, 0, 0, {0}}};
    problem.gpuMemory = 7;
    CHECK(reportOf(problem, 0).reason == Reason::Memory);
    CHECK(reportOf(problem, 0).marginNs == -20);
  }
  SUBCASE("copies") {
    problem.ops = {op("a", 30, 10), op("b", 30, 40)};
    problem.tensors = {{"x", 0, {1}, 0, 0, {PhaseNs{15, 0}, PhaseNs{15, 0}}}};
    const OpReport report = reportOf(problem, 1);
    CHECK(report.device == Device::Gpu);
    CHECK(report.reason == Reason::Copies);
    CHECK(report.marginNs == 5);
  }
}

TEST_CASE("the table") {
  Problem problem;
  problem.decodeSteps = 10;
  problem.ops = {{"embed", {PhaseNs{1e6, 1e5}, PhaseNs{}}, {true, false}},
                 {"layers.0.mlp", {PhaseNs{9e6, 3e6}, PhaseNs{1e5, 1e4}}}};
  problem.stores = {{"w", Store::Kind::Weight, 4096, 5e5, 0, {1}}};
  problem.tensors = {{"x", 0, {1}, 64, 64, {PhaseNs{1e4, 1e4}, PhaseNs{1e4, 1e4}}}};
  Result<Plan> plan = solve(problem);
  REQUIRE(plan.ok());
  CHECK(explainTable(problem, plan.value()).value() ==
        "prefill once, 10 decode steps:\n"
        "op            on   cpu ms  gpu ms  copy ms  margin ms  reason\n"
        "embed         cpu   2.000       -    0.110          -  no gpu kernel\n"
        "layers.0.mlp  gpu  39.000   0.200    0.000     38.190  cheaper here\n"
        "ops on the gpu: 1 of 2; gpu memory: 4096 bytes\n"
        "total: 2.810 ms = ops 2.200 + copies 0.110 + uploads 0.500\n"
        "bound: 2.810 ms, so no placement is better\n");
}

TEST_CASE("margins are what flipping costs; none is negative where memory is not short") {
  std::mt19937 random(6);
  for (int i = 0; i < 300; ++i) {
    const Problem problem = randomProblem(random, 8, false);
    Result<Plan> plan = solve(problem);
    if (!plan.ok())
      continue;
    const std::vector<OpReport> reports = explain(problem, plan.value()).value();
    for (const OpReport &report : reports)
      CHECK_FALSE(report.marginNs < -1e-9);
  }
}
