#include "compiler/Driver/BackendInputs.h"

#include "compiler/Driver/Source.h"
#include "compiler/Support/Error.h"
#include "runtime-lib/src/Files.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace mcc {
namespace {

// Most bytes of a golden file.
constexpr size_t goldenLimit = size_t(256) << 20;

// An error of the runtime's readers, whose message begins with its place.
llvm::Error failureOf(llvm::StringRef message) {
  auto [where, fact] = message.split(": error: ");
  return fact.empty() ? diagnose("", "{0}", message) : diagnose(where.str(), "{0}", fact);
}

} // namespace

llvm::Expected<const Backend *> usableBackend(llvm::StringRef name) {
  for (const Backend *backend : backends()) {
    if (backend->name() != name)
      continue;
    if (std::optional<std::string> reason = backend->missing())
      return diagnose(name.str(), "{0}", *reason);
    return backend;
  }
  return diagnose(
      "", "unknown back end {0}; known are {1}", quoted(name),
      llvm::join(llvm::map_range(backends(), [](const Backend *backend) { return backend->name().str(); }), ", "));
}

llvm::Expected<GoldenLimits> goldenLimits(const BackendModel &model) {
  llvm::Expected<Source> source = openSource(model.inputs, "");
  if (!source)
    return source.takeError();
  return GoldenLimits{source->spec.vocabulary,
                      model.context > 0 ? model.context : std::max<int64_t>(source->spec.context, 1)};
}

llvm::Expected<runtime::Golden> openGolden(const std::string &path, const GoldenLimits &limits) {
  runtime::Result<std::string> text = runtime::readFile(path, goldenLimit);
  if (!text.ok())
    return failureOf(text.message());
  runtime::Result<runtime::JsonDocument> document = runtime::JsonDocument::parse(path, std::move(text.value()));
  if (!document.ok())
    return failureOf(document.message());
  runtime::Result<runtime::Golden> golden = runtime::readGolden(document.value(), limits.vocabulary, limits.context);
  if (!golden.ok())
    return failureOf(golden.message());
  return std::move(golden.value());
}

} // namespace mcc
