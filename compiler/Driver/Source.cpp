// Opens what the user named. See Source.h.
#include "compiler/Driver/Source.h"

#include "compiler/Import/Gguf.h"
#include "compiler/Import/GgufSpec.h"
#include "compiler/Import/HuggingFaceConfig.h"
#include "compiler/Import/QuantizedCheckpoint.h"
#include "compiler/Import/SpecJson.h"
#include "compiler/Support/Error.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace mcc {

static std::string join(llvm::StringRef folder, llvm::StringRef name) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

// Returns the folder that `path` is, or is in.
static std::string folderOf(llvm::StringRef path) {
  if (llvm::sys::fs::is_directory(path))
    return path.str();
  llvm::StringRef parent = llvm::sys::path::parent_path(path);
  return parent.empty() ? "." : parent.str();
}

llvm::Expected<ModelSpec> readSpecFile(llvm::StringRef path) {
  llvm::Expected<JsonDocument> document = JsonDocument::read(path);
  if (!document)
    return document.takeError();
  if (isSpecJson(*document))
    return readSpec(*document);
  std::string generationPath = join(folderOf(path), "generation_config.json");
  if (!llvm::sys::fs::exists(generationPath))
    return readHuggingFaceConfig(*document);
  llvm::Expected<JsonDocument> generation = JsonDocument::read(generationPath);
  if (!generation)
    return generation.takeError();
  return readHuggingFaceConfig(*document, &*generation);
}

llvm::Expected<ModelSpec> specOfCheckpoint(llvm::StringRef path, const Checkpoint &checkpoint) {
  if (checkpoint.gguf())
    return readGgufSpec(checkpoint);
  std::string config = join(folderOf(path), "config.json");
  if (!llvm::sys::fs::exists(config))
    return diagnose(path.str(), "has no config.json beside it, which says what model the tensors make; name one: mcc CONFIG {0}", path);
  return readSpecFile(config);
}

// Returns the checkpoint that random:SEED[:FORMAT] stands for.
static llvm::Expected<std::unique_ptr<Checkpoint>> openRandom(llvm::StringRef text, const ModelSpec &spec) {
  auto [seedText, formatText] = text.drop_front(strlen("random:")).split(':');
  uint64_t seed = 0;
  if (seedText.getAsInteger(10, seed))
    return diagnose("", "'{0}' has no seed; write random:SEED or random:SEED:FORMAT with a whole number, as in random:1:q4_0", text);
  std::optional<Format> format = formatText.empty() ? spec.dtype : parseFormat(formatText.lower());
  if (!format)
    return diagnose("", "'{0}' names unknown format '{1}'; known are f32, f16, bf16, q8_0, q4_0, q4_k, ...", text, formatText);
  return randomCheckpoint(seed, *format, requiredTensors(spec));
}

// Returns the tokenizer.json beside one of `paths`, or nothing.
static std::string findTokenizer(llvm::ArrayRef<std::string> paths) {
  for (const std::string &path : paths) {
    std::string candidate = join(folderOf(path), "tokenizer.json");
    if (llvm::sys::fs::exists(candidate))
      return candidate;
  }
  return "";
}

// Returns the token that texts begin with where tokenizer.json has no post-processor: the model's BOS, unless a
// tokenizer_config.json beside it does not ask for one.
static llvm::Expected<std::optional<int32_t>> defaultBos(const std::string &tokenizer, const ModelSpec &spec) {
  if (tokenizer.empty() || spec.bosToken < 0)
    return std::nullopt;
  std::string path = join(folderOf(tokenizer), "tokenizer_config.json");
  if (!llvm::sys::fs::exists(path))
    return spec.bosToken;
  llvm::Expected<JsonDocument> config = JsonDocument::read(path);
  if (!config)
    return config.takeError();
  const JsonMember *add = config->root.find("add_bos_token");
  if (add && add->value.kind == JsonValue::Kind::Bool && add->value.boolean)
    return spec.bosToken;
  return std::nullopt;
}

// Returns config.json for a folder, else `path` itself.
static std::string specPath(llvm::StringRef path) { return llvm::sys::fs::is_directory(path) ? join(path, "config.json") : path.str(); }

static llvm::Error openPair(Source &source, const std::string &specFile, const std::string &checkpointPath) {
  llvm::Expected<ModelSpec> spec = readSpecFile(specPath(specFile));
  if (!spec)
    return spec.takeError();
  source.spec = std::move(*spec);
  bool random = llvm::StringRef(checkpointPath).starts_with("random:");
  auto checkpoint = random ? openRandom(checkpointPath, source.spec) : openCheckpoint(checkpointPath);
  if (!checkpoint)
    return checkpoint.takeError();
  source.checkpoint = std::move(*checkpoint);
  return llvm::Error::success();
}

static llvm::Error openAlone(Source &source, const std::string &path) {
  auto checkpoint = openCheckpoint(path);
  if (!checkpoint)
    return checkpoint.takeError();
  source.checkpoint = std::move(*checkpoint);
  llvm::Expected<ModelSpec> spec = specOfCheckpoint(path, *source.checkpoint);
  if (!spec)
    return spec.takeError();
  source.spec = std::move(*spec);
  return llvm::Error::success();
}

llvm::Expected<Source> openSource(const std::vector<std::string> &inputs, llvm::StringRef tokenizer) {
  Source source;
  llvm::Error error = inputs.size() == 2 ? openPair(source, inputs[0], inputs[1]) : openAlone(source, inputs[0]);
  if (error)
    return std::move(error);
  // Published files of some families leave out the prefix of all tensor names, or add one.
  fitTensorPrefix(source.spec, [&](llvm::StringRef name) { return source.checkpoint->find(name) != nullptr; });
  if (source.spec.quantization) {
    auto unpacked = unpackQuantized(std::move(source.checkpoint), *source.spec.quantization, requiredTensors(source.spec));
    if (!unpacked)
      return unpacked.takeError();
    source.checkpoint = std::move(*unpacked);
  }
  if (llvm::Error mismatch = checkTensors(*source.checkpoint, requiredTensors(source.spec), source.spec.tiedHead))
    return std::move(mismatch);
  source.tokenizer = tokenizer.empty() ? (source.checkpoint->gguf() ? "" : findTokenizer(inputs)) : tokenizer.str();
  llvm::Expected<std::optional<int32_t>> bos = defaultBos(source.tokenizer, source.spec);
  if (!bos)
    return bos.takeError();
  source.defaultBos = *bos;
  return source;
}

} // namespace mcc
