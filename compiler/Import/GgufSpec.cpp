// GGUF metadata -> ModelSpec. What an architecture's name means is a row of a table (GgufArchitectures.cpp); what a file
// leaves open is answered by which tensors it has.
//
// There is no flag for tied heads, biases, norms of q and k, experts of a layer or the layout of q, k and v: the tensors
// are there or not. A tensor that is missing by mistake is found all the same, because then another one that the layer
// needs is missing too, or one is left over (`checkTensors`).
#include "compiler/Import/GgufSpec.h"

#include "compiler/Import/Checkpoint.h"
#include "compiler/Import/GgufArchitecture.h"
#include "compiler/Import/GgufRope.h"
#include "compiler/Support/LocatedJson.h"
#include "compiler/Support/Suggest.h"

#include <cmath>

namespace mcc {

namespace {

class Reader {
public:
  Reader(const Checkpoint &checkpoint, const GgufFile &file, const GgufArchitecture &arch)
      : keys(checkpoint, file, arch.name), arch(arch) {}

  llvm::Expected<ModelSpec> run() {
    spec.family = arch.name.str();
    nameTensors();
    readSizes();
    if (!keys.failed())
      readBlocks();
    if (!keys.failed())
      readTokens();
    if (!keys.failed())
      keys.refuseUnread();
    if (keys.failed())
      return keys.takeError();
    if (std::optional<SpecProblem> problem = findProblem(spec))
      return diagnose(keys.file.path(), "the metadata make a spec whose field '{0}' {1}", problem->field,
                      problem->what);
    forgetUnusedNames();
    return spec;
  }

private:
  GgufKeys keys;
  const GgufArchitecture &arch;
  ModelSpec spec;

  size_t layers() const { return spec.layers.size(); }
  const TensorInfo *any(llvm::StringRef name) const { return keys.anyLayers(name, layers()); }
  bool hasTensor(llvm::StringRef name) const { return keys.tensor(name) != nullptr; }

  void nameTensors() {
    spec.tensors = {{"embedding", "token_embd.weight"},
                    {"embedding_norm", "token_embd_norm.weight"},
                    {"position_embedding", "position_embd.weight"},
                    {"final_norm", "output_norm.weight"},
                    {"head", "output.weight"}};
    static constexpr std::pair<llvm::StringRef, llvm::StringRef> usual[] = {
        {"attention_norm", "attn_norm.weight"},
        {"q", "attn_q.weight"},
        {"k", "attn_k.weight"},
        {"v", "attn_v.weight"},
        {"qkv", "attn_qkv.weight"},
        {"q_norm", "attn_q_norm.weight"},
        {"k_norm", "attn_k_norm.weight"},
        {"o", "attn_output.weight"},
        {"sinks", "attn_sinks.weight"},
        {"attention_post_norm", "post_attention_norm.weight"},
        {"mlp_norm", "ffn_norm.weight"},
        {"gate", "ffn_gate.weight"},
        {"up", "ffn_up.weight"},
        {"down", "ffn_down.weight"},
        {"gate_up", "ffn_up.weight"},
        {"mlp_post_norm", "post_ffw_norm.weight"},
        {"router", "ffn_gate_inp.weight"},
        {"router_selection_bias", "exp_probs_b.bias"},
        {"expert_gate", "ffn_gate_exps.weight"},
        {"expert_up", "ffn_up_exps.weight"},
        {"expert_down", "ffn_down_exps.weight"},
        {"shared_gate", "ffn_gate_shexp.weight"},
        {"shared_up", "ffn_up_shexp.weight"},
        {"shared_down", "ffn_down_shexp.weight"},
        {"shared_router", "ffn_gate_inp_shexp.weight"}};
    for (auto [role, name] : usual)
      nameTensor(role, name);
    for (auto [role, name] : arch.tensors)
      nameTensor(role, name);
  }
  /// Keeps the names of roles that the model has.
  void forgetUnusedNames() {
    llvm::StringSet<> used;
    for (const RequiredTensor &tensor : requiredTensors(spec)) {
      llvm::StringRef role = tensor.role;
      used.insert(role);
      role.consume_back(".bias");
      used.insert(role);
    }
    std::erase_if(spec.tensors, [&](const auto &entry) { return !used.contains(entry.first); });
  }
  void nameTensor(llvm::StringRef role, llvm::StringRef name) {
    if (name.empty())
      spec.tensors.erase(role.str());
    else
      spec.tensors[role.str()] = ("blk.{layer}." + name).str();
  }

