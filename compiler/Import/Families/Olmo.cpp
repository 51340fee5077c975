// OLMo: 1 has norms without weights and clamps q, k, v; 2 and 3 norm the results of each half instead of the inputs;
// OLMoE is a mixture. All norm q and k over all heads together, but 1.
#include "compiler/Import/Families/Family.h"

namespace mcc {

static Family olmoBase() {
  Family family = llamaFamily();
  family.vocabulary.absent = 50304;
  family.mlpBias = {};
  family.normEps.absent = 1e-5;
  family.bosToken = -1;
  family.eosTokens = {50279};
  return family;
}

static void readClip(ConfigReader &config, BlockSpec &block) {
  std::optional<double> clip = config.optionalNumber("clip_qkv", std::nullopt);
  if (clip && *clip <= 0)
    config.refuse("clip_qkv", "is {0}; expected a positive number", printNumber(*clip));
  block.attention.qkvClip = clip.value_or(0);
}

static Family olmoFamily() {
  Family family = olmoBase();
  family.modelType = "olmo";
  family.norm = {.kind = NormSpec::Kind::Layer, .hasWeight = false};
  family.normEps = {"", 1e-5};
  family.adjust = [](ConfigReader &config, ModelSpec &, BlockSpec &block) -> LayerRule {
    readClip(config, block);
    return nullptr;
  };
  family.unname({"attention_norm", "mlp_norm", "final_norm"});
  return family;
}

static void readOlmo2(ModelSpec &spec, BlockSpec &block) {
  block.attention.qkNorm = block.attentionPostNorm = block.mlpPostNorm = spec.finalNorm;
  block.attention.qkNormScope = AttentionSpec::NormScope::All;
  block.attentionNorm.kind = block.mlpNorm.kind = NormSpec::Kind::None;
}

static Family olmo2Family() {
  Family family = olmoBase();
  family.modelType = "olmo2";
  family.adjust = [](ConfigReader &, ModelSpec &spec, BlockSpec &block) -> LayerRule {
    readOlmo2(spec, block);
    return nullptr;
  };
  family.unname({"attention_norm", "mlp_norm"});
  family.nameInLayers({{"attention_post_norm", "post_attention_layernorm.weight"},
                       {"mlp_post_norm", "post_feedforward_layernorm.weight"},
                       {"q_norm", "self_attn.q_norm.weight"},
                       {"k_norm", "self_attn.k_norm.weight"}});
  return family;
}

/// OLMo 3: every fourth layer is full; only full layers stretch their frequencies.
static LayerRule readOlmo3(ConfigReader &config, ModelSpec &spec, BlockSpec &block, const Family &family) {
  readOlmo2(spec, block);
  int64_t window = config.optionalInteger("sliding_window", 4096, 1).value_or(0);
  std::vector<std::string> types =
      readLayerTypes(config, spec, {"full_attention", "sliding_attention"}, [&](int64_t layer) -> llvm::StringRef {
        return (layer + 1) % 4 != 0 ? "sliding_attention" : "full_attention";
      });
  LayerRule windows = slidingLayers(types, window);
  int64_t headDim = block.attention.headDim;
  RopeSpec full = readLayerRope(config, family, headDim, "full_attention", config.number("rope_theta", 500000), true);
  RopeSpec local = readLayerRope(config, family, headDim, "sliding_attention", 500000, false);
  return [=](int64_t layer, BlockSpec &made) {
    windows(layer, made);
    made.attention.rope = made.name == "sliding" ? local : full;
  };
}

static Family olmo3Family() {
  Family family = olmo2Family();
  family.modelType = "olmo3";
  family.hasRope = false;
  Family ropes = family;
  family.adjust = [ropes](ConfigReader &config, ModelSpec &spec, BlockSpec &block) {
    return readOlmo3(config, spec, block, ropes);
  };
  return family;
}

static Family olmoeFamily() {
  Family family = olmoBase();
  family.modelType = "olmoe";
  family.hidden.absent = family.width.absent = 2048;
  family.layers.absent = family.heads.absent = 16;
  family.context.absent = 4096;
  family.adjust = [](ConfigReader &config, ModelSpec &spec, BlockSpec &block) -> LayerRule {
    readClip(config, block);
    block.attention.qkNorm = spec.finalNorm;
    block.attention.qkNormScope = AttentionSpec::NormScope::All;
    MoeSpec &moe = block.moe.emplace();
    moe.experts = config.integer("num_experts|num_local_experts", 64, 1);
    moe.expertsPerToken = config.integer("num_experts_per_tok", 8, 1);
    moe.normalize = config.flag("norm_topk_prob", false);
    moe.expert = std::exchange(block.mlp, {});
    return nullptr;
  };
  family.unname({"gate", "up", "down"});
  family.nameInLayers({{"q_norm", "self_attn.q_norm.weight"},
                       {"k_norm", "self_attn.k_norm.weight"},
                       {"router", "mlp.gate.weight"},
                       {"expert_gate", "mlp.experts.{expert}.gate_proj.weight"},
                       {"expert_up", "mlp.experts.{expert}.up_proj.weight"},
                       {"expert_down", "mlp.experts.{expert}.down_proj.weight"}});
  return family;
}

void addOlmoFamilies(std::vector<Family> &families) {
  for (auto make : {olmoFamily, olmo2Family, olmo3Family, olmoeFamily})
    families.push_back(make());
}

} // namespace mcc
