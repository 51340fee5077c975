// The GPT line: GPT-2 (learned positions, weights stored [in, out]), GPT-J, GPT-Neo and GPT-NeoX (Pythia), and OPT,
// whose table of positions starts two rows late.
#include "compiler/Import/Families/Family.h"

#include <cmath>

namespace mcc {

/// What the five share: layer norms with biases, an MLP without gate, as many key heads as heads.
static Family gptBase() {
  Family family;
  family.norm = {.kind = NormSpec::Kind::Layer, .hasBias = true};
  family.normEps = {"layer_norm_epsilon", 1e-5};
  family.kvHeads = family.headDim = {};
  family.activation = {"activation_function", "gelu_new"};
  family.gated = false;
  family.mlpBias = {"", true};
  family.bosToken = 50256;
  family.eosTokens = {50256};
  return family;
}

static Family gpt2Names() {
  Family family = gptBase();
  family.vocabulary.absent = 50257;
  family.hidden.keys = "n_embd|hidden_size";
  family.layers.keys = "n_layer|num_hidden_layers";
  family.heads.keys = "n_head|num_attention_heads";
  family.context.keys = "n_positions|max_position_embeddings";
  family.width = {"n_inner", 0};
  family.ignored = {"n_ctx"};
  family.name(
      {{"embedding", "transformer.wte.weight"}, {"final_norm", "transformer.ln_f.weight"}, {"head", "lm_head.weight"}});
  family.nameInLayers({{"attention_norm", "ln_1.weight"}, {"mlp_norm", "ln_2.weight"}}, "transformer.h.{layer}.");
  return family;
}

static LayerRule readGpt2(ConfigReader &config, ModelSpec &spec, BlockSpec &block) {
  spec.learnedPositions = spec.context;
  spec.transposedLinears = true;
  block.attention.qkvLayout = QkvLayout::Concatenated;
  if (!config.flag("scale_attn_weights", true))
    block.attention.scale = 1;
  if (!config.flag("scale_attn_by_inverse_layer_idx", false))
    return nullptr;
  return [](int64_t layer, BlockSpec &made) { made.attention.scale /= double(layer + 1); };
}

static Family gpt2Family() {
  Family family = gpt2Names();
  family.modelType = "gpt2";
  family.hidden.absent = 768;
  family.layers.absent = family.heads.absent = 12;
  family.context.absent = 1024;
  family.hasRope = false;
  family.qkvBias = family.outBias = {"", true};
  family.tiedHead.absent = true;
  family.adjust = readGpt2;
  family.name({{"position_embedding", "transformer.wpe.weight"}});
  family.nameInLayers({{"qkv", "attn.c_attn.weight"},
                       {"o", "attn.c_proj.weight"},
                       {"up", "mlp.c_fc.weight"},
                       {"down", "mlp.c_proj.weight"}},
                      "transformer.h.{layer}.");
  return family;
}

static Family gptjFamily() {
  Family family = gpt2Names();
  family.modelType = "gptj";
  family.vocabulary.absent = 50400;
  family.layers.absent = 28;
  family.heads.absent = 16;
  family.ropePairing = RopeSpec::Pairing::Adjacent;
  family.ignored.insert(family.ignored.end(), {"scale_attn_weights"});
  family.adjust = [](ConfigReader &config, ModelSpec &spec, BlockSpec &block) -> LayerRule {
    spec.headBias = true;
    block.residual = Residual::ParallelOneNorm;
    block.attention.rope->dims = config.integer("rotary_dim", 64, 2);
    return nullptr;
  };
  family.unname({"mlp_norm"});
  family.nameInLayers({{"q", "attn.q_proj.weight"},
                       {"k", "attn.k_proj.weight"},
                       {"v", "attn.v_proj.weight"},
                       {"o", "attn.out_proj.weight"},
                       {"up", "mlp.fc_in.weight"},
                       {"down", "mlp.fc_out.weight"}},
                      "transformer.h.{layer}.");
  return family;
}

/// GPT-Neo writes its kinds of layers as [[["global", "local"], 12]]: a list of kinds and how often it comes.
static std::vector<std::string> readAttentionTypes(ConfigReader &config, size_t layers) {
  std::vector<std::string> kinds;
  const JsonMember *member = config.find("attention_types");
  if (!member || member->value.isNull()) {
    for (size_t layer = 0; layer < 24; ++layer)
      kinds.push_back(layer % 2 == 0 ? "global" : "local");
  } else {
    for (const JsonValue &item : member->value.elements) {
      bool wellFormed =
          item.elements.size() == 2 && item.elements[0].isArray() && item.elements[1].kind == JsonValue::Kind::Integer;
      if (!wellFormed || item.elements[1].integer < 0 || uint64_t(item.elements[1].integer) > layers) {
        config.refuse("attention_types", "has an entry that is not [[kinds], times] with at most {0} times", layers);
        break;
      }
      for (int64_t i = 0; i < item.elements[1].integer && kinds.size() <= layers; ++i)
        for (const JsonValue &kind : item.elements[0].elements)
          kinds.push_back(kind.string);
    }
  }
  if (kinds.size() != layers)
    config.refuse("attention_types", "gives {0} layers; the model has {1}", kinds.size(), layers);
  for (const std::string &kind : kinds)
    if (kind != "global" && kind != "local")
      config.refuse("attention_types", "has {0}; known are 'global' and 'local'", quoteJson(kind));
  kinds.resize(layers);
  return kinds;
}

static Family gptNeoFamily() {
  Family family = gpt2Names();
  family.modelType = "gpt_neo";
  family.hidden = {"hidden_size", 2048};
  family.layers = {"num_layers|num_hidden_layers", 24};
  family.heads = {"num_heads|num_attention_heads", 16};
  family.context = {"max_position_embeddings", 2048};
  family.width = {"intermediate_size", 0};
  family.hasRope = false;
  family.outBias = {"", true};
  family.tiedHead.absent = true;
  family.ignored = {"attention_layers", "activation"};
  family.adjust = [](ConfigReader &config, ModelSpec &spec, BlockSpec &block) -> LayerRule {
    spec.learnedPositions = spec.context;
    block.attention.scale = 1;
    int64_t window = config.integer("window_size", 256, 1);
    std::vector<std::string> kinds = readAttentionTypes(config, spec.layers.size());
    return [=](int64_t layer, BlockSpec &made) {
      made.name = kinds[layer];
      made.attention.window = kinds[layer] == "local" ? window : 0;
    };
  };
  family.name({{"position_embedding", "transformer.wpe.weight"}});
  family.nameInLayers({{"q", "attn.attention.q_proj.weight"},
                       {"k", "attn.attention.k_proj.weight"},
                       {"v", "attn.attention.v_proj.weight"},
                       {"o", "attn.attention.out_proj.weight"},
                       {"up", "mlp.c_fc.weight"},
                       {"down", "mlp.c_proj.weight"}},
                      "transformer.h.{layer}.");
  return family;
}

static Family gptNeoxFamily() {
  Family family = gptBase();
  family.modelType = "gpt_neox";
  family.vocabulary.absent = 50432;
  family.hidden.absent = 6144;
  family.layers.absent = 44;
  family.heads.absent = 64;
  family.width.absent = 24576;
  family.normEps.keys = "layer_norm_eps";
  family.activation = {"hidden_act", "gelu"};
  family.qkvBias = family.outBias = {"attention_bias", true};
  family.rotaryFactor = 0.25;
  family.rotaryKeys = "rotary_pct";
  family.thetaKeys = "rotary_emb_base";
  family.bosToken = 0;
  family.eosTokens = {2};
  family.ignored = {"num_key_value_heads", "is_decoder", "rope_theta", "partial_rotary_factor"};
  family.adjust = [](ConfigReader &config, ModelSpec &, BlockSpec &block) -> LayerRule {
    block.residual = config.flag("use_parallel_residual", true) ? Residual::Parallel : Residual::Serial;
    block.attention.qkvLayout = QkvLayout::PerKvHead;
    return nullptr;
  };
  family.name({{"embedding", "gpt_neox.embed_in.weight"},
               {"final_norm", "gpt_neox.final_layer_norm.weight"},
               {"head", "embed_out.weight"}});
  family.nameInLayers({{"attention_norm", "input_layernorm.weight"},
                       {"qkv", "attention.query_key_value.weight"},
                       {"o", "attention.dense.weight"},
                       {"mlp_norm", "post_attention_layernorm.weight"},
                       {"up", "mlp.dense_h_to_4h.weight"},
                       {"down", "mlp.dense_4h_to_h.weight"}},
                      "gpt_neox.layers.{layer}.");
  return family;
}

static LayerRule readOpt(ConfigReader &config, ModelSpec &spec, BlockSpec &block) {
  spec.positionOffset = 2;
  spec.learnedPositions = spec.context + spec.positionOffset;
  int64_t width = config.optionalInteger("word_embed_proj_dim", spec.hidden, 1).value_or(spec.hidden);
  spec.embeddingWidth = width == spec.hidden ? 0 : width;
  bool affine = config.flag("layer_norm_elementwise_affine", true);
  for (NormSpec *norm : {&block.attentionNorm, &block.mlpNorm, &spec.finalNorm})
    norm->hasWeight = norm->hasBias = affine;
  block.normAfterResidual = !config.flag("do_layer_norm_before", true);
  if (config.flag("_remove_final_layer_norm", false) || block.normAfterResidual)
    spec.finalNorm.kind = NormSpec::Kind::None;
  return nullptr;
}

static Family optFamily() {
  Family family = gptBase();
  family.modelType = "opt";
  family.vocabulary.absent = 50272;
  family.hidden.absent = 768;
  family.layers.absent = family.heads.absent = 12;
  family.width = {"ffn_dim", 3072};
  family.normEps = {"", 1e-5};
  family.activation.absent = "relu";
  family.hasRope = false;
  family.qkvBias = family.outBias = family.mlpBias = {"enable_bias", true};
  family.tiedHead.absent = true;
  family.bosToken = 2;
  family.eosTokens = {2};
  family.adjust = readOpt;
  family.name({{"embedding", "model.decoder.embed_tokens.weight"},
               {"embedding_projection", "model.decoder.project_in.weight"},
               {"position_embedding", "model.decoder.embed_positions.weight"},
               {"final_norm", "model.decoder.final_layer_norm.weight"},
               {"head_projection", "model.decoder.project_out.weight"},
               {"head", "lm_head.weight"}});
  family.nameInLayers({{"attention_norm", "self_attn_layer_norm.weight"},
                       {"q", "self_attn.q_proj.weight"},
                       {"k", "self_attn.k_proj.weight"},
                       {"v", "self_attn.v_proj.weight"},
                       {"o", "self_attn.out_proj.weight"},
                       {"mlp_norm", "final_layer_norm.weight"},
                       {"up", "fc1.weight"},
                       {"down", "fc2.weight"}},
                      "model.decoder.layers.{layer}.");
  return family;
}

void addGptFamilies(std::vector<Family> &families) {
  for (auto make : {gpt2Family, gptjFamily, gptNeoFamily, gptNeoxFamily, optFamily})
    families.push_back(make());
}

} // namespace mcc
