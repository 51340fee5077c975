// GGUF metadata as a spec: the llama architecture and Qwen's, from small files made here.
#include "checkpoint_files.h"

#include "compiler/Import/Checkpoint.h"
#include "compiler/Import/GgufSpec.h"

#include "doctest/doctest.h"

#include <map>

using namespace mcc;
using namespace mcc::test;

namespace {

/// A GGUF file by key; tensors are f32 zeros in the order given.
struct ModelFile {
  std::string arch = "llama";
  std::map<std::string, std::string> entries;
  std::vector<std::pair<std::string, std::vector<int64_t>>> tensors;
  std::map<std::string, std::vector<float>> values;

  void u32(const std::string &key, uint32_t value) { entries[key] = ggufEntry(key, 4, bytesOf(value)); }
  void f32(const std::string &key, float value) { entries[key] = ggufEntry(key, 6, bytesOf(value)); }
  void text(const std::string &key, const std::string &value) { entries[key] = ggufEntry(key, 8, ggufString(value)); }
  void tensor(const std::string &name, std::vector<int64_t> dims) { tensors.emplace_back(name, dims); }

  explicit ModelFile(const std::string &name = "llama") : arch(name) {
    text("general.architecture", arch);
    u32(arch + ".embedding_length", 16);
    u32(arch + ".block_count", 1);
    u32(arch + ".context_length", 64);
    u32(arch + ".feed_forward_length", 32);
    u32(arch + ".attention.head_count", 4);
    u32(arch + ".attention.head_count_kv", 2);
    f32(arch + ".attention.layer_norm_rms_epsilon", 1e-5f);
    tensor("token_embd.weight", {16, 8});
    tensor("output_norm.weight", {16});
    for (const char *norm : {"attn_norm", "ffn_norm"})
      tensor(std::string("blk.0.") + norm + ".weight", {16});
    tensor("blk.0.attn_q.weight", {16, 16});
    tensor("blk.0.attn_k.weight", {16, 8});
    tensor("blk.0.attn_v.weight", {16, 8});
    tensor("blk.0.attn_output.weight", {16, 16});
    tensor("blk.0.ffn_gate.weight", {16, 32});
    tensor("blk.0.ffn_up.weight", {16, 32});
    tensor("blk.0.ffn_down.weight", {32, 16});
  }

  std::string bytes() const {
    GgufBuilder builder;
    for (const auto &[key, entry] : entries)
      builder.entries.push_back(entry);
    for (const auto &[name, dims] : tensors) {
      builder.tensors.push_back(ggufTensor(name, dims, 0, builder.data.size()));
      int64_t elems = 1;
      for (int64_t dim : dims)
        elems *= dim;
      std::vector<float> data(elems);
      if (auto found = values.find(name); found != values.end())
        data = found->second;
      builder.data.append(reinterpret_cast<const char *>(data.data()), 4 * data.size());
      builder.data.resize((builder.data.size() + 31) / 32 * 32);
    }
    return builder.text();
  }
};

llvm::Expected<ModelSpec> read(const ModelFile &file) {
  TempDirectory directory;
  auto checkpoint = openCheckpoint(directory.write("model.gguf", file.bytes()));
  if (!checkpoint)
    return checkpoint.takeError();
  llvm::Expected<ModelSpec> spec = readGgufSpec(**checkpoint);
  if (spec)
    if (llvm::Error error = checkTensors(**checkpoint, requiredTensors(*spec), spec->tiedHead))
      return error;
  return spec;
}

std::string errorOf(const ModelFile &file) {
  std::string message = messageOf(read(file));
  size_t at = message.find("model.gguf");
  return at == std::string::npos ? message : message.substr(at);
}

} // namespace

TEST_CASE("a llama file: adjacent pairs, a tied head where there is none") {
  ModelSpec spec = llvm::cantFail(read(ModelFile()));
  CHECK(spec.family == "llama");
  CHECK(spec.vocabulary == 8);
  CHECK(spec.hidden == 16);
  CHECK(spec.context == 64);
  CHECK(spec.tiedHead);
  CHECK(spec.finalNorm.eps == double(1e-5f));
  const AttentionSpec &attention = spec.block(0).attention;
  CHECK(attention.heads == 4);
  CHECK(attention.kvHeads == 2);
  CHECK(attention.headDim == 4);
  CHECK(attention.scale == 0.5);
  CHECK(attention.rope->pairing == RopeSpec::Pairing::Adjacent);
  CHECK(attention.rope->theta == 10000);
  CHECK(attention.rope->dims == 4);
  CHECK(!attention.qkvBias);
  CHECK(spec.tensorName("o", 0) == "blk.0.attn_output.weight");
  CHECK(spec.tensorName("embedding") == "token_embd.weight");
}

