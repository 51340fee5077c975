// Option parsing from one table, which also prints the help. Long options take `--name VALUE` or `--name=VALUE`,
// -n also `-n64`; `--` ends the options, so that a prompt may begin with a dash.
//
// A table of forty lines rather than CLI11: that would bring iostream and the regular expressions of libstdc++ into
// every executable mcc makes.
#include "runtime-lib/src/Options.h"

#include "runtime-lib/src/Text.h"
#include "runtime-lib/src/ThreadPool.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

namespace mcc::runtime {

using View = std::string_view;

static Status readInteger(View text, int64_t least, int64_t most, int64_t &value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size())
    return Failure{concat("takes a whole number, not '", text, "'")};
  if (error != std::errc() || value < least || value > most)
    return Failure{concat("takes a number from ", least, " to ", most, ", not ", text)};
  return {};
}

static Status readTolerance(View text, double &value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value < 0)
    return Failure{concat("takes a number of at least 0, not '", text, "'")};
  return {};
}

/// Reads a number of bytes: 1000000, 512M, 8G, 1.5GiB; letters stand for powers of 1024.
static Status readSize(View text, std::optional<uint64_t> &bytes) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(end, text.data() + text.size());
  for (char &letter : unit)
    letter = static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter + 32 : letter);
  const size_t power = unit.empty() ? 0 : View("kmgt").find(unit[0]) + 1; // npos becomes 0
  const View rest = View(unit).substr(power > 0);
  const bool known = rest.empty() || rest == "b" || (power > 0 && rest == "ib");
  number = std::ldexp(number, static_cast<int>(10 * power));
  if (error != std::errc() || !known || !(number >= 0) || number >= 0x1p63)
    return Failure{concat("takes a size, 8G or the like, not '", text, "'")};
  bytes = static_cast<uint64_t>(number);
  return {};
}

static Status readIds(View text, std::optional<std::vector<int64_t>> &ids) {
  ids.emplace();
  if (text.empty())
    return Failure{"takes token ids separated by commas; there is none"};
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    View item = text.substr(begin, end - begin);
    begin = end + 1;
    item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
    int64_t id = 0;
    const auto [stop, error] = std::from_chars(item.data(), item.data() + item.size(), id);
    if (error != std::errc() || stop != item.data() + item.size())
      return Failure{concat("takes token ids separated by commas; '", item, "' is none")};
    ids->push_back(id);
  }
  return {};
}

static Status readPlacement(View text, std::string &placement) {
  if (text.starts_with("random:")) {
    int64_t seed = 0;
    return readInteger(text.substr(7), 0, UINT32_MAX, seed).ok() ? (placement = text, Status()) : Status(Failure{concat("takes random:SEED with a number, not '", text, "'")});
  }
  if (text.empty())
    return Failure{"takes built, cpu, gpu, auto or a file of rules"};
  placement = text;
  return {};
}

static Status readGpuMissing(View text, GpuMissing &missing) {
  if (text != "fail" && text != "warn" && text != "cpu")
    return Failure{concat("takes fail, warn or cpu, not '", text, "'")};
  missing = text == "fail" ? GpuMissing::Fail : text == "warn" ? GpuMissing::Warn : GpuMissing::Cpu;
  return {};
}

static Status readNumerics(View text, Numerics &numerics) {
  if (text != "invariant" && text != "accurate" && text != "fast")
    return Failure{concat("takes invariant, accurate or fast, not '", text, "'")};
  numerics = text == "invariant" ? Numerics::Invariant : text == "accurate" ? Numerics::Accurate : Numerics::Fast;
  return {};
}

namespace {

/// One option: how it is spelt, what it takes, what it does.
struct Row {
  View name;
  View value; ///< name of the value in the help; empty for a flag
  View help;  ///< lines after the first are indented
  Status (*apply)(Options &options, View value);
};

} // namespace

static constexpr int64_t mostTokens = INT32_MAX;

