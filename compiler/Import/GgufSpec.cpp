// GGUF metadata -> ModelSpec. An architecture is a row of a table; what a file leaves open is answered by which tensors
// it has.
//
// Facts of the format that matter here: the rows of q and k of architecture `llama` (Mistral and Mixtral included) are
// permuted, so that adjacent dimensions rotate together; the others keep Hugging Face's order. Llama 3's frequency
// scaling is a tensor of divisors, rope_freqs.weight. There is no flag for tied heads: the head's tensor is absent.
#include "compiler/Import/GgufSpec.h"

#include "compiler/Import/Checkpoint.h"
#include "compiler/Import/Gguf.h"
#include "compiler/Support/Error.h"
#include "compiler/Support/LocatedJson.h"
#include "compiler/Support/Suggest.h"

#include <cmath>
#include <cstring>

namespace mcc {

namespace {

struct Architecture {
  llvm::StringRef name;
  RopeSpec::Pairing pairing;
  bool hasExperts = false;
};

constexpr Architecture architectures[] = {
    {"llama", RopeSpec::Pairing::Adjacent, true},
    {"qwen2", RopeSpec::Pairing::Half},
    {"qwen3", RopeSpec::Pairing::Half},
};

class Reader {
public:
  Reader(const Checkpoint &checkpoint, const GgufFile &file, const Architecture &arch)
      : checkpoint(checkpoint), file(file), arch(arch) {}

  llvm::Expected<ModelSpec> run() {
    spec.family = arch.name.str();
    nameTensors();
    readSizes();
    if (!failure)
      readBlock();
    if (!failure)
      readTokens();
    if (failure)
      return std::move(*failure);
    if (std::optional<SpecProblem> problem = findProblem(spec))
      return diagnose(file.path(), "the metadata make a spec whose field '{0}' {1}", problem->field, problem->what);
    return spec;
  }

private:
  const Checkpoint &checkpoint;
  const GgufFile &file;
  const Architecture &arch;
  ModelSpec spec;
  std::optional<llvm::Error> failure;

  void fail(llvm::Error error) {
    if (failure)
      llvm::consumeError(std::move(error));
    else
      failure.emplace(std::move(error));
  }
  template <typename... Args>
  void refuse(const std::string &key, const char *format, Args &&...args) {
    fail(diagnose(file.path(), "key '{0}' {1}", key, llvm::formatv(format, std::forward<Args>(args)...).str()));
  }

  std::string key(llvm::StringRef name) const { return (arch.name + "." + name).str(); }
  bool has(llvm::StringRef tensor) const { return checkpoint.find(tensor) != nullptr; }

  template <typename T>
  T take(llvm::Expected<std::optional<T>> value, T fallback) {
    if (value)
      return value->value_or(fallback);
    fail(value.takeError());
    return fallback;
  }
  int64_t integer(llvm::StringRef name, int64_t fallback) { return take(file.getInt(key(name)), fallback); }
  double number(llvm::StringRef name, double fallback) { return take(file.getFloat(key(name)), fallback); }
  int64_t required(llvm::StringRef name) {
    llvm::Expected<int64_t> value = file.requireInt(key(name));
    if (!value) {
      fail(value.takeError());
      return 1;
    }
    if (*value < 1 || *value > (int64_t(1) << 40))
      refuse(key(name), "is {0}; expected at least 1", *value);
    return std::clamp<int64_t>(*value, 1, int64_t(1) << 40);
  }

  /// A key that is one number, or an array with a number per layer, which must then be the same.
  int64_t sameForLayers(llvm::StringRef name, int64_t fallback) {
    const GgufValue *value = file.find(key(name));
    if (!value || !value->isNumberArray())
      return integer(name, fallback);
    int64_t first = value->size() != 0 ? value->intAt(0).value_or(-1) : -1;
    for (uint64_t i = 0; i < value->size(); ++i)
      if (value->intAt(i) != first)
        refuse(key(name), "is {0} in layer 0 and {1} in layer {2}; only one value for all layers is supported", first,
               value->intAt(i).value_or(-1), i);
    return first;
  }

