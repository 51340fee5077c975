// `mcc [SPEC] CHECKPOINT -o OUT`: import, build, passes, pack, code, link; in this order, stopping where --emit says.
#include "compiler/Driver/CompileCommand.h"

#include "codegen/CPU/EmitObject.h"
#include "codegen/Object/Link.h"
#include "compiler/Artifact/BlobWriter.h"
#include "compiler/Artifact/Manifest.h"
#include "compiler/Artifact/OutputFolder.h"
#include "compiler/Artifact/PackWeights.h"
#include "compiler/Build/BuildStep.h"
#include "compiler/Driver/Installation.h"
#include "compiler/Driver/Source.h"
#include "compiler/Import/Gguf.h"
#include "compiler/Import/SpecJson.h"
#include "compiler/Support/Error.h"
#include "compiler/Tokenizer/TokenizerImport.h"
#include "dialects/Exec/IR/Address.h"
#include "dialects/Exec/IR/ProgramTable.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <unistd.h>

namespace mcc {
namespace {

// Bytes that one cache position takes in all layers, as the kernels lay caches out (f32).
int64_t cacheBytesPerPosition(const ModelSpec &spec) { return std::max<int64_t>(modelSize(spec).cacheElems * 4, 1); }

// Returns the positions to compile for: as asked, or the model's own, so that the cache takes at most a quarter of memory.
llvm::Expected<int64_t> chooseContext(const ModelSpec &spec, int64_t asked) {
  int64_t learned = spec.learnedPositions - spec.positionOffset;
  if (spec.learnedPositions != 0 && asked > learned)
    return diagnose("", "--ctx {0}: the model has learned embeddings for {1} positions; give at most that", asked, learned);
  if (asked > 0)
    return asked;
  int64_t memory = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  int64_t own = spec.context > 0 ? spec.context : 4096;
  if (spec.learnedPositions != 0)
    own = std::min(own, learned);
  int64_t most = std::max<int64_t>(memory / 4 / cacheBytesPerPosition(spec), 1);
  if (own <= most)
    return own;
  llvm::errs() << llvm::formatv("note: context {0} instead of the model's {1}, so that the cache takes at most a quarter of this machine's {2:f1} GiB; "
                                "--ctx sets it\n",
                                most, own, static_cast<double>(memory) / (1 << 30));
  return most;
}

llvm::Error writeText(llvm::StringRef path, llvm::StringRef text) {
  std::error_code error;
  llvm::raw_fd_ostream stream(path.empty() ? "-" : path, error);
  if (error)
    return diagnose(path.str(), "cannot write: {0}", error.message());
  stream << text;
  stream.flush();
  error = stream.error();
  stream.clear_error();
  if (error && error != std::errc::broken_pipe)
    return diagnose(path.str(), "cannot write: {0}", error.message());
  return llvm::Error::success();
}

// Prints a module with its locations' names left out: text that mcc-opt takes up.
std::string moduleText(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  stream << '\n';
  return text;
}

// Serialises the model's tokenizer; empty where it has none.
llvm::Expected<std::vector<uint8_t>> importTokenizer(const Source &source) {
  if (!source.tokenizer.empty())
    return importTokenizerJson(source.tokenizer, source.defaultBos);
  if (source.checkpoint->gguf() && source.checkpoint->gguf()->find("tokenizer.ggml.model"))
    return importGgufTokenizer(*source.checkpoint->gguf());
  llvm::errs() << "note: no tokenizer.json beside the inputs; the executable takes and gives token ids only (--tokens)\n";
  return std::vector<uint8_t>();
}

// One compilation after import.
class Compilation {
public:
  Compilation(const CompileOptions &options, Source source, CpuTarget target) : options(options), source(std::move(source)), target(std::move(target)) {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  llvm::Error run(int64_t positions);

private:
  llvm::Error lower(mlir::ModuleOp module, Phase from, Phase to);
  // Lowers to the planned program and decides where its launches run.
  llvm::Error plan(mlir::ModuleOp module);
  llvm::Error writeBlob(exec::ProgramOp program, BlobWriter &writer);
  ModelDescriptor describe(const ManifestFacts &facts);
  llvm::Error writeArtefacts(mlir::ModuleOp module);
  llvm::Error writeCode(mlir::ModuleOp module, const ModelDescriptor &descriptor, const Installation &installation, OutputFolder &folder);
  // Whether the executable is to hold what runs launches on a GPU.
  bool usesGpu() const { return options.placement.how != "cpu"; }

  const CompileOptions &options;
  Source source;
  CpuTarget target;
  mlir::MLIRContext context;
  int64_t chunk = 0; // most tokens in one step, at most the context
  std::vector<uint8_t> tokenizer;
  PlacementResult placement;
};

llvm::Error Compilation::lower(mlir::ModuleOp module, Phase from, Phase to) {
  std::string message;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error && message.empty())
      message = diagnostic.str();
    return mlir::success();
  });
  if (mlir::failed(runPhases(module, from, to, PipelineOptions{chunk, options.placement.how == "gpu" ? "gpu" : "cpu", usesGpu()})))
    return diagnose("", "internal: {0}; please report this with the model's config", message);
  return llvm::Error::success();
}

llvm::Error Compilation::plan(mlir::ModuleOp module) {
  if (llvm::Error error = lower(module, Phase::Mcc, Phase::Exec))
    return error;
  if (!options.placement.decidesByLaunch())
    return llvm::Error::success();
  llvm::Expected<PlacementResult> placed = placeLaunches(*module.getOps<exec::ProgramOp>().begin(), options.placement);
  if (!placed)
    return placed.takeError();
  placement = std::move(*placed);
  llvm::outs() << placement.explanation;
  return llvm::Error::success();
}

