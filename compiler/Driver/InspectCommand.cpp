// `mcc inspect FILE`. See InspectCommand.h.
#include "compiler/Driver/InspectCommand.h"

#include "compiler/Driver/Source.h"
#include "compiler/Import/SpecJson.h"
#include "compiler/Support/Error.h"

#include "llvm/Support/raw_ostream.h"

namespace mcc {

// A JSON file that is no safetensors index is a spec or a config.
static bool isSpecFile(llvm::StringRef path) { return path.ends_with(".json") && !path.ends_with(".index.json"); }

static void printSpecAndSize(const ModelSpec &spec) {
  llvm::outs() << printSpec(spec);
  llvm::outs().flush();
  llvm::errs() << describeSize(spec);
}

llvm::Error inspect(const InspectOptions &options) {
  if (isSpecFile(options.input)) {
    llvm::Expected<ModelSpec> spec = readSpecFile(options.input);
    if (!spec)
      return spec.takeError();
    printSpecAndSize(*spec);
    return llvm::Error::success();
  }
  auto checkpoint = openCheckpoint(options.input);
  if (!checkpoint)
    return checkpoint.takeError();
  if (!options.specOnly)
    printTensorTable(**checkpoint, llvm::outs());
  if (options.tensorsOnly)
    return llvm::Error::success();
  llvm::Expected<ModelSpec> spec = specOfCheckpoint(options.input, **checkpoint);
  if (spec) {
    printSpecAndSize(*spec);
    return llvm::Error::success();
  }
  if (options.specOnly)
    return spec.takeError();
  // The file itself is sound; that it makes no known model is worth a line, not a failure.
  llvm::outs().flush();
  llvm::errs() << "note: no spec: " << llvm::toString(spec.takeError()) << "\n";
  return llvm::Error::success();
}

} // namespace mcc