static const Row rows[] = {
    {"-n", "N", "generate at most N tokens (default 256)",
     [](Options &o, View v) { return readInteger(v, 0, mostTokens, o.newTokens); }},
    {"--tokens", "IDS", "prompt as token ids, 0,5,6; prints ids",
     [](Options &o, View v) { return readIds(v, o.tokens); }},
    {"--prompts", "FILE",
     "one prompt per line: \"text\", {\"prompt\": \"text\"} or {\"tokens\": [ids]},\n"
     "each with an optional \"n\"; prints one JSON object per line",
     [](Options &o, View v) { return o.prompts = v, Status(); }},
    {"--check", "FILE", "compare with a golden file; exit 0 when nothing is wrong",
     [](Options &o, View v) { return o.check = v, Status(); }},
    {"--bench", "", "measure prefill and decode with made-up tokens",
     [](Options &o, View) { return o.bench = true, Status(); }},
    {"--prompt-tokens", "N", "prompt of --bench (default 512)",
     [](Options &o, View v) { return readInteger(v, 1, mostTokens, o.promptTokens); }},
    {"--info", "", "describe the model as JSON", [](Options &o, View) { return o.info = true, Status(); }},
    {"--verify", "", "compare the weights with their digests",
     [](Options &o, View) { return o.verify = true, Status(); }},
    {"--threads", "N", "worker threads (default: the physical cores this process may use)",
     [](Options &o, View v) { return readInteger(v, 1, maxThreads, o.threads); }},
    {"--chunk", "N", "most prompt tokens in one step; 1 is token by token",
     [](Options &o, View v) { return readInteger(v, 1, mostTokens, o.chunk); }},
    {"--placement", "WHERE", "devices of the ops: built (the plan it was compiled with), cpu, gpu,\n"
     "auto (by cost), a file of rules, random:SEED (a test: each op by a coin)",
     [](Options &o, View v) { return readPlacement(v, o.placement); }},
    {"--machine", "FILE", "a machine's calibration (mcc calibrate), for placement by cost\n"
     "(default: this one, measured for a moment)",
     [](Options &o, View v) { return o.machine = v, Status(); }},
    {"--gpu-memory", "SIZE", "most of the GPU's memory to take, 8G or the like; a built plan that takes\n"
     "more gives way to the best that fits (default: what is free)",
     [](Options &o, View v) { return readSize(v, o.gpuMemory); }},
    {"--on-gpu-missing", "WHAT", "without a usable GPU: fail, warn (the default: use the CPU, say so)\nor cpu (say nothing)",
     [](Options &o, View v) { return readGpuMissing(v, o.onGpuMissing); }},
    {"--numerics", "HOW", "prompts on the GPU: accurate (the default), invariant (bit for bit as\n"
     "token by token) or fast (activations rounded to bf16)",
     [](Options &o, View v) { return readNumerics(v, o.numerics); }},
    {"--weights", "FILE", "weights (default: beside the executable, its name and .weights)",
     [](Options &o, View v) { return o.weights = v, Status(); }},
    {"--logits", "FILE", "write the logits after the prompt and of every step as safetensors",
     [](Options &o, View v) { return o.logits = v, Status(); }},
    {"--json", "", "print one JSON object instead of text; also with --check",
     [](Options &o, View) { return o.json = true, Status(); }},
    {"--ignore-eos", "", "go on past end tokens", [](Options &o, View) { return o.ignoreEos = true, Status(); }},
    {"--no-special", "", "do not add the model's begin and end tokens to the prompt",
     [](Options &o, View) { return o.noSpecial = true, Status(); }},
    {"--tolerance", "X", "greatest logit difference that --check accepts (default 0.002)",
     [](Options &o, View v) { return readTolerance(v, o.tolerance); }},
    {"--margin-tolerance", "X",
     "a different token is a tie where the recorded margin is\n"
     "below X (default 0.001)",
     [](Options &o, View v) { return readTolerance(v, o.marginTolerance); }},
    {"--profile", "", "predicted and measured times of every op, on standard error; each is\n"
     "waited for, so that the whole is slower than without",
     [](Options &o, View) { return o.profile = true, Status(); }},
    {"--stats", "", "speed on standard error, also when that is no terminal",
     [](Options &o, View) { return o.stats = true, Status(); }},
    {"--version", "", "print versions", [](Options &o, View) { return o.version = true, Status(); }},
    {"--help", "", "print this", [](Options &o, View) { return o.help = true, Status(); }},
};

