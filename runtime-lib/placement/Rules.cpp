// Rules are read line by line, and matched by the usual walk that returns to the last star when it is stuck.
#include "runtime-lib/placement/Rules.h"

#include "runtime-lib/src/Files.h"
#include "runtime-lib/src/Text.h"

#include <algorithm>

namespace mcc::placement {

using runtime::concat;

/// A rules file has a line for a few ops.
static constexpr size_t mostBytes = 1 << 20;

static std::optional<Device> deviceOf(std::string_view word) {
  for (const Device device : {Device::Cpu, Device::Gpu})
    if (word == deviceName(device))
      return device;
  return std::nullopt;
}

/// Returns the offset of a '[' whose ']' is missing or that holds nothing, npos where there is none.
static size_t openSet(std::string_view pattern) {
  for (size_t at = pattern.find('['); at != std::string_view::npos; at = pattern.find('[', at)) {
    const size_t first = at + 1 + (pattern.substr(at + 1).starts_with('!') ? 1 : 0);
    const size_t end = pattern.find(']', first);
    if (end == std::string_view::npos || end == first)
      return at;
    at = end;
  }
  return std::string_view::npos;
}

/// Returns whether `character` is in the set that begins at pattern[at] == '['; moves `at` past it.
static bool inSet(std::string_view pattern, size_t &at, char character) {
  const size_t end = pattern.find(']', at);
  std::string_view set = pattern.substr(at + 1, end - at - 1);
  at = end + 1;
  const bool outside = set.starts_with('!');
  set.remove_prefix(outside);
  bool found = false;
  for (size_t i = 0; i < set.size(); ++i) {
    if (i + 2 < set.size() && set[i + 1] == '-') {
      found |= set[i] <= character && character <= set[i + 2];
      i += 2;
    } else {
      found |= set[i] == character;
    }
  }
  return found != outside;
}

bool matches(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      resume = n;
      continue;
    }
    size_t next = p + 1;
    bool same = false;
    if (p < pattern.size() && pattern[p] == '[' && pattern.find(']', p) != std::string_view::npos)
      same = inSet(pattern, next = p, name[n]);
    else if (p < pattern.size())
      same = pattern[p] == '?' || pattern[p] == name[n];
    if (same) {
      p = next;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star;
      n = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

/// Takes the next word off `line` from `at`; sets `begin` to its offset. Empty at the end or at a comment.
static std::string_view nextWord(std::string_view line, size_t &at, size_t &begin) {
  constexpr std::string_view space = " \t\r";
  begin = std::min(line.find_first_not_of(space, at), line.size());
  if (begin == line.size() || line[begin] == '#')
    return {};
  at = std::min(line.find_first_of(space, begin), line.size());
  return line.substr(begin, at - begin);
}

/// Reads one line; nullopt for one without a rule.
static Result<std::optional<Rule>> parseLine(const std::string &path, int64_t number, std::string_view line) {
  const auto failure = [&](size_t column, const std::string &fact) {
    return Failure{concat(path, ':', number, ':', column + 1, ": error: ", fact)};
  };
  size_t at = 0, begin = 0;
  const std::string_view pattern = nextWord(line, at, begin);
  if (pattern.empty())
    return std::optional<Rule>();
  if (const size_t open = openSet(pattern); open != std::string_view::npos)
    return failure(begin + open, concat("pattern '", pattern, "' has a '[' without a set and a ']'"));
  const std::string_view word = nextWord(line, at, begin);
  if (word.empty())
    return failure(begin, concat("pattern '", pattern, "' without a device; expected 'cpu', 'gpu' or 'auto'"));
  const std::optional<Device> device = deviceOf(word);
  if (!device && word != "auto")
    return failure(begin, concat("device '", word, "'; expected 'cpu', 'gpu' or 'auto'"));
  if (const std::string_view rest = nextWord(line, at, begin); !rest.empty())
    return failure(begin, concat("'", rest, "' after the device; expected the end of the line or '#'"));
  return std::optional<Rule>(Rule{std::string(pattern), device, concat(path, ':', number)});
}

Result<std::vector<Rule>> parseRules(const std::string &path, std::string_view text) {
  std::vector<Rule> rules;
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    Result<std::optional<Rule>> rule = parseLine(path, number, text.substr(0, end));
    if (!rule.ok())
      return rule.failure();
    if (rule.value())
      rules.push_back(std::move(*rule.value()));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return rules;
}

Result<std::vector<Rule>> rulesOf(const std::string &argument) {
  if (argument == "auto")
    return std::vector<Rule>();
  if (const std::optional<Device> device = deviceOf(argument))
    return std::vector<Rule>{{"*", device, concat("--placement ", argument)}};
  Result<std::string> text = runtime::readFile(argument, mostBytes);
  if (!text.ok())
    return Failure{concat(text.message(), "; --placement takes 'cpu', 'gpu', 'auto' or a file of rules")};
  return parseRules(argument, text.value());
}

Result<std::vector<std::string>> applyRules(const std::vector<Rule> &rules, Problem &problem) {
  std::vector<bool> used(rules.size(), false);
  for (Op &op : problem.ops) {
    const auto rule =
        std::find_if(rules.begin(), rules.end(), [&](const Rule &r) { return matches(r.pattern, op.name); });
    if (rule == rules.end())
      continue;
    used[static_cast<size_t>(rule - rules.begin())] = true;
    if (!rule->device)
      continue;
    if (op.allowed[index(*rule->device)]) {
      op.forced = rule->device;
      op.rule = rule->where;
    } else if (rule->pattern.find_first_of("*?[") == std::string::npos) {
      return Failure{concat(rule->where, ": error: op '", op.name, "' has no ", deviceName(*rule->device), " kernel")};
    }
  }
  std::vector<std::string> unused;
  for (size_t i = 0; i < rules.size(); ++i)
    if (!used[i])
      unused.push_back(concat(rules[i].where, ": pattern '", rules[i].pattern, "' matches no op"));
  return unused;
}

} // namespace mcc::placement