TEST_CASE("what a file holds beside the usual") {
  ModelFile file;
  file.tensor("output.weight", {16, 8});
  for (const char *name : {"attn_q", "attn_k", "attn_v"})
    file.tensor(std::string("blk.0.") + name + ".bias", {name[5] == 'q' ? 16 : 8});
  file.tensor("rope_freqs.weight", {2});
  file.values["rope_freqs.weight"] = {1, 8};
  file.f32("llama.rope.freq_base", 500000);
  ModelSpec spec = llvm::cantFail(read(file));
  CHECK(!spec.tiedHead);
  CHECK(spec.block(0).attention.qkvBias);
  CHECK(!spec.block(0).attention.outBias);
  CHECK(spec.block(0).attention.rope->theta == 500000);
  CHECK(spec.block(0).attention.rope->frequencyDivisors == std::vector<double>{1, 8});
}

TEST_CASE("qwen files keep the halves, qwen3 norms heads") {
  CHECK(llvm::cantFail(read(ModelFile("qwen2"))).block(0).attention.rope->pairing == RopeSpec::Pairing::Half);
  ModelFile file("qwen3");
  file.tensor("blk.0.attn_q_norm.weight", {4});
  file.tensor("blk.0.attn_k_norm.weight", {4});
  ModelSpec spec = llvm::cantFail(read(file));
  CHECK(spec.block(0).attention.qkNorm.has_value());
  CHECK(spec.tensorName("q_norm", 0) == "blk.0.attn_q_norm.weight");
}

TEST_CASE("end-of-text and first tokens") {
  ModelFile file;
  file.u32("tokenizer.ggml.bos_token_id", 1);
  file.u32("tokenizer.ggml.eos_token_id", 2);
  file.u32("tokenizer.ggml.eot_token_id", 5);
  file.u32("tokenizer.ggml.eom_token_id", 2);
  ModelSpec spec = llvm::cantFail(read(file));
  CHECK(spec.bosToken == 1);
  CHECK(spec.eosTokens == std::vector<int32_t>{2, 5});
  ModelFile sentencePiece;
  sentencePiece.text("tokenizer.ggml.model", "llama");
  CHECK(llvm::cantFail(read(sentencePiece)).bosToken == 1);
  CHECK(llvm::cantFail(read(ModelFile())).bosToken == -1);
}

TEST_CASE("rotary scaling") {
  ModelFile linear;
  linear.text("llama.rope.scaling.type", "linear");
  linear.f32("llama.rope.scaling.factor", 4);
  CHECK(llvm::cantFail(read(linear)).block(0).attention.rope->scaling == RopeSpec::Scaling::Linear);
  ModelFile yarn;
  yarn.text("llama.rope.scaling.type", "yarn");
  yarn.f32("llama.rope.scaling.factor", 4);
  yarn.u32("llama.rope.scaling.original_context_length", 16);
  const ModelSpec yarnSpec = llvm::cantFail(read(yarn));
  CHECK(yarnSpec.block(0).attention.rope->scaling == RopeSpec::Scaling::Yarn);
  CHECK(yarnSpec.block(0).attention.rope->originalContext == 16);
  ModelFile unknown;
  unknown.text("llama.rope.scaling.type", "liner");
  CHECK(errorOf(unknown) == "model.gguf: error: key 'llama.rope.scaling.type' is \"liner\", which is not supported; "
                            "known are 'none', 'linear' and "
                            "'yarn'; did you mean 'linear'?");
}

