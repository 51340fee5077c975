// Published configs and checkpoints: each config gives a spec or one line that names the field, the numbers of
// parameters are those that the models are known by, and GGUF and Hugging Face forms of one model agree. Skipped (77)
// without MCC_ORACLE_DIR.
#include "checkpoint_files.h"
#include "spec_files.h"

#include "compiler/Import/Checkpoint.h"
#include "compiler/Import/GgufSpec.h"

#define DOCTEST_CONFIG_IMPLEMENT
#include "doctest/doctest.h"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>

using namespace mcc;
using namespace mcc::test;

static std::filesystem::path oracle;

static llvm::Expected<ModelSpec> readConfig(const std::filesystem::path &path) {
  llvm::Expected<JsonDocument> document = JsonDocument::read(path.string());
  if (!document)
    return document.takeError();
  return readHuggingFaceConfig(*document);
}

TEST_CASE("every published config gives a spec, or one line that names the field") {
  int specs = 0, refused = 0;
  for (const auto &entry : std::filesystem::directory_iterator(oracle / "configs")) {
    if (entry.path().extension() != ".json")
      continue;
    std::string name = entry.path().filename().string();
    CAPTURE(name);
    llvm::Expected<ModelSpec> spec = readConfig(entry.path());
    if (spec) {
      ++specs;
      std::string text = printSpec(*spec);
      CHECK(llvm::cantFail(readSpec(json(text))) == *spec);
      CHECK(!describeSize(*spec).empty());
      continue;
    }
    ++refused;
    std::string message = llvm::toString(spec.takeError());
    CHECK(message.find('\n') == std::string::npos);
    bool names = message.find("field 'model_type'") != std::string::npos || name == "pythia-410m-seqcls.json" ||
                 name == "mlc_gpt_j.json";
    CHECK_MESSAGE(names, message);
  }
  CHECK(specs == 97);
  CHECK(refused == 31);
}

TEST_CASE("parameters of models as their makers count them") {
  // What these shapes come to; they agree with the sizes that the models are known by.
  const std::pair<const char *, int64_t> known[] = {
      {"llama-2-7b-hf", 6738415616},       {"llama-3-8b-instruct", 8030261248},
      {"llama3.1-405b", 405853388800},     {"mlc_llama3_2_1b", 1235814400},
      {"mlc_mistral_7b_v03", 7248023552},  {"mixtral-8x7b", 46702792704},
      {"qwen2-7b-instruct", 7615616512},   {"qwen3-0.6b", 596049920},
      {"qwen3-235b-a22b", 235093634560},   {"gemma-7b", 8537680896},
      {"gemma-2-9b", 9241705984},          {"mlc_gemma3_1b_it", 999885952},
      {"mlc_phi-4", 3836021760},           {"deepseek-v3", 671026419200},
      {"kimi-k2", 1026408232448},          {"gpt-oss-20b", 20914757184},
      {"gpt-oss-120b", 116829156672},      {"mlc_gpt2", 124439808},
      {"pythia-6.9b-deduped", 6857302016}, {"mlc_smollm2_135m", 134515008},
      {"olmoe-1b-7b-0924", 6919161856},    {"starcoder2-15b", 15957889024},
      {"smollm3-3b", 3075098624},          {"mpt-7b-instruct", 6649286656},
      {"mamba-2.8b-hf", 2768345600},       {"opt-6.7b", 6658473984},
      {"bloom-560m", 559214592},           {"falcon-7b", 6921720704},
      {"mlc_olmo2_7b", 7298617344},        {"mlc_aya-23", 8028033024}};
  for (auto [name, parameters] : known) {
    CAPTURE(name);
    CHECK(modelSize(llvm::cantFail(readConfig(oracle / "configs" / (std::string(name) + ".json")))).parameters ==
          parameters);
  }
}

/// Checks that a folder's spec names its tensors exactly.
static void checkFolder(const std::filesystem::path &folder) {
  CAPTURE(folder.string());
  ModelSpec spec = llvm::cantFail(readConfig(folder / "config.json"));
  auto checkpoint = llvm::cantFail(openCheckpoint(folder.string()));
  fitTensorPrefix(spec, [&](llvm::StringRef name) { return checkpoint->find(name) != nullptr; });
  std::map<std::string, std::vector<int64_t>> stored, needed;
  for (const TensorInfo &tensor : checkpoint->tensors())
    stored[tensor.name] = tensor.shape;
  for (const RequiredTensor &tensor : requiredTensors(spec))
    needed[tensor.name] = tensor.shape;
  CHECK(needed == stored);
}

TEST_CASE("folders: exactly the tensors that are there") {
  for (const char *group : {"families", "arch-pairs"})
    for (const auto &entry : std::filesystem::directory_iterator(oracle / group))
      checkFolder(entry.path());
  for (const char *name : {"hf-f32", "hf-bf16-sharded3", "hf-f16-untied"})
    checkFolder(oracle / "stories260K" / name);
}

TEST_CASE("the same weights as GGUF and as a folder have one spec, but for names and the order of pairs") {
  for (const char *name : {"llama-bias", "llama3-rope", "qwen2-bias"}) {
    CAPTURE(name);
    ModelSpec folder = llvm::cantFail(readConfig(oracle / "arch-pairs" / name / "config.json"));
    auto checkpoint = llvm::cantFail(openCheckpoint((oracle / "arch-pairs" / name / "model.gguf").string()));
    ModelSpec gguf = llvm::cantFail(readGgufSpec(*checkpoint));
    CHECK(messageOf(checkTensors(*checkpoint, requiredTensors(gguf), gguf.tiedHead)) == "");
    CHECK(modelSize(gguf).parameters == modelSize(folder).parameters);
    const AttentionSpec &ours = gguf.block(0).attention, &theirs = folder.block(0).attention;
    CHECK(ours.heads == theirs.heads);
    CHECK(ours.kvHeads == theirs.kvHeads);
    CHECK(ours.scale == theirs.scale);
    CHECK(ours.qkvBias == theirs.qkvBias);
    CHECK(ours.outBias == theirs.outBias);
    CHECK(ours.rope->theta == theirs.rope->theta);
    CHECK(float(gguf.finalNorm.eps) == float(folder.finalNorm.eps));
    CHECK(gguf.layers == folder.layers);
    CHECK(gguf.context == folder.context);
    bool scaled = theirs.rope->scaling == RopeSpec::Scaling::Llama3;
    CHECK(scaled == !ours.rope->frequencyDivisors.empty());
  }
}

int main(int argc, char **argv) {
  const char *path = std::getenv("MCC_ORACLE_DIR");
  if (!path) {
    std::cout << "skipped: MCC_ORACLE_DIR is not set\n";
    return 77;
  }
  oracle = path;
  return doctest::Context(argc, argv).run();
}