std::string helpText(const std::string &program) {
  std::string text = concat("usage: ", program, " TEXT [-n N]     continue a text (-: standard input)\n", "       ",
                            program, " --tokens IDS    continue token ids\n", "       ", program,
                            " --check FILE    compare with a golden file\n\noptions:\n");
  constexpr size_t column = 25;
  for (const Row &row : rows) {
    std::string line = concat("  ", row.name, row.value.empty() ? "" : " ", row.value);
    line.resize(std::max(line.size() + 1, column), ' ');
    for (char character : row.help)
      line += character == '\n' ? "\n" + std::string(column, ' ') : std::string(1, character);
    text += line + "\n";
  }
  return text + "\nexit status: 0 done, 1 something is wrong (said in one line), 2 wrong usage\n";
}

/// Returns the number of single-character edits between two short words.
static size_t editDistance(View a, View b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

static Failure unknownOption(View name) {
  const Row *nearest = std::min_element(std::begin(rows), std::end(rows), [name](const Row &a, const Row &b) {
    return editDistance(a.name, name) < editDistance(b.name, name);
  });
  const bool near = name.size() > 2 && editDistance(nearest->name, name) <= 2;
  return Failure{concat("unknown option '", name, "'; ",
                        near ? concat("did you mean '", nearest->name, "'?") : std::string("see --help"))};
}

/// Applies the option at `arguments[index]`, moving `index` to the last argument used.
static Status parseOption(std::span<const char *const> arguments, size_t &index, Options &options) {
  View name = arguments[index];
  std::optional<View> value;
  if (const size_t equals = name.find('='); name.starts_with("--") && equals != View::npos) {
    value = name.substr(equals + 1);
    name = name.substr(0, equals);
  } else if (name.starts_with("-n") && name.size() > 2) {
    value = name.substr(2);
    name = name.substr(0, 2);
  }
  if (name == "-h")
    name = "--help";
  const Row *row = std::find_if(std::begin(rows), std::end(rows), [name](const Row &r) { return r.name == name; });
  if (row == std::end(rows))
    return unknownOption(name);
  if (row->value.empty() && value)
    return Failure{concat("'", name, "' takes no value, but is given '", *value, "'")};
  if (!row->value.empty() && !value) {
    if (index + 1 == arguments.size())
      return Failure{concat("'", name, "' takes a value, ", row->value, "; there is none")};
    value = arguments[++index];
  }
  const Status applied = row->apply(options, value.value_or(View()));
  return applied.ok() ? Status() : Status(Failure{concat("'", name, "' ", applied.message())});
}

/// Checks that the options go together.
static Status checkCombination(const Options &o) {
  const int actions = o.text.has_value() + o.tokens.has_value() + o.prompts.has_value() + o.check.has_value() + o.bench +
                      o.info + o.verify + o.version;
  if (actions == 0)
    return Failure{"no prompt; give a text, --tokens, --prompts or --check, or see --help"};
  if (actions > 1)
    return Failure{"more than one of a text, --tokens, --prompts, --check, --bench, --info, --verify and --version"};
  if (o.logits && !o.text && !o.tokens)
    return Failure{"'--logits' goes with a text or --tokens"};
  if (o.profile && !o.text && !o.tokens && !o.bench)
    return Failure{"'--profile' goes with a text, --tokens or --bench"};
  return {};
}

Result<Options> parseOptions(std::span<const char *const> arguments) {
  Options options;
  bool optionsEnded = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const View argument = arguments[i];
    if (!optionsEnded && argument == "--") {
      optionsEnded = true;
    } else if (!optionsEnded && argument.size() > 1 && argument[0] == '-') {
      if (Status status = parseOption(arguments, i, options); !status.ok())
        return Failure{status.message()};
    } else if (options.text) {
      return Failure{concat("a second prompt '", argument, "'; put quotes around a text with spaces")};
    } else {
      options.text = argument;
    }
  }
  if (options.help)
    return options;
  if (Status status = checkCombination(options); !status.ok())
    return Failure{status.message()};
  return options;
}

} // namespace mcc::runtime
