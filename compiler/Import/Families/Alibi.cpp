// Families whose positions are linear biases on scores: Bloom, MPT, and Falcon where it says so. All pack q, k and v.
#include "compiler/Import/Families/Family.h"

#include <cmath>

namespace mcc {

/// What the three share.
static Family packedBase() {
  Family family;
  family.norm = {.kind = NormSpec::Kind::Layer, .hasBias = true};
  family.normEps = {"layer_norm_epsilon", 1e-5};
  family.kvHeads = family.headDim = {};
  family.activation = {"", "gelu"};
  family.gated = false;
  family.hasRope = false;
  family.tiedHead.absent = true;
  return family;
}

static Family bloomFamily() {
  Family family = packedBase();
  family.modelType = "bloom";
  family.vocabulary.absent = 250880;
  family.hidden = {"n_embed|hidden_size", 64};
  family.layers = {"n_layer|num_hidden_layers", 2};
  family.heads = {"n_head|num_attention_heads", 8};
  family.context = {"seq_length|max_position_embeddings", 2048};
  family.width = {};
  family.activation.absent = "gelu_pytorch_tanh";
  family.qkvBias = family.outBias = family.mlpBias = {"", true};
  family.bosToken = 1;
  family.eosTokens = {2};
  family.ignored = {"attention_softmax_in_fp32",
                    "bias_dropout_fusion",
                    "masked_softmax_fusion",
                    "n_inner",
                    "offset_alibi",
                    "skip_bias_add",
                    "skip_bias_add_qkv",
                    "slow_but_exact",
                    "unk_token_id"};
  family.adjust = [](ConfigReader &config, ModelSpec &spec, BlockSpec &block) -> LayerRule {
    spec.embeddingNorm = spec.finalNorm;
    block.attention.alibi.emplace();
    block.attention.qkvLayout = QkvLayout::PerKvHead;
    block.residualFromNorm = config.flag("apply_residual_connection_post_layernorm", false);
    return nullptr;
  };
  family.name({{"embedding", "transformer.word_embeddings.weight"},
               {"embedding_norm", "transformer.word_embeddings_layernorm.weight"},
               {"final_norm", "transformer.ln_f.weight"},
               {"head", "lm_head.weight"}});
  family.nameInLayers({{"attention_norm", "input_layernorm.weight"},
                       {"qkv", "self_attention.query_key_value.weight"},
                       {"o", "self_attention.dense.weight"},
                       {"mlp_norm", "post_attention_layernorm.weight"},
                       {"up", "mlp.dense_h_to_4h.weight"},
                       {"down", "mlp.dense_4h_to_h.weight"}},
                      "transformer.h.{layer}.");
  return family;
}

/// MPT: transformers always adds ALiBi with a maximum of 8 and always makes the MLP four times as wide, whatever the
/// config says; configs for which that would be another model are refused, except for the keys that it documents as
/// unused.
static LayerRule readMpt(ConfigReader &config, ModelSpec &, BlockSpec &block) {
  block.attention.alibi.emplace();
  block.attention.qkvLayout = QkvLayout::Concatenated;
  if (!config.flag("no_bias", true))
    config.refuse("no_bias", "is false, which is not supported");
  if (config.has("logit_scale"))
    config.refuse("logit_scale", "is given, which is not supported");
  if (std::string type = config.text("norm_type", "low_precision_layernorm");
      type != "low_precision_layernorm" && type != "layernorm")
    config.refuse("norm_type", "is {0}; known are 'low_precision_layernorm' and 'layernorm'", quoteJson(type));
  std::optional<ConfigReader> attention = config.nested("attn_config");
  if (!attention)
    return nullptr;
  if (!attention->flag("alibi", true))
    attention->refuse("alibi", "is false, which is not supported");
  for (llvm::StringRef key : {"qk_ln", "prefix_lm", "attn_uses_sequence_id"})
    attention->requireFalse(key);
  attention->requireNumber("alibi_bias_max", 8);
  if (std::string type = attention->text("attn_type", "multihead_attention"); type != "multihead_attention")
    attention->refuse("attn_type", "is {0}; only 'multihead_attention' is supported", quoteJson(type));
  block.attention.qkvClip = attention->optionalNumber("clip_qkv", std::nullopt).value_or(0);
  if (std::optional<double> scale = attention->optionalNumber("softmax_scale", std::nullopt))
    block.attention.scale = *scale;
  config.adopt(*attention);
  return nullptr;
}

static Family mptFamily() {
  Family family = packedBase();
  family.modelType = "mpt";
  family.vocabulary.absent = 50368;
  family.hidden = {"d_model|hidden_size", 2048};
  family.layers = {"n_layers|num_hidden_layers", 24};
  family.heads = {"n_heads|num_attention_heads", 16};
  family.context = {"max_seq_len", 2048};
  family.width = {};
  family.norm.hasBias = false;
  family.ignored = {"expansion_ratio", "learned_pos_emb", "embedding_fraction",
                    "init_device",     "init_config",     "tokenizer_name"};
  family.adjust = readMpt;
  family.name({{"embedding", "transformer.wte.weight"},
               {"final_norm", "transformer.norm_f.weight"},
               {"head", "lm_head.weight"}});
  family.nameInLayers({{"attention_norm", "norm_1.weight"},
                       {"qkv", "attn.Wqkv.weight"},
                       {"o", "attn.out_proj.weight"},
                       {"mlp_norm", "norm_2.weight"},
                       {"up", "ffn.up_proj.weight"},
                       {"down", "ffn.down_proj.weight"}},
                      "transformer.blocks.{layer}.");
  return family;
}

/// Falcon: one key head for all (7B), or groups of heads packed with their key and value (40B, 180B, 11B), or as many
/// keys as heads (the RefinedWeb models with ALiBi).
static LayerRule readFalcon(ConfigReader &config, ModelSpec &spec, BlockSpec &block, const Family &family) {
  AttentionSpec &attention = block.attention;
  bool isNew = config.flag("new_decoder_architecture", config.text("model_type", "") == "RefinedWeb");
  bool multiQuery = config.flag("multi_query", true), parallel = config.flag("parallel_attn", true);
  int64_t kvHeads = config.optionalInteger("num_kv_heads|n_head_kv", std::nullopt, 1).value_or(attention.heads);
  attention.kvHeads = isNew ? kvHeads : multiQuery ? 1 : attention.heads;
  attention.qkvLayout = QkvLayout::PerKvHead;
  if (config.flag("alibi", false)) {
    attention.alibi = AlibiSpec{.scaled = true, .rounded = true};
    // Read for their checks only.
    readRope(config, family, attention.headDim);
  } else {
    attention.rope = readRope(config, family, attention.headDim);
  }
  int64_t norms = config.optionalInteger("num_ln_in_parallel_attn", std::nullopt, 1).value_or(isNew ? 2 : 1);
  if (isNew && !parallel)
    config.refuse("parallel_attn", "is false; with 'new_decoder_architecture' it must be true");
  bool twoNorms = parallel && isNew && norms == 2;
  block.residual = !parallel ? Residual::Serial : twoNorms ? Residual::Parallel : Residual::ParallelOneNorm;
  if (twoNorms) {
    spec.tensors["attention_norm"] = "transformer.h.{layer}.ln_attn.weight";
    spec.tensors["mlp_norm"] = "transformer.h.{layer}.ln_mlp.weight";
  } else if (parallel) {
    spec.tensors.erase("mlp_norm");
  }
  return nullptr;
}

static Family falconFamily() {
  Family family = packedBase();
  family.modelType = "falcon";
  family.aliases = {"RefinedWeb", "RefinedWebModel"};
  family.vocabulary.absent = 65024;
  family.hidden = {"n_embed|hidden_size", 4544};
  family.layers.keys = "num_hidden_layers|n_layer";
  family.heads = {"num_attention_heads|n_head", 71};
  family.width = {"ffn_hidden_size", 0};
  family.activation = {"activation", "gelu"};
  family.qkvBias = family.outBias = family.mlpBias = {"bias", false};
  family.bosToken = 11;
  family.eosTokens = {11};
  family.ignored = {"intermediate_size", "num_key_value_heads", "apply_residual_connection_post_layernorm"};
  Family self = family;
  family.adjust = [self](ConfigReader &config, ModelSpec &spec, BlockSpec &block) {
    return readFalcon(config, spec, block, self);
  };
  family.name({{"embedding", "transformer.word_embeddings.weight"},
               {"final_norm", "transformer.ln_f.weight"},
               {"head", "lm_head.weight"}});
  family.nameInLayers({{"attention_norm", "input_layernorm.weight"},
                       {"qkv", "self_attention.query_key_value.weight"},
                       {"o", "self_attention.dense.weight"},
                       {"mlp_norm", "post_attention_layernorm.weight"},
                       {"up", "mlp.dense_h_to_4h.weight"},
                       {"down", "mlp.dense_4h_to_h.weight"}},
                      "transformer.h.{layer}.");
  return family;
}

void addAlibiFamilies(std::vector<Family> &families) {
  for (auto make : {bloomFamily, mptFamily, falconFamily})
    families.push_back(make());
}

} // namespace mcc
