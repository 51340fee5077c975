// Override rules: which ops the user places by hand (--placement cpu|gpu|auto|FILE).
#pragma once

#include "runtime-lib/placement/Graph.h"

#include <string_view>

namespace mcc::placement {

/// One rule. The first whose pattern matches an op's name decides.
struct Rule {
  std::string pattern;          ///< `*` any characters, `?` one, `[a-c]` one of a set, `[!a-c]` one outside it
  std::optional<Device> device; ///< nullopt: by cost
  std::string where;            ///< "path:line" or "--placement gpu", for messages
};

/// Reads a rules file: a `PATTERN DEVICE` on each line, `#` begins a comment, blank lines are skipped.
/// Messages begin with path:line:column.
Result<std::vector<Rule>> parseRules(const std::string &path, std::string_view text);

/// Returns the rules of a --placement argument: one of the words, or the path of a rules file.
Result<std::vector<Rule>> rulesOf(const std::string &argument);

/// Returns whether the whole of `name` matches a pattern.
bool matches(std::string_view pattern, std::string_view name);

/// Sets `forced` and `rule` of every op. A pattern with wildcards leaves an op alone that has no kernel for its device;
/// one without fails there. Returns the rules that matched no op, as "path:line: pattern 'x' matches no op".
Result<std::vector<std::string>> applyRules(const std::vector<Rule> &rules, Problem &problem);

} // namespace mcc::placement