  void readSizes() {
    spec.hidden = keys.required("embedding_length");
    spec.context = keys.required("context_length");
    int64_t count = keys.required("block_count");
    if (count > (1 << 16))
      keys.refuse("block_count", "is {0}; at most {1} layers are supported", count, 1 << 16);
    if (keys.failed())
      return;
    spec.layers.assign(count, 0);
    // The embedding's rows are the logits' width, whatever the tokenizer's list and `vocab_size` say.
    spec.vocabulary = keys.integer("vocab_size", 0);
    if (const TensorInfo *embedding = keys.tensor("token_embd.weight")) {
      spec.vocabulary = embedding->rows();
      spec.dtype = embedding->format;
    } else if (spec.vocabulary == 0) {
      if (const GgufValue *tokens = keys.file.find("tokenizer.ggml.tokens"))
        spec.vocabulary = int64_t(tokens->size());
    }
    spec.tiedHead = !hasTensor("output.weight");
    spec.headBias = hasTensor("output.bias");
    if (const TensorInfo *positions = keys.tensor("position_embd.weight"))
      spec.learnedPositions = positions->rows();
    for (llvm::StringRef name : {"attn_q.weight", "attn_qkv.weight", "ssm_in.weight"})
      if (const TensorInfo *weight = any(name)) {
        spec.dtype = weight->format;
        break;
      }
  }

