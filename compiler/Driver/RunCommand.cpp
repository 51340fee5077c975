#include "compiler/Driver/RunCommand.h"

#include "compiler/Driver/BackendInputs.h"
#include "runtime-lib/src/Judgement.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

namespace mcc {

llvm::Error runBackend(const RunOptions &options, bool &ok) {
  llvm::Expected<const Backend *> backend = usableBackend(options.backend);
  if (!backend)
    return backend.takeError();
  llvm::Expected<GoldenLimits> limits = goldenLimits(options.model);
  if (!limits)
    return limits.takeError();
  llvm::Expected<runtime::Golden> golden = openGolden(options.sequences, *limits);
  if (!golden)
    return golden.takeError();
  std::vector<BackendSequence> sequences;
  for (const runtime::GoldenSequence &sequence : golden->sequences)
    sequences.push_back({sequence.prompt, static_cast<int64_t>(sequence.expect.size())});
  llvm::Expected<std::vector<Generated>> generated = (*backend)->run(options.model, sequences, /*margins=*/false);
  if (!generated)
    return generated.takeError();
  const runtime::CheckTolerance tolerance;
  runtime::CheckReport report;
  for (auto [sequence, found] : llvm::zip_equal(golden->sequences, *generated))
    report.sequences.push_back(runtime::judgeTokens(sequence, found.tokens, tolerance));
  llvm::outs() << runtime::describeReport(report, options.sequences, tolerance);
  ok = report.ok();
  return llvm::Error::success();
}

void listBackends() {
  for (const Backend *backend : backends()) {
    std::optional<std::string> reason = backend->missing();
    llvm::outs() << llvm::formatv("{0,-8} {1}: {2}\n", backend->name(), backend->summary(),
                                  reason ? "not usable: " + *reason : "usable");
  }
}

} // namespace mcc