  void nameTensors() {
    spec.tensors = {
        {"embedding", "token_embd.weight"}, {"final_norm", "output_norm.weight"}, {"head", "output.weight"}};
    static constexpr std::pair<llvm::StringRef, llvm::StringRef> layerNames[] = {{"attention_norm", "attn_norm"},
                                                                                 {"q", "attn_q"},
                                                                                 {"k", "attn_k"},
                                                                                 {"v", "attn_v"},
                                                                                 {"o", "attn_output"},
                                                                                 {"mlp_norm", "ffn_norm"},
                                                                                 {"gate", "ffn_gate"},
                                                                                 {"up", "ffn_up"},
                                                                                 {"down", "ffn_down"}};
    for (auto [role, name] : layerNames)
      nameLayerTensor(role, name);
  }
  void nameLayerTensor(llvm::StringRef role, llvm::StringRef name) {
    spec.tensors[role.str()] = ("blk.{layer}." + name + ".weight").str();
  }

  void readSizes() {
    spec.hidden = required("embedding_length");
    spec.context = required("context_length");
    int64_t layers = required("block_count");
    if (layers > (1 << 16))
      refuse(key("block_count"), "is {0}; at most {1} layers are supported", layers, 1 << 16);
    if (failure)
      return;
    spec.layers.assign(layers, 0);
    // The embedding's rows are the logits' width, whatever the tokenizer's list and `vocab_size` say.
    spec.vocabulary = integer("vocab_size", 0);
    if (const TensorInfo *embedding = checkpoint.find("token_embd.weight")) {
      spec.vocabulary = embedding->rows();
      spec.dtype = embedding->format;
    } else if (spec.vocabulary == 0) {
      if (const GgufValue *tokens = file.find("tokenizer.ggml.tokens"))
        spec.vocabulary = int64_t(tokens->size());
    }
    spec.tiedHead = !has("output.weight");
    if (const TensorInfo *query = checkpoint.find("blk.0.attn_q.weight"))
      spec.dtype = query->format;
  }

  void readBlock() {
    BlockSpec block;
    block.name = "block";
    block.attentionNorm.eps = number("attention.layer_norm_rms_epsilon", 1e-5);
    block.mlpNorm = spec.finalNorm = block.attentionNorm;
    readAttention(block.attention);
    block.mlp.width = sameForLayers("feed_forward_length", 0);
    block.mlp.bias = has("blk.0.ffn_down.bias");
    if (arch.hasExperts)
      readExperts(block);
    spec.blocks = {block};
  }

  void readAttention(AttentionSpec &attention) {
    attention.heads = sameForLayers("attention.head_count", 0);
    if (attention.heads < 1)
      return refuse(key("attention.head_count"), "is {0}; expected at least 1", attention.heads);
    attention.kvHeads = sameForLayers("attention.head_count_kv", attention.heads);
    attention.headDim = integer("attention.key_length", spec.hidden / attention.heads);
    if (int64_t valueDim = integer("attention.value_length", attention.headDim); valueDim != attention.headDim)
      return refuse(key("attention.value_length"), "is {0}; the keys have {1} dimensions", valueDim, attention.headDim);
    attention.scale = number("attention.scale", 1 / std::sqrt(double(attention.headDim)));
    attention.window = integer("attention.sliding_window", 0);
    attention.qkvBias = has("blk.0.attn_q.bias");
    attention.outBias = has("blk.0.attn_output.bias");
    if (has("blk.0.attn_q_norm.weight")) {
      attention.qkNorm = spec.finalNorm;
      nameLayerTensor("q_norm", "attn_q_norm");
      nameLayerTensor("k_norm", "attn_k_norm");
    }
    attention.rope = readRope(attention.headDim);
  }

  RopeSpec readRope(int64_t headDim) {
    RopeSpec rope;
    rope.pairing = arch.pairing;
    rope.theta = number("rope.freq_base", 10000);
    rope.dims = integer("rope.dimension_count", headDim);
    llvm::StringRef type = take(file.getString(key("rope.scaling.type")), llvm::StringRef("none"));
    rope.factor = number("rope.scaling.factor", number("rope.scale_linear", 1));
    if (type == "linear" || (type == "none" && !file.find(key("rope.scaling.type")) && rope.factor != 1)) {
      rope.scaling = RopeSpec::Scaling::Linear;
    } else if (type == "yarn") {
      readYarn(rope);
    } else if (type == "none") {
      rope.factor = 1;
    } else {
      static constexpr llvm::StringRef known[] = {"none", "linear", "yarn"};
      refuse(key("rope.scaling.type"), "is {0}, which is not supported; known are {1}{2}", quoteJson(type),
             quotedList(known), suggestName(type, known));
    }
    readDivisors(rope);
    return rope;
  }

