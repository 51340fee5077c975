// Loading checks the processor first, then the weights' header, the tokenizer, and gets the memory; only then is
// anything of the model run.
#include "runtime-lib/src/Runner.h"

#include "runtime-lib/src/Bench.h"
#include "runtime-lib/src/Check.h"
#include "runtime-lib/src/CpuCheck.h"
#include "runtime-lib/src/GpuSetup.h"
#include "runtime-lib/src/PromptLine.h"
#include "runtime-lib/src/Text.h"
#include "runtime-lib/src/PromptedDecoder.h"
#include "runtime-lib/src/TextPrompt.h"

#include <algorithm>
#include <unistd.h>

namespace mcc::runtime {

static constexpr size_t mostInputBytes = size_t(64) << 20;
static constexpr size_t mostGoldenBytes = size_t(4) << 30;

Result<WeightsFile> openWeights(const MccModel &model, const Options &options) {
  if (options.weights)
    return WeightsFile::open(*options.weights, model);
  Result<std::string> path = defaultWeightsPath();
  return path.ok() ? WeightsFile::open(path.value(), model) : Result<WeightsFile>(path.failure());
}

/// Narrows ids from the command line, refusing those outside the vocabulary.
static Result<std::vector<int32_t>> narrowIds(const std::vector<int64_t> &ids, int64_t vocabulary) {
  std::vector<int32_t> tokens;
  for (int64_t id : ids) {
    if (id < 0 || id >= vocabulary)
      return Failure{
          concat("error: token id ", id, " is outside the vocabulary of ", vocabulary, " ids, 0 to ", vocabulary - 1)};
    tokens.push_back(static_cast<int32_t>(id));
  }
  return tokens;
}

Result<std::unique_ptr<Runner>> Runner::create(const MccModel &model, const Options &options) {
  if (Status status = checkCpu(model); !status.ok())
    return Failure{status.message()};
  Result<WeightsFile> weights = openWeights(model, options);
  if (!weights.ok())
    return weights.failure();
  const std::optional<std::span<const uint8_t>> packed = weights.value().segment("weights");
  if (!packed)
    return Failure{concat(weights.value().path(), ": error: has no segment 'weights'")};
  Result<std::unique_ptr<Session>> session = Session::create(model, packed->data(), options.threads);
  if (!session.ok())
    return session.failure();
  std::unique_ptr<Runner> runner(new Runner(options, std::move(weights.value())));
  MachineCosts costs(model, options);
  if (options.profile) {
    Result<std::unique_ptr<LaunchProfile>> profile = LaunchProfile::start(*session.value(), costs);
    if (!profile.ok())
      return profile.failure();
    runner->profile = std::move(profile.value());
  }
  Result<std::vector<bool>> plan = setUpGpu(*session.value(), options, costs);
  if (!plan.ok())
    return plan.failure();
  if (runner->profile)
    runner->profile->setPlan(std::move(plan.value()));
  if (Status status = runner->loadTokenizer(); !status.ok())
    return Failure{status.message()};
  runner->session = std::move(session.value());
  if (options.chunk > 0)
    runner->session->limitChunk(options.chunk);
  return runner;
}

Status Runner::loadTokenizer() {
  const std::optional<std::span<const uint8_t>> image = weights.segment("tokenizer");
  if (!image)
    return {};
  std::string error;
  tokenizer = Tokenizer::load(image->data(), image->size(), error);
  if (tokenizer == nullptr)
    return Failure{concat(weights.path(), ": error: segment 'tokenizer': ", error)};
  return {};
}

Result<std::vector<int32_t>> Runner::encode(const std::string &text) const {
  if (tokenizer == nullptr)
    return Failure{"error: this model has no tokenizer; give token ids with --tokens"};
  Result<std::vector<int32_t>> ids = encodePrompt(*tokenizer, text, !options.noSpecial);
  return ids.ok() ? ids : Failure{"error: " + ids.message()};
}

Result<std::vector<int32_t>> Runner::readPrompt() const {
  if (options.tokens)
    return narrowIds(*options.tokens, session->model().vocabulary);
  if (*options.text != "-")
    return encode(*options.text);
  Result<std::string> text = readFile("-", mostInputBytes);
  if (!text.ok())
    return text.failure();
  // The newline that ends the last line of a text file is not part of the prompt.
  if (text.value().ends_with('\n'))
    text.value().pop_back();
  return encode(text.value());
}

nlohmann::ordered_json Runner::describe(const Generation &result, std::span<const int32_t> prompt) const {
  nlohmann::ordered_json object;
  object["prompt"] = std::vector<int32_t>(prompt.begin(), prompt.end());
  object["tokens"] = result.tokens;
  if (tokenizer != nullptr) {
    PromptedDecoder decoder(*tokenizer, prompt);
    std::string text;
    for (int32_t token : result.tokens)
      text += decoder.next(token);
    object["text"] = text + decoder.finish();
  }
  object["stop"] = stopName(result.stop);
  return object;
}

void Runner::printDevices() const {
  const DeviceReport &report = session->report();
  const bool lost = session->model().program != nullptr && !report.lastError.empty() && options.onGpuMissing != GpuMissing::Cpu;
  if (!lost && (report.gpuLaunches == 0 || (!options.stats && isatty(STDERR_FILENO) == 0)))
    return;
  std::string line = concat("GPU: ran ", report.gpuLaunches, " ops");
  if (!report.lastError.empty())
    line += concat("; last error: ", report.lastError);
  if (report.replayed > 0)
    line += concat("; the CPU ran the ", report.replayed, " tokens before it again");
  printError(line);
}

void Runner::printProfile(int64_t prompt, int64_t newTokens) const {
  if (profile == nullptr)
    return;
  const int64_t most = static_cast<int64_t>(session->model().chunk), chunk = options.chunk > 0 ? std::min(options.chunk, most) : most;
  Result<std::string> table = profile->table(*session, prompt, newTokens, chunk);
  printError(table.ok() ? table.value() : concat("note: ", table.message()));
}

void Runner::printNotes(const Generation &result, std::span<const int32_t> prompt) const {
  if (result.stop == Stop::Context)
    printError(concat("note: stopped at the context of ", session->model().context, " tokens (", prompt.size(),
                      " of the prompt); compile with a larger --ctx"));
  printDevices();
  if (!options.stats && isatty(STDERR_FILENO) == 0)
    return;
  std::string line = concat("prompt: ", prompt.size(), " tokens, ", result.promptSeconds * 1e3, " ms (",
                            double(prompt.size()) / std::max(result.promptSeconds, 1e-9), " tokens/s)");
  if (result.decodeSteps > 0)
    line += concat("; decode: ", result.decodeSteps, " steps, ", result.decodeSeconds * 1e3, " ms (",
                   double(result.decodeSteps) / std::max(result.decodeSeconds, 1e-9), " tokens/s)");
  printError(concat(line, "; ", session->threads(), " threads"));
}

Result<Generation> Runner::streamTo(Output &out, std::span<const int32_t> prompt, LogitsFile *logits) {
  std::optional<PromptedDecoder> decoder; // None where ids are printed.
  if (!options.tokens && !options.json)
    decoder.emplace(*tokenizer, prompt);
  bool first = true;
  Hooks hooks;
  if (logits != nullptr)
    hooks.onLogits = [logits](std::span<const float> row) { return logits->append(row); };
  if (!options.json)
    hooks.onToken = [&](int32_t token) {
      const std::string separator = first ? "" : ",";
      first = false;
      return out.write(decoder ? decoder->next(token) : concat(separator, token));
    };
  Result<Generation> generated = generate(*session, Request{prompt, options.newTokens, options.ignoreEos}, hooks);
  if (generated.ok() && options.json)
    out.write(dumpJson(describe(generated.value(), prompt)));
  else if (decoder)
    out.write(decoder->finish());
  // What was streamed before an error ends its line too, so that the message begins one.
  if (generated.ok() || !first)
    out.write("\n");
  return generated;
}

int Runner::generateOne() {
  Result<std::vector<int32_t>> prompt = readPrompt();
  if (!prompt.ok())
    return reportError(prompt.message());
  std::unique_ptr<LogitsFile> logits;
  if (options.logits) {
    Result<std::unique_ptr<LogitsFile>> created = LogitsFile::create(*options.logits, session->model().vocabulary);
    if (!created.ok())
      return reportError(created.message());
    logits = std::move(created.value());
  }
  Output out(STDOUT_FILENO);
  Result<Generation> generated = streamTo(out, prompt.value(), logits.get());
  if (!generated.ok())
    return reportError(generated.message());
  printNotes(generated.value(), prompt.value());
  printProfile(static_cast<int64_t>(prompt.value().size()), generated.value().decodeSteps);
  if (logits)
    if (Status status = logits->finish(generated.value().tokens, prompt.value()); !status.ok())
      return reportError(status.message());
  return finishOutput(out);
}

Result<nlohmann::ordered_json> Runner::generateLine(const LineReader &reader, const std::string &line) {
  const std::string place = concat(reader.name(), ":", reader.number());
  Result<PromptLine> parsed = parsePromptLine(reader.name(), reader.number(), line, session->model().vocabulary);
  if (!parsed.ok())
    return parsed.failure();
  std::vector<int32_t> prompt;
  if (const std::string *text = std::get_if<std::string>(&parsed.value().prompt)) {
    Result<std::vector<int32_t>> encoded = encode(*text);
    if (!encoded.ok())
      return Failure{concat(place, ": ", encoded.message())};
    prompt = std::move(encoded.value());
  } else {
    prompt = std::get<std::vector<int32_t>>(parsed.value().prompt);
  }
  const Request request{prompt, parsed.value().newTokens.value_or(options.newTokens), options.ignoreEos};
  Result<Generation> generated = generate(*session, request, {});
  if (!generated.ok())
    return Failure{concat(place, ": ", generated.message())};
  printNotes(generated.value(), prompt);
  return describe(generated.value(), prompt);
}

int Runner::generateLines() {
  Result<LineReader> opened = LineReader::open(*options.prompts);
  if (!opened.ok())
    return reportError(opened.message());
  LineReader &reader = opened.value();
  Output out(STDOUT_FILENO);
  int status = 0;
  for (std::string line; true;) {
    Result<bool> more = reader.next(line);
    if (!more.ok())
      return reportError(more.message());
    if (!more.value())
      break;
    if (line.find_first_not_of(" \t\r") == std::string::npos)
      continue;
    nlohmann::ordered_json object;
    object["line"] = reader.number();
    Result<nlohmann::ordered_json> result = generateLine(reader, line);
    if (result.ok()) {
      object.update(result.value());
    } else {
      object["error"] = result.message();
      status = reportError(result.message());
    }
    if (!out.write(dumpJson(object) + "\n"))
      return finishOutput(out);
  }
  return status;
}

int Runner::bench() {
  Result<BenchResult> measured = runBench(*session, options.promptTokens, options.newTokens);
  if (!measured.ok())
    return reportError(measured.message());
  printDevices();
  printProfile(options.promptTokens, options.newTokens);
  Output out(STDOUT_FILENO);
  out.write(options.json ? dumpJson(benchToJson(measured.value())) + "\n" : describeBench(measured.value()));
  return finishOutput(out);
}

int Runner::check() {
  Result<std::string> content = readFile(*options.check, mostGoldenBytes);
  if (!content.ok())
    return reportError(content.message());
  Result<JsonDocument> document = JsonDocument::parse(*options.check, std::move(content.value()));
  if (!document.ok())
    return reportError(document.message());
  const MccModel &model = session->model();
  Result<Golden> golden = readGolden(document.value(), model.vocabulary, model.context);
  if (!golden.ok())
    return reportError(golden.message());
  const CheckTolerance tolerance{options.tolerance, options.marginTolerance};
  Result<CheckReport> judged = checkGolden(*session, golden.value(), tokenizer.get(), tolerance);
  if (!judged.ok())
    return reportError(concat(*options.check, ": ", judged.message()));
  printDevices();
  Output out(STDOUT_FILENO);
  out.write(options.json ? dumpJson(reportToJson(judged.value())) + "\n"
                         : describeReport(judged.value(), *options.check, tolerance));
  return judged.value().ok() ? finishOutput(out) : 1;
}

} // namespace mcc::runtime
