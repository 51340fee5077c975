// Gemma 1 to 3: scaled embeddings, norms with weights about zero (Hugging Face's form adds 1), and from 2 on norms on
// both sides of each half, soft caps and alternating windows.
#include "compiler/Import/Families/Family.h"

#include <cmath>

namespace mcc {

/// Scales and the activation. Published Gemma 1 configs say "gelu" in `hidden_act` where the model was trained with the
/// tanh form; `hidden_activation`, added later, says so.
static LayerRule readGemma(ConfigReader &config, ModelSpec &spec, BlockSpec &block) {
  spec.embeddingScale = std::sqrt(double(spec.hidden));
  block.mlp.activation = readActivation(
      config, {config.has("hidden_activation") ? "hidden_activation" : "hidden_act", "gelu_pytorch_tanh"});
  config.ignore({"hidden_activation", "hidden_act"});
  if (block.mlp.activation == Activation::GeluErf)
    block.mlp.activation = Activation::GeluTanh;
  return nullptr;
}

static LayerRule readGemma2(ConfigReader &config, ModelSpec &spec, BlockSpec &block, int64_t period,
                            bool capsByDefault) {
  readGemma(config, spec, block);
  block.attentionPostNorm = block.mlpPostNorm = spec.finalNorm;
  double scalar = config.number("query_pre_attn_scalar", 256);
  if (scalar <= 0)
    config.refuse("query_pre_attn_scalar", "is {0}; expected a positive number", printNumber(scalar));
  else
    block.attention.scale = 1 / std::sqrt(scalar);
  block.attention.softcap = config.optionalNumber("attn_logit_softcapping", capsByDefault ? 50 : 0).value_or(0);
  spec.logitSoftcap = config.optionalNumber("final_logit_softcapping", capsByDefault ? 30 : 0).value_or(0);
  std::optional<int64_t> window = config.optionalInteger("sliding_window", 4096, 1);
  std::vector<std::string> types =
      readLayerTypes(config, spec, {"full_attention", "sliding_attention"}, [&](int64_t layer) -> llvm::StringRef {
        return (layer + 1) % period != 0 ? "sliding_attention" : "full_attention";
      });
  return slidingLayers(types, window.value_or(0));
}

static Family gemmaFamily() {
  Family family = llamaFamily();
  family.modelType = "gemma";
  family.vocabulary.absent = 256000;
  family.hidden.absent = 3072;
  family.width.absent = 24576;
  family.layers.absent = 28;
  family.heads.absent = family.kvHeads.absent = 16;
  family.headDim.absent = 256;
  family.context.absent = 8192;
  family.norm.weightOffset = 1;
  family.activation = {"", "gelu_pytorch_tanh"};
  family.mlpBias = {};
  family.tiedHead.absent = true;
  family.bosToken = 2;
  family.eosTokens = {1};
  family.adjust = readGemma;
  return family;
}

static Family gemma2Family() {
  Family family = gemmaFamily();
  family.modelType = "gemma2";
  family.hidden.absent = 2304;
  family.width.absent = 9216;
  family.layers.absent = 26;
  family.heads.absent = 8;
  family.kvHeads.absent = 4;
  family.ignored.insert(family.ignored.end(), {"cache_implementation"});
  family.adjust = [](ConfigReader &config, ModelSpec &spec, BlockSpec &block) {
    return readGemma2(config, spec, block, /*period=*/2, /*capsByDefault=*/true);
  };
  family.nameInLayers({{"attention_post_norm", "post_attention_layernorm.weight"},
                       {"mlp_norm", "pre_feedforward_layernorm.weight"},
                       {"mlp_post_norm", "post_feedforward_layernorm.weight"}});
  return family;
}

/// Gemma 3: frequencies of their own in the sliding layers. `_sliding_window_pattern` is what transformers 5 writes.
static LayerRule readGemma3(ConfigReader &config, ModelSpec &spec, BlockSpec &block, const Family &family) {
  int64_t period = config.integer("sliding_window_pattern|_sliding_window_pattern", 6, 1);
  LayerRule windows = readGemma2(config, spec, block, period, /*capsByDefault=*/false);
  // Read for its check only: transformers keeps the key of Gemma 2, and Gemma 3's attention does not use it.
  block.attention.softcap = 0;
  config.requireNumber("attn_logit_softcapping", 0);
  block.attention.qkNorm = spec.finalNorm;
  int64_t headDim = block.attention.headDim;
  RopeSpec full = readLayerRope(config, family, headDim, "full_attention", config.number("rope_theta", 1000000), true);
  RopeSpec local =
      readLayerRope(config, family, headDim, "sliding_attention", config.number("rope_local_base_freq", 10000), false);
  return [=](int64_t layer, BlockSpec &made) {
    windows(layer, made);
    made.attention.rope = made.name == "sliding" ? local : full;
  };
}

static Family gemma3Family() {
  Family family = gemma2Family();
  family.modelType = "gemma3_text";
  family.vocabulary.absent = 262208;
  family.context.absent = 131072;
  family.hasRope = false;
  family.nameInLayers({{"q_norm", "self_attn.q_norm.weight"}, {"k_norm", "self_attn.k_norm.weight"}});
  Family ropes = family;
  family.adjust = [ropes](ConfigReader &config, ModelSpec &spec, BlockSpec &block) {
    return readGemma3(config, spec, block, ropes);
  };
  return family;
}

void addGemmaFamilies(std::vector<Family> &families) {
  families.push_back(gemmaFamily());
  families.push_back(gemma2Family());
  families.push_back(gemma3Family());
}

} // namespace mcc