  NormSpec norm(bool hasBias) {
    NormSpec made{.kind = arch.norm, .hasWeight = !arch.plainNorms, .hasBias = hasBias};
    bool isRms = arch.norm == NormSpec::Kind::Rms;
    made.eps = keys.number(isRms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", 1e-5);
    return made;
  }

  void readBlocks() {
    BlockSpec block;
    block.name = "block";
    block.residual = arch.residual;
    block.attentionNorm = norm(any("attn_norm.bias"));
    block.mlpNorm = norm(any("ffn_norm.bias"));
    spec.finalNorm = norm(hasTensor("output_norm.bias"));
    if (hasTensor("token_embd_norm.weight"))
      spec.embeddingNorm = norm(hasTensor("token_embd_norm.bias"));
    if (!arch.inputNorms)
      block.attentionNorm.kind = block.mlpNorm.kind = NormSpec::Kind::None;
    if (arch.postNorms)
      block.attentionPostNorm = block.mlpPostNorm = norm(false);
    if (arch.hasAttention)
      readAttention(block.attention);
    readMlp(block.mlp);
    if (keys.integer("expert_count", 0) != 0)
      readExperts(block);
    keys.ignore({"expert_used_count"});
    spec.logitSoftcap = keys.number("final_logit_softcapping", 0);
    LayerRule slides = block.attention.window != 0 ? windowRule(block.attention) : nullptr;
    LayerRule adjusts = arch.adjust && !keys.failed() ? arch.adjust(keys, spec, block) : nullptr;
    if (!keys.failed())
      expandLayers(spec, block, layerRule(block, slides, adjusts));
  }

  void readAttention(AttentionSpec &attention) {
    attention.heads = keys.sameForLayers("attention.head_count", 0, layers());
    if (attention.heads < 1)
      return keys.refuse("attention.head_count", "is {0}; expected at least 1", attention.heads);
    attention.kvHeads = readKeyHeads(attention.heads);
    attention.headDim = keys.integer("attention.key_length", spec.hidden / attention.heads);
    if (int64_t valueDim = keys.integer("attention.value_length", attention.headDim); valueDim != attention.headDim)
      return keys.refuse("attention.value_length", "is {0}; the keys have {1} dimensions", valueDim, attention.headDim);
    attention.scale = keys.number("attention.scale", 0);
    if (attention.scale == 0)
      attention.scale = 1 / std::sqrt(double(attention.headDim));
    attention.window = keys.integer("attention.sliding_window", 0);
    attention.softcap = keys.number("attn_logit_softcapping", 0);
    attention.qkvClip = keys.number("attention.clamp_kqv", 0);
    attention.qkvLayout = any("attn_qkv.weight") ? QkvLayout::Concatenated : QkvLayout::Separate;
    attention.qkvBias = any("attn_q.bias") || any("attn_qkv.bias");
    attention.outBias = any("attn_output.bias");
    attention.sinks = any("attn_sinks.weight");
    attention.qkNormAfterRope = arch.normsAfterRope;
    if (const TensorInfo *weight = any("attn_q_norm.weight"))
      readHeadNorm(attention, *weight);
    if (arch.hasRope)
      attention.rope = readGgufRope(keys, spec, arch.pairing, attention.headDim);
  }

  /// One number for all layers, but for those without attention, which have 0 (LFM2).
  int64_t readKeyHeads(int64_t fallback) {
    std::vector<int64_t> heads = keys.perLayer("attention.head_count_kv", fallback, layers());
    auto first = llvm::find_if(heads, [](int64_t count) { return count != 0; });
    for (auto other = first; other < heads.end(); ++other)
      if (*other != 0 && *other != *first) {
        keys.refuse("attention.head_count_kv",
                    "is {0} in layer {1} and {2} in layer {3}; only one value for all layers is supported", *first,
                    first - heads.begin(), *other, other - heads.begin());
        break;
      }
    return first == heads.end() ? 0 : *first;
  }

  /// The shape of its weight says what the norm of q runs over.
  void readHeadNorm(AttentionSpec &attention, const TensorInfo &weight) {
    using Scope = AttentionSpec::NormScope;
    attention.qkNorm = norm(any("attn_q_norm.bias"));
    attention.qkNormScope = weight.shape.size() == 2                ? Scope::HeadOwnWeights
                            : weight.cols() == attention.headDim    ? Scope::Head
                                                                    : Scope::All;
  }

  void readMlp(MlpSpec &mlp) {
    mlp.width = keys.sameForLayers("feed_forward_length", 0, layers());
    mlp.activation = arch.activation;
    mlp.gated = arch.gated;
    mlp.bias = any("ffn_down.bias");
    if (arch.joinsGateUp)
      mlp.gateUpLayout = GateUpLayout::Concatenated;
  }

  void readExperts(BlockSpec &block) {
    MoeSpec &moe = block.moe.emplace();
    moe.experts = keys.required("expert_count");
    moe.expertsPerToken = keys.required("expert_used_count");
    moe.storage = MoeSpec::Storage::Stacked;
    moe.expert = block.mlp;
    moe.expert.width = keys.integer("expert_feed_forward_length", block.mlp.width);
    moe.expert.bias = any("ffn_down_exps.bias");
    moe.normalize = keys.flag("expert_weights_norm", arch.normalizesExperts);
    if (double scale = keys.number("expert_weights_scale", 0); scale != 0)
      moe.scale = scale;
    readScoring(moe);
    moe.routerBias = any("ffn_gate_inp.bias");
    moe.selectionBias = any("exp_probs_b.bias");
    if (moe.selectionBias)
      moe.groupScore = MoeSpec::GroupScore::TopTwoSum;
    moe.groups = std::max<int64_t>(keys.integer("expert_group_count", 1), 1);
    moe.groupsPerToken = std::max<int64_t>(keys.integer("expert_group_used_count", moe.groups), 1);
    keys.ignore({"expert_shared_feed_forward_length"});
    if (const TensorInfo *shared = any("ffn_up_shexp.weight")) {
      moe.shared = block.mlp;
      moe.shared.width = shared->rows();
      moe.sharedGate = any("ffn_gate_inp_shexp.weight");
    }
  }

  void readScoring(MoeSpec &moe) {
    moe.scoring = arch.scoring;
    int64_t function = keys.integer("expert_gating_func", 0);
    if (function == 1)
      moe.scoring = MoeSpec::Scoring::Softmax;
    else if (function == 2)
      moe.scoring = MoeSpec::Scoring::Sigmoid;
    else if (function == 3)
      moe.scoring = MoeSpec::Scoring::SelectedSoftmax;
    else if (function != 0)
      keys.refuse("expert_gating_func", "is {0}; known are 1 to 3", function);
  }

  /// Which layers slide, and how each kind rotates.
  LayerRule windowRule(const AttentionSpec &attention) {
    const GgufValue *given = keys.file.find((arch.name + ".attention.sliding_window_pattern").str());
    std::vector<int64_t> pattern = keys.perLayer("attention.sliding_window_pattern", arch.windowPeriod, layers());
    bool isPeriod = !given || given->type() != GgufType::Array;
    // Else a layer that slides rotates as the others do, with what the architecture changes of it later.
    std::optional<RopeSpec> sliding;
    if (arch.slidingUnscaled)
      sliding = slidingGgufRope(keys, attention.rope.value_or(RopeSpec()), arch.slidingTheta);
    bool fullRotates = arch.fullLayersRotate;
    return [=](int64_t layer, BlockSpec &made) {
      bool slides = isPeriod ? pattern[layer] == 0 || (layer + 1) % pattern[layer] != 0 : pattern[layer] != 0;
      made.name = slides ? "sliding" : "full";
      if (!slides)
        made.attention.window = 0;
      if (slides && sliding && made.attention.rope)
        made.attention.rope = sliding;
      else if (!slides && !fullRotates)
        made.attention.rope.reset();
    };
  }

  LayerRule layerRule(const BlockSpec &block, LayerRule slides, LayerRule adjusts) {
    std::vector<bool> sparse;
    for (size_t layer = 0; layer < layers(); ++layer)
      sparse.push_back(block.moe && keys.tensor("ffn_gate_inp.weight", int64_t(layer)));
    // A file that lacks all of them lacks them by mistake.
    if (!llvm::is_contained(sparse, true))
      sparse.assign(layers(), block.moe.has_value());
    LayerRule inner = [slides, adjusts, period = arch.noRopePeriod](int64_t layer, BlockSpec &made) {
      if (slides)
        slides(layer, made);
      if (period != 0 && (layer + 1) % period == 0) {
        made.name += "_no_rope";
        made.attention.rope.reset();
      }
      if (adjusts)
        adjusts(layer, made);
    };
    if (!block.moe)
      return inner;
    return sparseLayers([sparse](int64_t layer) { return sparse[layer]; }, inner);
  }

  int32_t token(llvm::StringRef name, int64_t fallback) {
    llvm::Expected<std::optional<int64_t>> value = keys.file.getInt("tokenizer.ggml." + name.str());
    if (!value) {
      keys.fail(value.takeError());
      return -1;
    }
    int64_t id = value->value_or(fallback);
    return id >= 0 && id < spec.vocabulary ? int32_t(id) : -1;
  }

  void readTokens() {
    // Files of SentencePiece vocabularies may leave out the usual ids.
    llvm::Expected<std::optional<llvm::StringRef>> model = keys.file.getString("tokenizer.ggml.model");
    if (!model)
      return keys.fail(model.takeError());
    bool isLlama = model->value_or("") == "llama";
    spec.bosToken = token("bos_token_id", isLlama ? 1 : -1);
    for (int32_t id : {token("eos_token_id", isLlama ? 2 : -1), token("eot_token_id", -1), token("eom_token_id", -1)})
      if (id >= 0 && !llvm::is_contained(spec.eosTokens, id))
        spec.eosTokens.push_back(id);
  }
};

} // namespace

std::vector<llvm::StringRef> knownGgufArchitectures() {
  std::vector<llvm::StringRef> names;
  for (const GgufArchitecture &arch : ggufArchitectures())
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
  for (const GgufArchitecture &arch : ggufArchitectures())
    if (arch.name == *name)
      return Reader(checkpoint, *file, arch).run();
  std::vector<llvm::StringRef> known = knownGgufArchitectures();
  return diagnose(file->path(), "key 'general.architecture' is {0}, which is not supported; known are {1}{2}",
                  quoteJson(*name), quotedList(known), suggestName(*name, known));
}

} // namespace mcc
