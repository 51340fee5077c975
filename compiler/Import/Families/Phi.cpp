// Phi 1 to 3, StableLM, StarCoder 2, Nemotron and Cohere: Llama's tensors in other arrangements, most with layer norms.
#include "compiler/Import/Families/Family.h"

namespace mcc {

static NormSpec layerNorm(bool hasBias = true) { return {.kind = NormSpec::Kind::Layer, .hasBias = hasBias}; }

static Family phiFamily() {
  Family family = llamaFamily();
  family.modelType = "phi";
  family.vocabulary.absent = 51200;
  family.hidden.absent = 2048;
  family.width.absent = 8192;
  family.layers.absent = 24;
  family.norm = layerNorm();
  family.normEps = {"layer_norm_eps", 1e-5};
  family.activation.absent = "gelu_new";
  family.gated = false;
  family.rotaryFactor = 0.5;
  family.qkvBias = family.outBias = family.mlpBias = {"", true};
  family.adjust = [](ConfigReader &config, ModelSpec &spec, BlockSpec &block) -> LayerRule {
    spec.headBias = true;
    block.residual = Residual::ParallelOneNorm;
    if (config.flag("qk_layernorm", false))
      block.attention.qkNorm = spec.finalNorm;
    return nullptr;
  };
  family.unname({"gate", "mlp_norm"});
  family.name({{"final_norm", "model.final_layernorm.weight"}});
  family.nameInLayers({{"o", "self_attn.dense.weight"},
                       {"up", "mlp.fc1.weight"},
                       {"down", "mlp.fc2.weight"},
                       {"q_norm", "self_attn.q_layernorm.weight"},
                       {"k_norm", "self_attn.k_layernorm.weight"}});
  return family;
}

static Family phi3Family() {
  Family family = llamaFamily();
  family.modelType = "phi3";
  family.vocabulary.absent = 32064;
  family.hidden.absent = 3072;
  family.width.absent = 8192;
  family.context.absent = family.originalContext = 4096;
  family.normEps.absent = 1e-5;
  family.qkvBias = family.outBias = family.mlpBias = {};
  family.eosTokens = {32000};
  family.ignored.insert(family.ignored.end(), {"attention_bias", "mlp_bias"});
  family.adjust = [](ConfigReader &config, ModelSpec &, BlockSpec &block) -> LayerRule {
    using Scaling = RopeSpec::Scaling;
    // transformers takes "yarn" for "longrope" here, and refuses the others.
    if (block.attention.rope->scaling != Scaling::None && block.attention.rope->scaling != Scaling::LongRope)
      config.refuse("rope_scaling|rope_parameters",
                    "has a type that this family does not know; known are 'default' and 'longrope'");
    block.attention.window = config.optionalInteger("sliding_window", std::nullopt, 1).value_or(0);
    block.attention.qkvLayout = QkvLayout::Concatenated;
    block.mlp.gateUpLayout = GateUpLayout::Concatenated;
    return nullptr;
  };
  family.unname({"q", "k", "v", "gate", "up"});
  family.nameInLayers({{"qkv", "self_attn.qkv_proj.weight"}, {"gate_up", "mlp.gate_up_proj.weight"}});
  return family;
}

static Family stablelmFamily() {
  Family family = llamaFamily();
  family.modelType = "stablelm";
  family.vocabulary.absent = 50304;
  family.hidden.absent = 2560;
  family.width.absent = 6912;
  family.kvHeads.absent = 32;
  family.headDim = {};
  family.context.absent = 4096;
  family.norm = layerNorm();
  family.normEps = {"layer_norm_eps", 1e-5};
  family.rotaryFactor = 0.25;
  family.qkvBias = {"use_qkv_bias", false};
  family.outBias = family.mlpBias = {};
  family.bosToken = 0;
  family.eosTokens = {0};
  family.adjust = [](ConfigReader &config, ModelSpec &spec, BlockSpec &block) -> LayerRule {
    if (config.flag("qk_layernorm", false)) {
      block.attention.qkNorm = spec.finalNorm;
      block.attention.qkNorm->hasBias = false;
      block.attention.qkNormScope = AttentionSpec::NormScope::HeadOwnTensors;
    }
    if (config.flag("use_parallel_residual", false))
      block.residual = Residual::ParallelOneNorm;
    return nullptr;
  };
  family.nameInLayers({{"q_norm", "self_attn.q_layernorm.norms.{head}.weight"},
                       {"k_norm", "self_attn.k_layernorm.norms.{head}.weight"}});
  return family;
}

static Family starcoder2Family() {
  Family family = llamaFamily();
  family.modelType = "starcoder2";
  family.vocabulary.absent = 49152;
  family.hidden.absent = 3072;
  family.width.absent = 12288;
  family.layers.absent = 30;
  family.heads.absent = 24;
  family.kvHeads.absent = 2;
  family.context.absent = 4096;
  family.norm = layerNorm();
  family.normEps = {"norm_epsilon", 1e-5};
  family.activation.absent = "gelu_pytorch_tanh";
  family.gated = false;
  family.qkvBias = family.outBias = family.mlpBias = {"use_bias", true};
  family.tiedHead.absent = true;
  family.bosToken = 50256;
  family.eosTokens = {50256};
  family.ignored = {"embedding_dropout", "mlp_type", "norm_type", "rms_norm_eps"};
  family.adjust = [](ConfigReader &config, ModelSpec &, BlockSpec &block) -> LayerRule {
    block.attention.window = config.optionalInteger("sliding_window", std::nullopt, 1).value_or(0);
    return nullptr;
  };
  family.unname({"gate"});
  family.nameInLayers({{"up", "mlp.c_fc.weight"}, {"down", "mlp.c_proj.weight"}});
  return family;
}

static Family nemotronFamily() {
  Family family = llamaFamily();
  family.modelType = "nemotron";
  family.vocabulary.absent = 256000;
  family.hidden.absent = 6144;
  family.width.absent = 24576;
  family.heads.absent = 48;
  family.context.absent = 4096;
  family.norm = layerNorm();
  family.norm.weightOffset = 1;
  family.normEps = {"norm_eps", 1e-5};
  family.activation.absent = "relu2";
  family.gated = false;
  family.rotaryFactor = 0.5;
  family.bosToken = 2;
  family.eosTokens = {3};
  family.unname({"gate"});
  return family;
}

static Family cohereFamily() {
  Family family = llamaFamily();
  family.modelType = "cohere";
  family.vocabulary.absent = 256000;
  family.hidden.absent = 8192;
  family.width.absent = 22528;
  family.layers.absent = 40;
  family.heads.absent = 64;
  family.context.absent = 8192;
  family.norm = layerNorm(/*hasBias=*/false);
  family.normEps = {"layer_norm_eps", 1e-5};
  family.ropeTheta = 500000;
  family.ropePairing = RopeSpec::Pairing::Adjacent;
  family.mlpBias = {};
  family.tiedHead.absent = true;
  family.bosToken = 5;
  family.eosTokens = {255001};
  family.adjust = [](ConfigReader &config, ModelSpec &spec, BlockSpec &block) -> LayerRule {
    spec.logitScale = config.number("logit_scale", 0.0625);
    block.residual = Residual::ParallelOneNorm;
    if (config.flag("use_qk_norm", false)) {
      block.attention.qkNorm = spec.finalNorm;
      block.attention.qkNormScope = AttentionSpec::NormScope::HeadOwnWeights;
    }
    return nullptr;
  };
  family.unname({"mlp_norm"});
  family.nameInLayers({{"q_norm", "self_attn.q_norm.weight"}, {"k_norm", "self_attn.k_norm.weight"}});
  return family;
}

/// Cohere 2: three sliding layers with rotary positions, then a full one without.
static LayerRule readCohere2(ConfigReader &config, ModelSpec &spec, BlockSpec &block) {
  spec.logitScale = config.number("logit_scale", 0.0625);
  block.residual = Residual::ParallelOneNorm;
  int64_t period = config.integer("sliding_window_pattern", 4, 1);
  std::vector<std::string> types =
      readLayerTypes(config, spec, {"full_attention", "sliding_attention"}, [&](int64_t layer) -> llvm::StringRef {
        return (layer + 1) % period != 0 ? "sliding_attention" : "full_attention";
      });
  int64_t window = config.optionalInteger("sliding_window", 4096, 1).value_or(0);
  LayerRule windows = slidingLayers(types, window);
  return [windows](int64_t layer, BlockSpec &made) {
    windows(layer, made);
    if (made.attention.window == 0)
      made.attention.rope.reset();
  };
}

static Family cohere2Family() {
  Family family = cohereFamily();
  family.modelType = "cohere2";
  family.headDim = {};
  family.ropeTheta = 10000;
  family.ignored = {"head_dim",           "order_of_interleaved_layers", "position_embedding_type",
                    "rotary_pct",         "use_gated_activation",        "use_embedding_sharing",
                    "use_parallel_block", "use_parallel_embedding",      "layer_switch"};
  family.adjust = readCohere2;
  return family;
}

void addPhiFamilies(std::vector<Family> &families) {
  for (auto make :
       {phiFamily, phi3Family, stablelmFamily, starcoder2Family, nemotronFamily, cohereFamily, cohere2Family})
    families.push_back(make());
}

} // namespace mcc
