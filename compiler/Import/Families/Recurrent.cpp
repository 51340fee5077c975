// Families with a state instead of (or beside) a cache: Mamba 1 and 2, Falcon-H1 (Mamba 2 and attention side by side),
// and LFM2 (short convolutions, attention in some layers).
#include "compiler/Import/Families/Family.h"

#include <cmath>

namespace mcc {

static constexpr int64_t unboundedContext = 1 << 20;

static void requireSilu(ConfigReader &config) {
  if (std::string name = config.text("hidden_act", "silu"); name != "silu" && name != "swish")
    config.refuse("hidden_act", "is {0}; only 'silu' is supported for this family", quoteJson(name));
}

/// A number of channels that transformers computes as int(expand * hidden).
static int64_t expand(ConfigReader &config, llvm::StringRef key, int64_t hidden) {
  double factor = config.number(key, 2);
  if (!(factor > 0 && factor <= 1024)) {
    config.refuse(key, "is {0}; expected a positive number of at most 1024", printNumber(factor));
    return hidden;
  }
  return int64_t(factor * double(hidden));
}

static Family mambaBase() {
  Family family;
  family.heads = {};
  family.context = {"", unboundedContext};
  family.width = {};
  family.activation = {"", "silu"};
  family.normEps = {"layer_norm_epsilon", 1e-5};
  family.bosToken = 0;
  family.ignored = {"rescale_prenorm_residual",
                    "residual_in_fp32",
                    "time_step_floor",
                    "time_step_init_scheme",
                    "time_step_max",
                    "time_step_min",
                    "time_step_scale",
                    "use_mambapy",
                    "use_associative_scan",
                    "chunk_size",
                    "fused_add_norm",
                    "rms_norm",
                    "ssm_cfg",
                    "d_inner",
                    "d_model",
                    "n_layer",
                    "pad_vocab_size_multiple",
                    "intermediate_size"};
  family.name({{"embedding", "backbone.embeddings.weight"},
               {"final_norm", "backbone.norm_f.weight"},
               {"head", "lm_head.weight"}});
  family.nameInLayers({{"attention_norm", "norm.weight"},
                       {"mamba_in", "mixer.in_proj.weight"},
                       {"mamba_conv", "mixer.conv1d.weight"},
                       {"mamba_a_log", "mixer.A_log"},
                       {"mamba_d", "mixer.D"},
                       {"mamba_out", "mixer.out_proj.weight"}},
                      "backbone.layers.{layer}.");
  return family;
}

static LayerRule readMamba(ConfigReader &config, ModelSpec &spec, BlockSpec &block) {
  block.mlp = {};
  block.mlpNorm.kind = NormSpec::Kind::None;
  requireSilu(config);
  MambaSpec &mamba = block.mamba.emplace();
  mamba.inner = expand(config, "expand", spec.hidden);
  mamba.state = config.integer("state_size", 16, 1);
  mamba.kernel = config.integer("conv_kernel", 4, 1);
  const JsonMember *rank = config.find("time_step_rank");
  bool isAuto = !rank || rank->value.string == "auto";
  mamba.timeRank = isAuto ? (spec.hidden + 15) / 16 : config.integer("time_step_rank", 1, 1);
  mamba.convBias = config.flag("use_conv_bias", true);
  mamba.bias = config.flag("use_bias", false);
  return nullptr;
}

static Family mambaFamily() {
  Family family = mambaBase();
  family.modelType = "mamba";
  family.vocabulary.absent = 50280;
  family.hidden.absent = 768;
  family.tiedHead.absent = true;
  family.eosTokens = {0};
  family.adjust = readMamba;
  family.nameInLayers({{"mamba_x", "mixer.x_proj.weight"}, {"mamba_dt", "mixer.dt_proj.weight"}},
                      "backbone.layers.{layer}.");
  return family;
}

static void readTimeLimits(ConfigReader &config, Mamba2Spec &mamba) {
  std::optional<std::vector<double>> limits = config.numbers("time_step_limit");
  if (!limits)
    return;
  if (limits->size() != 2)
    return config.refuse("time_step_limit", "has {0} elements; expected a lower and an upper bound", limits->size());
  mamba.timeMin = limits->front();
  if (std::isfinite(limits->back()))
    mamba.timeMax = limits->back();
}

static LayerRule readMamba2(ConfigReader &config, ModelSpec &spec, BlockSpec &block) {
  block.mlp = {};
  block.mlpNorm.kind = NormSpec::Kind::None;
  requireSilu(config);
  Mamba2Spec &mamba = block.mamba2.emplace();
  mamba.inner = expand(config, "expand", spec.hidden);
  mamba.heads = config.integer("num_heads", 128, 1);
  mamba.headDim = config.integer("head_dim", 64, 1);
  mamba.groups = config.integer("n_groups", 8, 1);
  mamba.state = config.integer("state_size", 128, 1);
  mamba.kernel = config.integer("conv_kernel", 4, 1);
  mamba.convBias = config.flag("use_conv_bias", true);
  mamba.inBias = mamba.outBias = config.flag("use_bias", false);
  mamba.norm = spec.finalNorm;
  readTimeLimits(config, mamba);
  return nullptr;
}

static Family mamba2Family() {
  Family family = mambaBase();
  family.modelType = "mamba2";
  family.vocabulary.absent = 32768;
  family.layers.absent = 64;
  family.eosTokens = {2};
  family.ignored.insert(family.ignored.end(), {"time_step_rank", "norm_before_gate"});
  family.adjust = readMamba2;
  family.nameInLayers({{"mamba_dt_bias", "mixer.dt_bias"}, {"mamba_norm", "mixer.norm.weight"}},
                      "backbone.layers.{layer}.");
  return family;
}

static Mamba2Spec readFalconMixer(ConfigReader &config, const ModelSpec &spec) {
  Mamba2Spec mamba;
  std::optional<int64_t> inner = config.optionalInteger("mamba_d_ssm", 1024, 1);
  int64_t expanded = expand(config, "mamba_expand", spec.hidden);
  mamba.inner = inner.value_or(expanded);
  mamba.heads = config.integer("mamba_n_heads", 128, 1);
  const JsonMember *headDim = config.find("mamba_d_head");
  bool isAuto = !headDim || headDim->value.string == "auto";
  mamba.headDim = isAuto ? mamba.inner / std::max<int64_t>(mamba.heads, 1) : config.integer("mamba_d_head", 64, 1);
  mamba.groups = config.integer("mamba_n_groups", 1, 1);
  mamba.state = config.integer("mamba_d_state", 256, 1);
  mamba.kernel = config.integer("mamba_d_conv", 4, 1);
  mamba.convBias = config.flag("mamba_conv_bias", true);
  mamba.inBias = config.flag("mamba_proj_bias", false);
  mamba.outBias = config.flag("projectors_bias", false);
  bool beforeGate = config.flag("mamba_norm_before_gate", true);
  if (config.flag("mamba_rms_norm", false)) {
    mamba.norm = spec.finalNorm;
    mamba.normBeforeGate = beforeGate;
    mamba.normGroups = mamba.groups;
  }
  readTimeLimits(config, mamba);
  mamba.inputScale = config.optionalNumber("ssm_in_multiplier", 1).value_or(1);
  mamba.outputScale = config.optionalNumber("ssm_out_multiplier", 1).value_or(1);
  mamba.partScales = config.numbers("ssm_multipliers").value_or(std::vector<double>());
  if (!mamba.partScales.empty() && llvm::all_of(mamba.partScales, [](double scale) { return scale == 1; }))
    mamba.partScales.clear();
  return mamba;
}

static LayerRule readFalconH1(ConfigReader &config, ModelSpec &spec, BlockSpec &block) {
  requireSilu(config);
  block.mamba2 = readFalconMixer(config, spec);
  // Scores are linear in the keys, and the rotation does not change their length.
  block.attention.scale *= config.optionalNumber("key_multiplier", 1).value_or(1);
  block.attention.inputScale = config.optionalNumber("attention_in_multiplier", 1).value_or(1);
  block.attention.outputScale = config.optionalNumber("attention_out_multiplier", 1).value_or(1);
  spec.embeddingScale = config.optionalNumber("embedding_multiplier", 1).value_or(1);
  spec.logitScale = config.optionalNumber("lm_head_multiplier", 1).value_or(1);
  std::vector<double> scales = config.numbers("mlp_multipliers").value_or(std::vector<double>{1, 1});
  if (scales.size() != 2)
    config.refuse("mlp_multipliers", "has {0} elements; expected one of the gate and one of the result", scales.size());
  else
    block.mlp.gateScale = scales[0], block.mlp.outputScale = scales[1];
  return nullptr;
}

static Family falconH1Family() {
  Family family = llamaFamily();
  family.modelType = "falcon_h1";
  family.vocabulary.absent = 128000;
  family.width.absent = 14336;
  family.kvHeads.absent = 8;
  family.context.absent = 8192;
  family.normEps.absent = 1e-5;
  family.ignored.insert(family.ignored.end(), {"mamba_chunk_size", "mamba_use_mlp", "num_logits_to_keep",
                                               "time_step_floor", "time_step_max", "time_step_min", "time_step_rank"});
  family.adjust = readFalconH1;
  family.name({{"final_norm", "model.final_layernorm.weight"}});
  family.nameInLayers({{"mlp_norm", "pre_ff_layernorm.weight"},
                       {"gate", "feed_forward.gate_proj.weight"},
                       {"up", "feed_forward.up_proj.weight"},
                       {"down", "feed_forward.down_proj.weight"},
                       {"mamba_in", "mamba.in_proj.weight"},
                       {"mamba_conv", "mamba.conv1d.weight"},
                       {"mamba_dt_bias", "mamba.dt_bias"},
                       {"mamba_a_log", "mamba.A_log"},
                       {"mamba_d", "mamba.D"},
                       {"mamba_norm", "mamba.norm.weight"},
                       {"mamba_out", "mamba.out_proj.weight"}});
  return family;
}

/// LFM2's MLP is narrower than the config says where `block_auto_adjust_ff_dim` is set, and a multiple of a block.
static int64_t adjustedWidth(ConfigReader &config, int64_t width) {
  bool adjusts = config.flag("block_auto_adjust_ff_dim", true);
  std::optional<double> factor = config.optionalNumber("block_ffn_dim_multiplier", 1);
  int64_t multiple = config.integer("block_multiple_of", 256, 1);
  if (!adjusts)
    return width;
  width = 2 * width / 3;
  if (!factor)
    return width;
  if (!(*factor > 0 && *factor <= 1024)) {
    config.refuse("block_ffn_dim_multiplier", "is {0}; expected a positive number of at most 1024",
                  printNumber(*factor));
    return width;
  }
  return (int64_t(*factor * double(width)) + multiple - 1) / multiple * multiple;
}

static LayerRule readLfm2(ConfigReader &config, ModelSpec &spec, BlockSpec &block) {
  block.mlp.width = adjustedWidth(config, block.mlp.width);
  block.attention.qkNorm = spec.finalNorm;
  ShortConvSpec conv;
  conv.kernel = config.integer("conv_L_cache", 3, 1);
  conv.bias = config.flag("conv_bias", false);
  std::optional<std::vector<int64_t>> full = config.integers("full_attn_idxs");
  std::vector<std::string> types =
      readLayerTypes(config, spec, {"full_attention", "conv"}, [&](int64_t layer) -> llvm::StringRef {
        return !full || llvm::is_contained(*full, layer) ? "full_attention" : "conv";
      });
  return [=](int64_t layer, BlockSpec &made) {
    made.name = types[layer] == "conv" ? "conv" : "attention";
    if (types[layer] != "conv")
      return;
    made.attention = {};
    made.shortConv = conv;
  };
}

static Family lfm2Family() {
  Family family = llamaFamily();
  family.modelType = "lfm2";
  family.vocabulary.absent = 65536;
  family.hidden.absent = 2560;
  family.width = {"block_ff_dim|intermediate_size", 12288};
  family.kvHeads.absent = 8;
  family.context.absent = 128000;
  family.normEps = {"norm_eps", 1e-5};
  family.activation = {"", "silu"};
  family.qkvBias = family.outBias = family.mlpBias = {};
  family.ropeTheta = 1000000;
  family.tiedHead = {"tie_embedding|tie_word_embeddings", true};
  family.ignored.insert(family.ignored.end(),
                        {"block_dim", "block_mlp_init_scale", "block_norm_eps", "block_out_init_scale",
                         "block_use_swiglu", "block_use_xavier_init", "conv_dim", "conv_dim_out",
                         "conv_use_xavier_init", "num_heads", "theta", "use_pos_enc", "hidden_act"});
  family.adjust = readLfm2;
  family.name({{"final_norm", "model.embedding_norm.weight"}});
  family.nameInLayers({{"attention_norm", "operator_norm.weight"},
                       {"mlp_norm", "ffn_norm.weight"},
                       {"o", "self_attn.out_proj.weight"},
                       {"q_norm", "self_attn.q_layernorm.weight"},
                       {"k_norm", "self_attn.k_layernorm.weight"},
                       {"gate", "feed_forward.w1.weight"},
                       {"up", "feed_forward.w3.weight"},
                       {"down", "feed_forward.w2.weight"},
                       {"conv_in", "conv.in_proj.weight"},
                       {"conv", "conv.conv.weight"},
                       {"conv_out", "conv.out_proj.weight"}});
  return family;
}

void addRecurrentFamilies(std::vector<Family> &families) {
  for (auto make : {mambaFamily, mamba2Family, falconH1Family, lfm2Family})
    families.push_back(make());
}

} // namespace mcc
