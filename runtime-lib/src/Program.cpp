// The commands of a compiled model. Each opens only what it needs: --info and --version read nothing, --verify only
// the weights, and what runs steps checks the processor before it loads anything.
#include "runtime-lib/src/Program.h"

#include "runtime-lib/src/ModelInfo.h"
#include "runtime-lib/src/Output.h"
#include "runtime-lib/src/Runner.h"
#include "runtime-lib/src/Text.h"

#include <unistd.h>

namespace mcc::runtime {

static int printText(const std::string &text) {
  Output out(STDOUT_FILENO);
  out.write(text);
  return finishOutput(out);
}

static std::string versionText(const MccModel &model) {
  return concat(infoText(model, "family").value_or("unnamed"), " model compiled by ",
                infoText(model, "compiler").value_or("an unknown compiler"), "; runtime ", MCC_VERSION, ", ABI ",
                MCC_ABI_VERSION, "\n");
}

static int verify(const MccModel &model, const Options &options) {
  Result<WeightsFile> weights = openWeights(model, options);
  if (!weights.ok())
    return reportError(weights.message());
  if (Status status = weights.value().verify(); !status.ok())
    return reportError(status.message());
  std::string text;
  for (uint32_t i = 0; i < weights.value().header().segmentCount; ++i) {
    const MccBlobSegment &segment = weights.value().header().segments[i];
    text += concat(weights.value().path(), ": segment '", segmentName(segment), "': ", segment.bytes, " bytes, ok\n");
  }
  return printText(text);
}

int runProgram(const MccModel &model, const Options &options, const std::string &program) {
  if (model.abi != MCC_ABI_VERSION)
    return reportError(concat("error: the model's object has ABI ", model.abi,
                              "; the runtime it is linked with has ABI ", MCC_ABI_VERSION));
  if (options.help)
    return printText(helpText(program));
  if (options.version)
    return printText(versionText(model));
  if (options.info)
    return printText(dumpJson(describeModel(model), 2) + "\n");
  if (options.verify)
    return verify(model, options);
  Result<std::unique_ptr<Runner>> runner = Runner::create(model, options);
  if (!runner.ok())
    return reportError(runner.message());
  if (options.bench)
    return runner.value()->bench();
  if (options.check)
    return runner.value()->check();
  return options.prompts ? runner.value()->generateLines() : runner.value()->generateOne();
}

} // namespace mcc::runtime
