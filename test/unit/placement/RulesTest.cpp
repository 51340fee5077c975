// Override rules: patterns, files, and what they do to a problem.
#include "runtime-lib/placement/Rules.h"

#include <doctest/doctest.h>

using namespace mcc::placement;

TEST_CASE("patterns") {
  CHECK(matches("layers.3.mlp.down", "layers.3.mlp.down"));
  CHECK(!matches("layers.3.mlp.down", "layers.3.mlp.dow"));
  CHECK(!matches("layers.3.mlp.dow", "layers.3.mlp.down"));
  CHECK(matches("*", ""));
  CHECK(matches("*", "anything"));
  CHECK(matches("layers.*.mlp.*", "layers.31.mlp.down"));
  CHECK(!matches("layers.*.mlp.*", "layers.31.attn.q"));
  CHECK(matches("*.a*b", "x.aab.ab"));
  CHECK(!matches("*.a*b", "x.aab.ac"));
  CHECK(matches("layers.?", "layers.3"));
  CHECK(!matches("layers.?", "layers.31"));
  CHECK(matches("layers.[0-36].x", "layers.2.x"));
  CHECK(matches("layers.[0-36].x", "layers.6.x"));
  CHECK(!matches("layers.[0-36].x", "layers.5.x"));
  CHECK(matches("layers.[!0-3].x", "layers.5.x"));
  CHECK(!matches("layers.[!0-3].x", "layers.2.x"));
  CHECK(matches("*[0-9]", "a1b2"));
  CHECK(matches("[a-]x", "-x"));
  CHECK(!matches("", "x"));
  CHECK(matches("", ""));
  // Linear per star: this would take years if stars backtracked into each other.
  CHECK(!matches("*a*a*a*a*a*a*a*a*a*a*b", std::string(5000, 'a')));
}

TEST_CASE("a rules file") {
  auto rules = parseRules("r.txt", "# all of it\n\n  *.down gpu # the large ones\nhead\tauto\r\nembed cpu");
  REQUIRE_MESSAGE(rules.ok(), rules.message());
  REQUIRE(rules.value().size() == 3);
  CHECK(rules.value()[0].pattern == "*.down");
  CHECK(rules.value()[0].device == Device::Gpu);
  CHECK(rules.value()[0].where == "r.txt:3");
  CHECK(!rules.value()[1].device);
  CHECK(rules.value()[2].device == Device::Cpu);
  CHECK(parseRules("r.txt", "").ok());
}

TEST_CASE("faults of a rules file have a place") {
  CHECK(parseRules("r.txt", "a cpu\n  b tpu\n").message() ==
        "r.txt:2:5: error: device 'tpu'; expected 'cpu', 'gpu' or 'auto'");
  CHECK(parseRules("r.txt", "lonely").message() ==
        "r.txt:1:7: error: pattern 'lonely' without a device; expected 'cpu', 'gpu' or 'auto'");
  CHECK(parseRules("r.txt", "lonely # gpu").message() ==
        "r.txt:1:8: error: pattern 'lonely' without a device; expected 'cpu', 'gpu' or 'auto'");
  CHECK(parseRules("r.txt", "a cpu gpu").message() ==
        "r.txt:1:7: error: 'gpu' after the device; expected the end of the line or '#'");
  CHECK(parseRules("r.txt", "a[12 cpu").message() ==
        "r.txt:1:2: error: pattern 'a[12' has a '[' without a set and a ']'");
  CHECK(parseRules("r.txt", "a[] cpu").message() ==
        "r.txt:1:2: error: pattern 'a[]' has a '[' without a set and a ']'");
}

TEST_CASE("arguments of --placement") {
  CHECK(rulesOf("auto").value().empty());
  CHECK(rulesOf("cpu").value()[0].device == Device::Cpu);
  CHECK(rulesOf("gpu").value()[0].where == "--placement gpu");
  const auto missing = rulesOf("/nonexistent/rules");
  CHECK(!missing.ok());
  CHECK(missing.message().starts_with("/nonexistent/rules: error: "));
  CHECK(missing.message().ends_with("; --placement takes 'cpu', 'gpu', 'auto' or a file of rules"));
}

static Problem threeOps() {
  Problem problem;
  for (const char *name : {"embed", "layers.0.down", "token"})
    problem.ops.push_back({name});
  problem.ops[2].allowed[index(Device::Gpu)] = false;
  return problem;
}

TEST_CASE("the first match decides, and unused rules are told") {
  Problem problem = threeOps();
  const auto unused =
      applyRules(parseRules("r", "embed auto\n*.up gpu\n*.down gpu\n*.down cpu\n* cpu").value(), problem);
  REQUIRE_MESSAGE(Result<std::vector<std::string>>(unused).ok(), unused.message());
  CHECK(!problem.ops[0].forced);
  CHECK(problem.ops[1].forced == Device::Gpu);
  CHECK(problem.ops[1].rule == "r:3");
  CHECK(problem.ops[2].forced == Device::Cpu);
  CHECK(Result<std::vector<std::string>>(unused).value() ==
        std::vector<std::string>{"r:2: pattern '*.up' matches no op", "r:4: pattern '*.down' matches no op"});
}

TEST_CASE("a wildcard passes over ops without a kernel, a name does not") {
  Problem problem = threeOps();
  CHECK(applyRules(rulesOf("gpu").value(), problem).ok());
  CHECK(problem.ops[0].forced == Device::Gpu);
  CHECK(!problem.ops[2].forced);
  CHECK(applyRules(parseRules("r", "token gpu").value(), problem).message() ==
        "r:1: error: op 'token' has no gpu kernel");
}