TEST_CASE("mixtures under the llama architecture") {
  ModelFile file;
  std::erase_if(file.tensors, [](const auto &tensor) {
    return tensor.first.find("ffn_") != std::string::npos && tensor.first.find("norm") == std::string::npos;
  });
  file.u32("llama.expert_count", 4);
  file.u32("llama.expert_used_count", 2);
  file.tensor("blk.0.ffn_gate_inp.weight", {16, 4});
  file.tensor("blk.0.ffn_gate_exps.weight", {16, 32, 4});
  file.tensor("blk.0.ffn_up_exps.weight", {16, 32, 4});
  file.tensor("blk.0.ffn_down_exps.weight", {32, 16, 4});
  ModelSpec spec = llvm::cantFail(read(file));
  CHECK(spec.block(0).moe->experts == 4);
  CHECK(spec.block(0).moe->normalize);
  CHECK(spec.block(0).mlp.width == 0);
}

TEST_CASE("errors name the key and what it holds") {
  ModelFile unknown;
  unknown.text("general.architecture", "lama");
  std::string message = errorOf(unknown);
  CHECK(holds(message, "key 'general.architecture' is \"lama\", which is not supported; known are 'apertus', "));
  CHECK(holds(message, " and 'starcoder2'; did you mean 'llama'?"));
  ModelFile strange;
  strange.u32("llama.attention.heads_squared", 7);
  CHECK(errorOf(strange) == "model.gguf: error: key 'llama.attention.heads_squared' is given; what it means for 'llama' is "
                            "not known, and the result may depend on it");
  strange.u32("llama.attention.heads_squared", 0);
  CHECK(errorOf(strange).empty());
  ModelFile headless;
  headless.u32("llama.attention.head_count", 0);
  CHECK(errorOf(headless) == "model.gguf: error: key 'llama.attention.head_count' is 0; expected at least 1");
  ModelFile odd;
  odd.u32("llama.attention.head_count_kv", 3);
  CHECK(errorOf(odd) == "model.gguf: error: the metadata make a spec whose field 'blocks[0].attention.kv_heads' is 3; "
                        "'heads' is 4, not a multiple of it");
  ModelFile values;
  values.u32("llama.attention.value_length", 8);
  CHECK(errorOf(values) == "model.gguf: error: key 'llama.attention.value_length' is 8; the keys have 4 dimensions");
  ModelFile missing;
  missing.entries.erase("llama.block_count");
  CHECK(errorOf(missing).find("llama.block_count") != std::string::npos);
  ModelFile typed;
  typed.text("llama.block_count", "1");
  CHECK(errorOf(typed).find("llama.block_count") != std::string::npos);
  ModelFile many;
  many.u32("llama.block_count", 4000000);
  CHECK(errorOf(many) == "model.gguf: error: key 'llama.block_count' is 4000000; at most 65536 layers are supported");
  ModelFile freqs;
  freqs.tensor("rope_freqs.weight", {3});
  freqs.values["rope_freqs.weight"] = {1, 1, 1};
  CHECK(errorOf(freqs) == "model.gguf: error: the metadata make a spec whose field "
                          "'blocks[0].attention.rope.frequency_divisors' has 3 elements; expected 2");
}

TEST_CASE("frequency divisors are one vector") {
  ModelFile square;
  square.tensor("rope_freqs.weight", {2, 2});
  CHECK(errorOf(square) == "model.gguf: tensor 'rope_freqs.weight': error: has type f32 and shape [2, 2]; expected f32 and "
                           "one divisor per rotated pair");
}

TEST_CASE("an architecture's name says what its file does not") {
  ModelSpec gemma = llvm::cantFail(read(ModelFile("gemma")));
  CHECK(gemma.embeddingScale == 4); // the square root of 16
  CHECK(gemma.finalNorm.weightOffset == 0); // the weights have their +1
  CHECK(gemma.block(0).mlp.activation == Activation::GeluTanh);
  ModelFile granite("granite");
  granite.f32("granite.logit_scale", 8);
  granite.f32("granite.residual_scale", 0.25f);
  ModelSpec scaled = llvm::cantFail(read(granite));
  CHECK(scaled.logitScale == 0.125);
  CHECK(scaled.block(0).residualScale == 0.25);
  CHECK(errorOf(ModelFile("hunyuan-dense")).empty());
  CHECK(llvm::cantFail(read(ModelFile("hunyuan-dense"))).block(0).attention.qkNormAfterRope);
  ModelFile seed("seed_oss");
  std::erase_if(seed.tensors, [](const auto &tensor) { return tensor.first == "blk.0.ffn_norm.weight"; });
  seed.tensor("blk.0.post_attention_norm.weight", {16});
  CHECK(llvm::cantFail(read(seed)).tensorName("mlp_norm", 0) == "blk.0.post_attention_norm.weight");
}

