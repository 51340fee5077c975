// Llama, and the families that are Llama with a few other answers.
#include "compiler/Import/Families/Family.h"

namespace mcc {

Family llamaFamily() {
  Family family;
  family.modelType = "llama";
  family.qkvBias = family.outBias = {"attention_bias", false};
  family.mlpBias = {"mlp_bias", false};
  family.bosToken = 1;
  family.eosTokens = {2};
  family.ignored = {"pretraining_tp"};
  family.name(
      {{"embedding", "model.embed_tokens.weight"}, {"final_norm", "model.norm.weight"}, {"head", "lm_head.weight"}});
  family.nameInLayers({{"attention_norm", "input_layernorm.weight"},
                       {"q", "self_attn.q_proj.weight"},
                       {"k", "self_attn.k_proj.weight"},
                       {"v", "self_attn.v_proj.weight"},
                       {"o", "self_attn.o_proj.weight"},
                       {"mlp_norm", "post_attention_layernorm.weight"},
                       {"gate", "mlp.gate_proj.weight"},
                       {"up", "mlp.up_proj.weight"},
                       {"down", "mlp.down_proj.weight"}});
  return family;
}

static Family mistralFamily() {
  Family family = llamaFamily();
  family.modelType = "mistral";
  family.kvHeads.absent = 8;
  family.width.absent = 14336;
  family.context.absent = 131072;
  family.qkvBias = family.outBias = family.mlpBias = {};
  family.adjust = [](ConfigReader &config, ModelSpec &, BlockSpec &block) -> LayerRule {
    block.attention.window = config.optionalInteger("sliding_window", 4096, 1).value_or(0);
    return nullptr;
  };
  return family;
}

static Family arceeFamily() {
  Family family = llamaFamily();
  family.modelType = "arcee";
  family.hidden.absent = 2560;
  family.width.absent = 18432;
  family.context.absent = 4096;
  family.activation.absent = "relu2";
  family.gated = false;
  family.normEps.absent = 1e-5;
  family.bosToken = 128000;
  family.eosTokens = {128001};
  family.unname({"gate"});
  return family;
}

static Family heliumFamily() {
  Family family = llamaFamily();
  family.modelType = "helium";
  family.vocabulary.absent = 48000;
  family.hidden.absent = 2560;
  family.width.absent = 7040;
  family.layers.absent = 24;
  family.heads.absent = family.kvHeads.absent = 20;
  family.headDim.absent = 128;
  family.context.absent = 4096;
  family.normEps.absent = 1e-8;
  family.ropeTheta = 100000;
  family.ropePairing = RopeSpec::Pairing::Adjacent;
  family.outBias = {};
  return family;
}

/// The norms of q and k that many families add to Llama.
static LayerRule normHeads(ConfigReader &, ModelSpec &spec, BlockSpec &block) {
  block.attention.qkNorm = spec.finalNorm;
  return nullptr;
}

static Family apertusFamily() {
  Family family = llamaFamily();
  family.modelType = "apertus";
  family.vocabulary.absent = 131072;
  family.width.absent = 14336;
  family.context.absent = 65536;
  family.activation.absent = "xielu";
  family.gated = false;
  family.mlpBias = {};
  family.normEps.absent = 1e-5;
  family.ropeTheta = 12000000;
  family.adjust = [](ConfigReader &config, ModelSpec &spec, BlockSpec &block) {
    // A config without any rotary parameters means Llama 3's scaling.
    if (!config.has("rope_parameters") && !config.has("rope_scaling")) {
      block.attention.rope->scaling = RopeSpec::Scaling::Llama3;
      block.attention.rope->factor = 8;
      block.attention.rope->originalContext = 8192;
    }
    return normHeads(config, spec, block);
  };
  family.unname({"gate"});
  family.nameInLayers({{"attention_norm", "attention_layernorm.weight"},
                       {"mlp_norm", "feedforward_layernorm.weight"},
                       {"q_norm", "self_attn.q_norm.weight"},
                       {"k_norm", "self_attn.k_norm.weight"},
                       {"activation_alpha_p", "mlp.act_fn.alpha_p"},
                       {"activation_alpha_n", "mlp.act_fn.alpha_n"},
                       {"activation_beta", "mlp.act_fn.beta"},
                       {"activation_eps", "mlp.act_fn.eps"}});
  return family;
}

static Family bitnetFamily() {
  Family family = llamaFamily();
  family.modelType = "bitnet";
  family.vocabulary.absent = 128256;
  family.hidden.absent = 2560;
  family.width.absent = 6912;
  family.layers.absent = 30;
  family.heads.absent = 20;
  family.kvHeads.absent = 5;
  family.activation.absent = "relu2";
  family.mlpBias = {};
  family.normEps.absent = 1e-5;
  family.ropeTheta = 500000;
  family.bosToken = 128000;
  family.eosTokens = {128001};
  family.adjust = [](ConfigReader &, ModelSpec &spec, BlockSpec &block) -> LayerRule {
    block.attention.innerNorm = block.mlp.innerNorm = spec.finalNorm;
    return nullptr;
  };
  family.nameInLayers(
      {{"attention_inner_norm", "self_attn.attn_sub_norm.weight"}, {"mlp_inner_norm", "mlp.ffn_sub_norm.weight"}});
  return family;
}

static Family ernieFamily() {
  Family family = llamaFamily();
  family.modelType = "ernie4_5";
  family.vocabulary.absent = 103424;
  family.hidden.absent = 1024;
  family.width.absent = 3072;
  family.layers.absent = 18;
  family.heads.absent = 16;
  family.kvHeads.absent = 2;
  family.headDim.absent = 128;
  family.context.absent = 131072;
  family.normEps.absent = 1e-5;
  family.ropeTheta = 500000;
  family.ropePairing = RopeSpec::Pairing::Adjacent;
  family.tiedHead.absent = true;
  family.qkvBias = family.outBias = family.mlpBias = {"use_bias", false};
  return family;
}

static Family seedOssFamily() {
  Family family = llamaFamily();
  family.modelType = "seed_oss";
  family.vocabulary.absent = 155136;
  family.width.absent = 27648;
  family.layers.absent = 64;
  family.heads.absent = 80;
  family.kvHeads.absent = 8;
  family.headDim.absent = 128;
  family.context.absent = 524288;
  family.qkvBias.absent = true;
  family.outBias = {"attention_out_bias", false};
  family.bosToken = 0;
  return family;
}

static LayerRule smollm3Layers(ConfigReader &config, ModelSpec &spec, BlockSpec &) {
  std::optional<std::vector<int64_t>> given = config.integers("no_rope_layers");
  int64_t interval = config.integer("no_rope_layer_interval", 4, 1);
  std::vector<int64_t> rotates = given.value_or(std::vector<int64_t>());
  for (size_t layer = 0; !given && layer < spec.layers.size(); ++layer)
    rotates.push_back((int64_t(layer) + 1) % interval != 0);
  if (rotates.size() < spec.layers.size()) {
    config.refuse("no_rope_layers", "has {0} entries; the model has {1} layers", rotates.size(), spec.layers.size());
    return nullptr;
  }
  bool slides = config.flag("use_sliding_window", false);
  int64_t window = config.optionalInteger("sliding_window", std::nullopt, 1).value_or(0);
  std::vector<std::string> types =
      readLayerTypes(config, spec, {"full_attention", "sliding_attention"}, [&](int64_t layer) -> llvm::StringRef {
        return slides && window != 0 && !rotates[layer] ? "sliding_attention" : "full_attention";
      });
  LayerRule windows = slidingLayers(types, slides ? window : 0);
  return [rotates, windows](int64_t layer, BlockSpec &block) {
    windows(layer, block);
    if (rotates[layer])
      return;
    block.name += "_no_rope";
    block.attention.rope.reset();
  };
}

static Family smollm3Family() {
  Family family = llamaFamily();
  family.modelType = "smollm3";
  family.vocabulary.absent = 128256;
  family.hidden.absent = 2048;
  family.layers.absent = 36;
  family.heads.absent = 16;
  family.kvHeads.absent = 4;
  family.context.absent = 32768;
  family.ropeTheta = 2000000;
  family.tiedHead.absent = true;
  family.bosToken = 128000;
  family.eosTokens = {128001};
  family.ignored.insert(family.ignored.end(), {"max_window_layers"});
  family.adjust = smollm3Layers;
  return family;
}

LayerRule readGraniteMultipliers(ConfigReader &config, ModelSpec &spec, BlockSpec &block) {
  spec.embeddingScale = config.optionalNumber("embedding_multiplier", 1).value_or(1);
  double logitsScaling = config.optionalNumber("logits_scaling", 1).value_or(1);
  if (logitsScaling == 0)
    config.refuse("logits_scaling", "is 0; logits are divided by it");
  else
    spec.logitScale = 1 / logitsScaling;
  block.residualScale = config.optionalNumber("residual_multiplier", 1).value_or(1);
  block.attention.scale = config.optionalNumber("attention_multiplier", 1).value_or(1);
  return nullptr;
}

static Family graniteFamily() {
  Family family = llamaFamily();
  family.modelType = "granite";
  family.adjust = readGraniteMultipliers;
  return family;
}

static Family hunyuanFamily() {
  Family family = llamaFamily();
  family.modelType = "hunyuan_v1_dense";
  family.ropeHasAlpha = true;
  family.vocabulary.absent = 290943;
  family.normEps.absent = 1e-5;
  family.mlpBias = {};
  family.adjust = [](ConfigReader &config, ModelSpec &spec, BlockSpec &block) {
    block.attention.qkNormAfterRope = true;
    return normHeads(config, spec, block);
  };
  family.ignored.insert(family.ignored.end(), {"use_qk_norm", "eod_token_id"});
  family.nameInLayers({{"q_norm", "self_attn.query_layernorm.weight"}, {"k_norm", "self_attn.key_layernorm.weight"}});
  return family;
}

static LayerRule exaone4Layers(ConfigReader &config, ModelSpec &spec, BlockSpec &block) {
  block.attention.qkNorm = block.attentionPostNorm = block.mlpPostNorm = spec.finalNorm;
  block.attentionNorm.kind = block.mlpNorm.kind = NormSpec::Kind::None;
  std::optional<int64_t> window = config.optionalInteger("sliding_window", 4096, 1);
  // "LLLG" and 4 both mean that every fourth layer is full.
  const JsonMember *pattern = config.find("sliding_window_pattern");
  int64_t period = pattern && pattern->value.isString()
                       ? int64_t(pattern->value.string.size())
                       : config.optionalInteger("sliding_window_pattern", 4).value_or(0);
  std::vector<std::string> types =
      readLayerTypes(config, spec, {"full_attention", "sliding_attention"}, [&](int64_t layer) -> llvm::StringRef {
        return window && period > 0 && (layer + 1) % period != 0 ? "sliding_attention" : "full_attention";
      });
  LayerRule windows = slidingLayers(types, window.value_or(0));
  return [windows, hybrid = window.has_value()](int64_t layer, BlockSpec &made) {
    windows(layer, made);
    if (hybrid && made.attention.window == 0)
      made.attention.rope.reset();
  };
}

static Family exaone4Family() {
  Family family = llamaFamily();
  family.modelType = "exaone4";
  family.vocabulary.absent = 102400;
  family.width.absent = 16384;
  family.kvHeads.absent = 32;
  family.qkvBias = family.outBias = family.mlpBias = {};
  family.normEps.absent = 1e-5;
  family.bosToken = 0;
  family.adjust = exaone4Layers;
  family.unname({"attention_norm", "mlp_norm"});
  family.nameInLayers({{"attention_post_norm", "post_attention_layernorm.weight"},
                       {"mlp_post_norm", "post_feedforward_layernorm.weight"},
                       {"q_norm", "self_attn.q_norm.weight"},
                       {"k_norm", "self_attn.k_norm.weight"}});
  return family;
}

static Family glmFamily() {
  Family family = llamaFamily();
  family.modelType = "glm";
  family.vocabulary.absent = 151552;
  family.width.absent = 13696;
  family.layers.absent = 40;
  family.kvHeads.absent = 2;
  family.headDim.absent = 128;
  family.context.absent = 131072;
  family.normEps.absent = 1.5625e-7;
  family.rotaryFactor = 0.5;
  family.ropePairing = RopeSpec::Pairing::Adjacent;
  family.qkvBias.absent = true;
  family.outBias = family.mlpBias = {};
  family.bosToken = -1;
  family.eosTokens = {151329, 151336, 151338};
  family.adjust = [](ConfigReader &, ModelSpec &, BlockSpec &block) -> LayerRule {
    block.mlp.gateUpLayout = GateUpLayout::Concatenated;
    return nullptr;
  };
  family.unname({"gate", "up"});
  family.nameInLayers({{"gate_up", "mlp.gate_up_proj.weight"}});
  return family;
}

static Family glm4Family() {
  Family family = glmFamily();
  family.modelType = "glm4";
  family.adjust = [](ConfigReader &, ModelSpec &spec, BlockSpec &block) -> LayerRule {
    block.mlp.gateUpLayout = GateUpLayout::Concatenated;
    block.attentionPostNorm = block.mlpPostNorm = spec.finalNorm;
    return nullptr;
  };
  family.nameInLayers(
      {{"attention_post_norm", "post_self_attn_layernorm.weight"}, {"mlp_post_norm", "post_mlp_layernorm.weight"}});
  return family;
}

void addLlamaFamilies(std::vector<Family> &families) {
  for (auto make : {llamaFamily, mistralFamily, arceeFamily, heliumFamily, apertusFamily, bitnetFamily, ernieFamily,
                    seedOssFamily, smollm3Family, graniteFamily, hunyuanFamily, exaone4Family, glmFamily, glm4Family})
    families.push_back(make());
}

} // namespace mcc
