// Compiles as `mcc` does and runs the executable once a sequence, as a user would: what is judged is what is shipped.
#include "compiler/Backend/ExecutableBackend.h"

#include "compiler/Backend/CudaDevice.h"
#include "compiler/Driver/CompileCommand.h"
#include "compiler/Driver/Installation.h"
#include "compiler/Import/Safetensors.h"
#include "compiler/Support/Error.h"
#include "compiler/Support/Execute.h"
#include "compiler/Support/ScratchFolder.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <cassert>

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

// Returns the margins of the first `count` rows of `logits`, f32 [rows, vocabulary], as an executable writes them.
std::vector<double> marginsOf(const Checkpoint &file, int64_t count) {
  const TensorInfo *logits = file.find("logits");
  assert(logits && logits->rows() >= count && "an executable writes a row for every token");
  std::vector<float> row(static_cast<size_t>(logits->cols()));
  std::vector<double> margins;
  for (int64_t i = 0; i < count; ++i) {
    file.readRows(*logits, i, 1, reinterpret_cast<uint8_t *>(row.data()));
    std::partial_sort(row.begin(), row.begin() + std::min<size_t>(2, row.size()), row.end(), std::greater<float>());
    margins.push_back(row.size() > 1 ? double(row[0]) - double(row[1]) : 0.0);
  }
  return margins;
}

class ExecutableBackend : public Backend {
public:
  ExecutableBackend(llvm::StringRef name, llvm::StringRef summary, llvm::StringRef placement)
      : ownName(name), ownSummary(summary), placement(placement) {}
  llvm::StringRef name() const override { return ownName; }
  llvm::StringRef summary() const override { return ownSummary; }
  std::optional<std::string> missing() const override;
  llvm::Expected<Brought> bringUp(const BackendModel &model) const override;
  llvm::Expected<std::vector<Generated>> run(const BackendModel &model, llvm::ArrayRef<BackendSequence> sequences,
                                             bool margins) const override;

private:
  bool onGpu() const { return placement == "gpu"; }
  llvm::Expected<Generated> runOne(llvm::StringRef executable, const BackendSequence &sequence,
                                   const std::string &logits) const;

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

// `logits`: a file for the logits, from which margins come; empty for none.
llvm::Expected<Generated> ExecutableBackend::runOne(llvm::StringRef executable, const BackendSequence &sequence,
                                                    const std::string &logits) const {
  std::string prompt = joined(sequence.prompt), count = std::to_string(sequence.newTokens);
  llvm::SmallVector<llvm::StringRef> command{
      executable, "--tokens", prompt, "-n", count, "--ignore-eos", "--placement", placement, "--on-gpu-missing=fail"};
  if (!logits.empty())
    command.append({"--logits", logits});
  llvm::Expected<Finished> finished = execute(command);
  if (!finished)
    return finished.takeError();
  std::optional<std::vector<int32_t>> tokens = parseTokens(finished->out);
  if (finished->status != 0 || !tokens || static_cast<int64_t>(tokens->size()) != sequence.newTokens)
    return diagnose(ownName.str(), "{0} ended with {1}: {2}", executable, finished->status,
                    llvm::StringRef(finished->err.empty() ? finished->out : finished->err).trim());
  // A run that went on without the GPU has the right tokens of the wrong device.
  if (onGpu() && llvm::StringRef(finished->err).contains("last error"))
    return diagnose(ownName.str(), "the GPU failed; {0}", llvm::StringRef(finished->err).trim());
  Generated generated{std::move(*tokens), {}};
  if (logits.empty())
    return generated;
  llvm::Expected<std::unique_ptr<Checkpoint>> file = openSafetensors(logits);
  if (!file)
    return file.takeError();
  generated.margins = marginsOf(**file, sequence.newTokens);
  return generated;
}

llvm::Expected<std::vector<Generated>>
ExecutableBackend::run(const BackendModel &model, llvm::ArrayRef<BackendSequence> sequences, bool margins) const {
  llvm::Expected<Brought> brought = bringUp(model);
  if (!brought)
    return brought.takeError();
  llvm::Expected<ScratchFolder> folder = ScratchFolder::create("logits");
  if (!folder)
    return folder.takeError();
  std::vector<Generated> all;
  for (const BackendSequence &sequence : sequences) {
    llvm::Expected<Generated> generated =
        runOne(brought->artefact, sequence, margins ? folder->file("logits.safetensors") : "");
    if (!generated)
      return generated.takeError();
    all.push_back(std::move(*generated));
  }
  return all;
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