TEST_CASE("q, k and v of one tensor, and gate and up of one") {
  ModelFile file("phi3");
  std::erase_if(file.tensors, [](const auto &tensor) {
    const std::string &name = tensor.first;
    return holds(name, "attn_q") || holds(name, "attn_k") || holds(name, "attn_v") || holds(name, "ffn_gate") || holds(name, "ffn_up");
  });
  file.tensor("blk.0.attn_qkv.weight", {16, 32});
  file.tensor("blk.0.ffn_up.weight", {16, 64});
  ModelSpec spec = llvm::cantFail(read(file));
  CHECK(spec.block(0).attention.qkvLayout == QkvLayout::Concatenated);
  CHECK(spec.block(0).mlp.gateUpLayout == GateUpLayout::Concatenated);
  WeightSource up = weightSource(spec, "up", 0);
  CHECK(up.tensor == "blk.0.ffn_up.weight");
  CHECK(up.first == 32);
}

TEST_CASE("Apertus' activation weights are arrays of the metadata") {
  ModelFile file("apertus");
  std::erase_if(file.tensors, [](const auto &tensor) { return holds(tensor.first, "ffn_gate"); });
  for (const char *key : {"xielu.alpha_p", "xielu.alpha_n", "xielu.beta", "xielu.eps"})
    file.entries[key] = ggufEntry(key, 9, bytesOf<uint32_t>(6) + bytesOf<uint64_t>(1) + bytesOf(0.5f));
  CHECK(errorOf(file).empty());
  file.entries.erase("xielu.beta");
  CHECK(holds(errorOf(file), "tensor 'blk.0.xielu.beta': error: is missing"));
}

TEST_CASE("windows: a period by architecture, or the file's own pattern") {
  auto layersOf = [](ModelFile file) {
    file.u32(file.arch + ".block_count", 4);
    file.u32(file.arch + ".attention.sliding_window", 8);
    for (int layer = 0; layer < 4; ++layer)
      for (const char *name : {"attn_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm"})
        if (layer > 0 || std::string(name).starts_with("post"))
          file.tensor("blk." + std::to_string(layer) + "." + name + ".weight", {16});
    for (int layer = 1; layer < 4; ++layer)
      for (size_t i = 4, count = 11; i < count; ++i) {
        auto [name, dims] = file.tensors[i];
        file.tensor("blk." + std::to_string(layer) + name.substr(5), dims);
      }
    ModelSpec spec = llvm::cantFail(read(file));
    std::vector<int64_t> windows;
    for (int64_t layer = 0; layer < 4; ++layer)
      windows.push_back(spec.block(layer).attention.window);
    return windows;
  };
  CHECK(layersOf(ModelFile("gemma2")) == std::vector<int64_t>{8, 0, 8, 0});
  ModelFile file("gemma2");
  file.entries["gemma2.attention.sliding_window_pattern"] =
      ggufEntry("gemma2.attention.sliding_window_pattern", 9, bytesOf<uint32_t>(7) + bytesOf<uint64_t>(4) + std::string("\0\1\1\0", 4));
  CHECK(layersOf(file) == std::vector<int64_t>{0, 8, 8, 0});
}

TEST_CASE("a list of numbers per layer is taken where all are equal") {
  auto perLayer = [](std::vector<uint32_t> counts) {
    ModelFile file;
    file.u32("llama.block_count", 2);
    std::string payload = bytesOf<uint32_t>(4) + bytesOf<uint64_t>(counts.size());
    for (uint32_t count : counts)
      payload += bytesOf(count);
    file.entries["llama.attention.head_count_kv"] = ggufEntry("llama.attention.head_count_kv", 9, payload);
    return errorOf(file);
  };
  CHECK(perLayer({2, 1}) == "model.gguf: error: key 'llama.attention.head_count_kv' is 2 in layer 0 and 1 in layer 1; "
                            "only one value for all layers is supported");
  // Equal counts pass on to the check of tensors: layer 1 has none.
  CHECK(perLayer({2, 2}).find("blk.1.") != std::string::npos);
}