llvm::Error Compilation::writeBlob(exec::ProgramOp program, BlobWriter &writer) {
  writer.beginSegment("weights");
  if (llvm::Error error = packWeights(program, *source.checkpoint, writer))
    return error;
  if (!tokenizer.empty()) {
    writer.beginSegment("tokenizer");
    writer.append(tokenizer.data(), tokenizer.size());
  }
  if (!writer.finish())
    return blobError(writer);
  return llvm::Error::success();
}

ModelDescriptor Compilation::describe(const ManifestFacts &facts) {
  exec::ProgramOp program = facts.program;
  ModelDescriptor descriptor;
  descriptor.info = modelInfo(facts);
  descriptor.blobId = facts.blobId;
  descriptor.blobBytes = facts.blobBytes;
  descriptor.arenaBytes = *program.getArenaBytes();
  descriptor.scratchBytes = *program.getScratchBytes();
  descriptor.cacheBytes = *program.getCacheBytes();
  descriptor.context = program.getContext();
  descriptor.chunk = program.getChunk();
  descriptor.vocabulary = program.getVocabulary();
  for (exec::ResultOp result : program.getBody().getOps<exec::ResultOp>()) {
    descriptor.tokenOffset = exec::addressOf(result.getToken()).offset;
    descriptor.logitsOffset = exec::addressOf(result.getLogits()).offset;
  }
  if (usesGpu())
    descriptor.program = exec::programTable(program);
  descriptor.bosToken = source.spec.bosToken;
  descriptor.eosTokens = source.spec.eosTokens;
  return descriptor;
}

llvm::Error Compilation::writeCode(mlir::ModuleOp module, const ModelDescriptor &descriptor, const Installation &installation, OutputFolder &folder) {
  if (llvm::Error error = lower(module, Phase::Exec, Phase::Llvm))
    return error;
  auto object = emitObject(module, descriptor, target, installation.kernels);
  if (!object)
    return object.takeError();
  llvm::StringRef bytes(object->data(), object->size());
  if (options.emit == Phase::Obj)
    return folder.write("model.o", bytes);
  llvm::Expected<std::string> file = folder.writeScratch("model.o", bytes);
  if (!file)
    return file.takeError();
  llvm::SmallVector<llvm::StringRef> archives;
  if (usesGpu())
    archives.push_back(installation.gpuRuntime);
  archives.push_back(installation.runtime);
  return linkExecutable(*file, archives, folder.temporary("model"));
}

llvm::Error Compilation::writeArtefacts(mlir::ModuleOp module) {
  llvm::Expected<std::vector<uint8_t>> imported = importTokenizer(source);
  if (!imported)
    return imported.takeError();
  tokenizer = std::move(*imported);
  llvm::Expected<Installation> installation = Installation::find();
  if (!installation)
    return installation.takeError();
  if (usesGpu() && options.emit == Phase::Exe && installation->gpuRuntime.empty())
    return diagnose("", "--placement {0}: this mcc was built without CUDA (lib/mcc/libmccrt-cuda.a is missing); build it with -DMCC_CUDA=ON, or use --placement cpu",
                    options.placement.how);
  llvm::Expected<OutputFolder> folder = OutputFolder::open(options.output);
  if (!folder)
    return folder.takeError();
  if (llvm::Error error = plan(module))
    return error;
  exec::ProgramOp program = *module.getOps<exec::ProgramOp>().begin();
  BlobWriter blob(folder->path("model.weights"));
  if (llvm::Error error = writeBlob(program, blob))
    return error;
  ManifestFacts facts{source.spec, program, blob.id(), blob.fileBytes(), target.cpu, !tokenizer.empty(), placement.predicted};
  if (llvm::Error error = folder->write("manifest.json", manifest(facts)))
    return error;
  if (llvm::Error error = writeCode(module, describe(facts), *installation, *folder))
    return error;
  // All are complete: now, and quickly, the final names.
  if (!blob.commit())
    return blobError(blob);
  return folder->commit();
}

llvm::Error Compilation::run(int64_t positions) {
  // A GPU needs thousands of rows to be busy; for a CPU more than a hundred only cost memory.
  chunk = std::min<int64_t>(options.chunk > 0 ? options.chunk : usesGpu() ? 2048 : 128, positions);
  auto module = buildStep(context, source.spec, *source.checkpoint, positions);
  if (!module)
    return module.takeError();
  if (options.emit >= Phase::Obj)
    return writeArtefacts(**module);
  if (llvm::Error error = options.emit < Phase::Exec ? lower(**module, Phase::Mcc, options.emit) : plan(**module))
    return error;
  if (options.emit > Phase::Exec)
    if (llvm::Error error = lower(**module, Phase::Exec, options.emit))
      return error;
  return writeText(options.output, moduleText(**module));
}

} // namespace

llvm::Error compile(const CompileOptions &options) {
  llvm::Expected<CpuTarget> target = resolveCpuTarget(options.targetCpu);
  if (!target)
    return target.takeError();
  llvm::Expected<Source> source = openSource(options.inputs, options.tokenizer);
  if (!source)
    return source.takeError();
  if (options.emit == Phase::Spec)
    return writeText(options.output, printSpec(source->spec));
  if (std::optional<std::string> field = unsupportedField(source->spec))
    return diagnose(options.inputs.front(), "family '{0}' sets '{1}', which mcc cannot compile yet; 'mcc inspect' shows the whole spec", source->spec.family, *field);
  llvm::Expected<int64_t> positions = chooseContext(source->spec, options.context);
  if (!positions)
    return positions.takeError();
  return Compilation(options, std::move(*source), std::move(*target)).run(*positions);
}

} // namespace mcc
