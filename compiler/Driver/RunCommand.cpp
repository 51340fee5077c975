#include "compiler/Driver/RunCommand.h"

#include "compiler/Driver/Source.h"
#include "compiler/Support/Error.h"
#include "runtime-lib/src/Files.h"
#include "runtime-lib/src/Judgement.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

namespace mcc {
namespace {

// Most bytes of a golden file.
constexpr size_t goldenLimit = size_t(256) << 20;

llvm::Expected<const Backend *> findBackend(llvm::StringRef name) {
  for (const Backend *backend : backends())
    if (backend->name() == name)
      return backend;
  return diagnose("", "unknown back end {0}; known are {1}", quoted(name),
                  llvm::join(llvm::map_range(backends(), [](const Backend *backend) { return backend->name().str(); }), ", "));
}

// An error of the runtime's readers, whose message begins with its place.
llvm::Error failureOf(llvm::StringRef message) {
  auto [where, fact] = message.split(": error: ");
  return fact.empty() ? diagnose("", "{0}", message) : diagnose(where.str(), "{0}", fact);
}

llvm::Expected<runtime::Golden> openGolden(const RunOptions &options) {
  llvm::Expected<Source> source = openSource(options.model.inputs, "");
  if (!source)
    return source.takeError();
  runtime::Result<std::string> text = runtime::readFile(options.sequences, goldenLimit);
  if (!text.ok())
    return failureOf(text.message());
  runtime::Result<runtime::JsonDocument> document = runtime::JsonDocument::parse(options.sequences, std::move(text.value()));
  if (!document.ok())
    return failureOf(document.message());
  int64_t context = options.model.context > 0 ? options.model.context : std::max<int64_t>(source->spec.context, 1);
  runtime::Result<runtime::Golden> golden = runtime::readGolden(document.value(), source->spec.vocabulary, context);
  if (!golden.ok())
    return failureOf(golden.message());
  return std::move(golden.value());
}

} // namespace

llvm::Error runBackend(const RunOptions &options, bool &ok) {
  llvm::Expected<const Backend *> backend = findBackend(options.backend);
  if (!backend)
    return backend.takeError();
  if (std::optional<std::string> reason = (*backend)->missing())
    return diagnose((*backend)->name().str(), "{0}", *reason);
  llvm::Expected<runtime::Golden> golden = openGolden(options);
  if (!golden)
    return golden.takeError();
  std::vector<BackendSequence> sequences;
  for (const runtime::GoldenSequence &sequence : golden->sequences)
    sequences.push_back({sequence.prompt, static_cast<int64_t>(sequence.expect.size())});
  llvm::Expected<Generated> generated = (*backend)->run(options.model, sequences);
  if (!generated)
    return generated.takeError();
  const runtime::CheckTolerance tolerance;
  runtime::CheckReport report;
  for (auto [sequence, tokens] : llvm::zip_equal(golden->sequences, generated->tokens))
    report.sequences.push_back(runtime::judgeTokens(sequence, tokens, tolerance));
  llvm::outs() << runtime::describeReport(report, options.sequences, tolerance);
  ok = report.ok();
  return llvm::Error::success();
}

void listBackends() {
  for (const Backend *backend : backends()) {
    std::optional<std::string> reason = backend->missing();
    llvm::outs() << llvm::formatv("{0,-8} {1}: {2}\n", backend->name(), backend->summary(), reason ? "not usable: " + *reason : "usable");
  }
}

} // namespace mcc
