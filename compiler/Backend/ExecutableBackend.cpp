// Compiles as `mcc` does and runs the executable once a sequence, as a user would: what is judged is what is shipped.
#include "compiler/Backend/ExecutableBackend.h"

#include "compiler/Backend/CudaDevice.h"
#include "compiler/Driver/CompileCommand.h"
#include "compiler/Driver/Installation.h"
#include "compiler/Support/Error.h"
#include "compiler/Support/Execute.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

namespace mcc {
namespace {

std::string joined(llvm::ArrayRef<int32_t> tokens) {
  return llvm::join(llvm::map_range(tokens, [](int32_t token) { return std::to_string(token); }), ",");
}

// Returns the ids that an executable printed, separated by commas; nothing where something else is printed.
std::optional<std::vector<int32_t>> parseTokens(llvm::StringRef text) {
  std::vector<int32_t> tokens;
  llvm::SmallVector<llvm::StringRef> parts;
  text.trim().split(parts, ',');
  for (llvm::StringRef part : parts) {
    int32_t token;
    if (part.trim().getAsInteger(10, token))
      return std::nullopt;
    tokens.push_back(token);
  }
  return tokens;
}

class ExecutableBackend : public Backend {
public:
  ExecutableBackend(llvm::StringRef name, llvm::StringRef summary, llvm::StringRef placement)
      : ownName(name), ownSummary(summary), placement(placement) {}
  llvm::StringRef name() const override { return ownName; }
  llvm::StringRef summary() const override { return ownSummary; }
  std::optional<std::string> missing() const override;
  llvm::Expected<Brought> bringUp(const BackendModel &model) const override;
  llvm::Expected<Generated> run(const BackendModel &model, llvm::ArrayRef<BackendSequence> sequences) const override;

private:
  bool onGpu() const { return placement == "gpu"; }
  llvm::Expected<std::vector<int32_t>> runOne(llvm::StringRef executable, const BackendSequence &sequence) const;

  llvm::StringRef ownName, ownSummary, placement;
};

std::optional<std::string> ExecutableBackend::missing() const {
  if (!onGpu())
    return std::nullopt;
  llvm::Expected<Installation> installation = Installation::find();
  if (!installation)
    return llvm::toString(installation.takeError());
  if (installation->gpuRuntime.empty())
    return "this mcc was built without CUDA";
  return missingCudaDevice();
}

llvm::Expected<Brought> ExecutableBackend::bringUp(const BackendModel &model) const {
  if (std::optional<std::string> reason = missing())
    return diagnose(ownName.str(), "{0}", *reason);
  CompileOptions options;
  options.inputs = model.inputs;
  options.output = model.output;
  options.context = model.context;
  options.placement.how = placement.str();
  if (llvm::Error error = compile(options))
    return std::move(error);
  llvm::SmallString<128> executable(model.output);
  llvm::sys::path::append(executable, "model");
  return Brought{executable.str().str()};
}

llvm::Expected<std::vector<int32_t>> ExecutableBackend::runOne(llvm::StringRef executable,
                                                               const BackendSequence &sequence) const {
  std::string prompt = joined(sequence.prompt), count = std::to_string(sequence.newTokens);
  llvm::Expected<Finished> finished = execute({executable, "--tokens", prompt, "-n", count, "--ignore-eos", "--placement", placement, "--on-gpu-missing=fail"});
  if (!finished)
    return finished.takeError();
  std::optional<std::vector<int32_t>> tokens = parseTokens(finished->out);
  if (finished->status != 0 || !tokens || static_cast<int64_t>(tokens->size()) != sequence.newTokens)
    return diagnose(ownName.str(), "{0} ended with {1}: {2}", executable, finished->status, llvm::StringRef(finished->err.empty() ? finished->out : finished->err).trim());
  // A run that went on without the GPU has the right tokens of the wrong device.
  if (onGpu() && llvm::StringRef(finished->err).contains("last error"))
    return diagnose(ownName.str(), "the GPU failed; {0}", llvm::StringRef(finished->err).trim());
  return *tokens;
}

llvm::Expected<Generated> ExecutableBackend::run(const BackendModel &model, llvm::ArrayRef<BackendSequence> sequences) const {
  llvm::Expected<Brought> brought = bringUp(model);
  if (!brought)
    return brought.takeError();
  Generated generated;
  for (const BackendSequence &sequence : sequences) {
    llvm::Expected<std::vector<int32_t>> tokens = runOne(brought->artefact, sequence);
    if (!tokens)
      return tokens.takeError();
    generated.tokens.push_back(std::move(*tokens));
  }
  return generated;
}

} // namespace

const Backend &nativeBackend() {
  static const ExecutableBackend backend("native", "the produced executable on the CPU", "cpu");
  return backend;
}

const Backend &cudaBackend() {
  static const ExecutableBackend backend("cuda", "the produced executable on the GPU", "gpu");
  return backend;
}

} // namespace mcc