  void readYarn(RopeSpec &rope) {
    rope.scaling = RopeSpec::Scaling::Yarn;
    rope.originalContext = integer("rope.scaling.original_context_length", spec.context);
    rope.betaFast = number("rope.scaling.yarn_beta_fast", 32);
    rope.betaSlow = number("rope.scaling.yarn_beta_slow", 1);
    double attentionFactor = number("rope.scaling.attn_factor", number("rope.scaling.yarn_attn_factor", 1));
    if (attentionFactor != 1)
      rope.attentionFactor = attentionFactor * (1 + 0.1 * std::log(rope.factor));
    for (llvm::StringRef name : {"rope.scaling.yarn_log_multiplier", "rope.scaling.yarn_ext_factor"})
      if (file.find(key(name)))
        refuse(key(name), "is given, which is not supported");
  }

  void readDivisors(RopeSpec &rope) {
    const TensorInfo *tensor = checkpoint.find("rope_freqs.weight");
    if (!tensor)
      return;
    std::string where = file.path() + ": tensor 'rope_freqs.weight'";
    if (tensor->format != Format::F32 || !tensor->otherType.empty() || tensor->shape.size() != 1 ||
        tensor->shape[0] > (1 << 16))
      return fail(diagnose(where, "has type {0} and shape {1}; expected f32 and one divisor per rotated pair",
                           tensor->typeName(), shapeText(tensor->shape)));
    if (tensor->absent)
      return fail(diagnose(where, "has no data; the frequencies depend on it"));
    std::vector<float> values(tensor->shape[0]);
    checkpoint.readRows(*tensor, 0, 1, reinterpret_cast<uint8_t *>(values.data()));
    rope.frequencyDivisors.assign(values.begin(), values.end());
  }

  void readExperts(BlockSpec &block) {
    int64_t experts = integer("expert_count", 0);
    if (experts == 0)
      return;
    MoeSpec &moe = block.moe.emplace();
    moe.experts = experts;
    moe.expertsPerToken = required("expert_used_count");
    moe.normalize = true;
    moe.expert = block.mlp;
    moe.storage = MoeSpec::Storage::Stacked;
    block.mlp = {};
    nameLayerTensor("router", "ffn_gate_inp");
    nameLayerTensor("expert_gate", "ffn_gate_exps");
    nameLayerTensor("expert_up", "ffn_up_exps");
    nameLayerTensor("expert_down", "ffn_down_exps");
  }

  int32_t token(llvm::StringRef name, int64_t fallback) {
    int64_t id = take(file.getInt("tokenizer.ggml." + name.str()), fallback);
    return id >= 0 && id < spec.vocabulary ? int32_t(id) : -1;
  }

  void readTokens() {
    // Files of SentencePiece vocabularies may leave out the usual ids.
    bool isLlama = take(file.getString("tokenizer.ggml.model"), llvm::StringRef()) == "llama";
    spec.bosToken = token("bos_token_id", isLlama ? 1 : -1);
    for (int32_t id : {token("eos_token_id", isLlama ? 2 : -1), token("eot_token_id", -1), token("eom_token_id", -1)})
      if (id >= 0 && !llvm::is_contained(spec.eosTokens, id))
        spec.eosTokens.push_back(id);
  }
};

} // namespace

std::vector<llvm::StringRef> knownGgufArchitectures() {
  std::vector<llvm::StringRef> names;
  for (const Architecture &arch : architectures)
    names.push_back(arch.name);
  llvm::sort(names);
  return names;
}

llvm::Expected<ModelSpec> readGgufSpec(const Checkpoint &checkpoint) {
  const GgufFile *file = checkpoint.gguf();
  if (!file)
    return diagnose(checkpoint.name().str(), "the checkpoint is no GGUF file and so has no metadata");
  llvm::Expected<llvm::StringRef> name = file->requireString("general.architecture");
  if (!name)
    return name.takeError();
  for (const Architecture &arch : architectures)
    if (arch.name == *name)
      return Reader(checkpoint, *file, arch).run();
  std::vector<llvm::StringRef> known = knownGgufArchitectures();
  return diagnose(file->path(), "key 'general.architecture' is {0}, which is not supported; known are {1}{2}",
                  quoteJson(*name), quotedList(known), suggestName(*name, known));
}

} // namespace mcc
