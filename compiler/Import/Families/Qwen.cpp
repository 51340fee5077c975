// Qwen 2 and 3: Llama with biases on q, k and v, or with norms of the query and key heads, and a window for the
// layers from `max_window_layers` on where `use_sliding_window` says so; their mixtures of experts; and Qwen3-Next,
// whose layers are gated delta nets but for every fourth.
#include "compiler/Import/Families/Family.h"

#include <set>

namespace mcc {

/// `slidesByDefault` says which layers slide where `layer_types` is absent, given `max_window_layers`.
static LayerRule readWindows(ConfigReader &config, ModelSpec &spec,
                             llvm::function_ref<bool(int64_t layer, int64_t bound)> slidesByDefault) {
  bool slides = config.flag("use_sliding_window", false);
  std::optional<int64_t> window = config.optionalInteger("sliding_window", 4096);
  int64_t bound = config.optionalInteger("max_window_layers", 28).value_or(28);
  bool hasWindow = slides && window && *window > 0;
  std::vector<std::string> types =
      readLayerTypes(config, spec, {"full_attention", "sliding_attention"}, [&](int64_t layer) -> llvm::StringRef {
        return hasWindow && slidesByDefault(layer, bound) ? "sliding_attention" : "full_attention";
      });
  if (llvm::is_contained(types, "sliding_attention") && !hasWindow)
    config.refuse("layer_types", "has \"sliding_attention\"; 'sliding_window' and 'use_sliding_window' give no window");
  return slidingLayers(types, window.value_or(0));
}

static LayerRule qwenWindows(ConfigReader &config, ModelSpec &spec, BlockSpec &) {
  return readWindows(config, spec, [](int64_t layer, int64_t bound) { return layer >= bound; });
}

static Family qwen2Family() {
  Family family = llamaFamily();
  family.modelType = "qwen2";
  family.vocabulary.absent = 151936;
  family.kvHeads.absent = 32;
  family.width.absent = 22016;
  family.context.absent = 32768;
  family.qkvBias = {"", true};
  family.outBias = family.mlpBias = {};
  family.bosToken = -1;
  family.eosTokens = {};
  family.adjust = qwenWindows;
  return family;
}

static Family qwen3Family() {
  Family family = qwen2Family();
  family.modelType = "qwen3";
  family.headDim.absent = 128;
  family.qkvBias = family.outBias = {"attention_bias", false};
  family.adjust = [](ConfigReader &config, ModelSpec &spec, BlockSpec &block) {
    block.attention.qkNorm = spec.finalNorm;
    return qwenWindows(config, spec, block);
  };
  family.name({{"q_norm", "model.layers.{layer}.self_attn.q_norm.weight"},
               {"k_norm", "model.layers.{layer}.self_attn.k_norm.weight"}});
  return family;
}

/// Which layers have experts: every `decoder_sparse_step`-th, but those of `mlp_only_layers`.
static std::function<bool(int64_t)> readSparseLayers(ConfigReader &config) {
  int64_t step = config.integer("decoder_sparse_step", 1, 1);
  std::vector<int64_t> dense = config.integers("mlp_only_layers").value_or(std::vector<int64_t>());
  return [step, dense = std::set<int64_t>(dense.begin(), dense.end())](int64_t layer) {
    return (layer + 1) % step == 0 && !dense.count(layer);
  };
}

static void readExperts(ConfigReader &config, BlockSpec &block, int64_t experts, int64_t perToken, int64_t width,
                        bool normalize) {
  MoeSpec &moe = block.moe.emplace();
  moe.experts = config.integer("num_experts|num_local_experts", experts, 1);
  moe.expertsPerToken = config.integer("num_experts_per_tok", perToken, 1);
  moe.normalize = config.flag("norm_topk_prob", normalize);
  moe.expert = block.mlp;
  moe.expert.width = config.integer("moe_intermediate_size", width, 1);
}

static void readSharedExpert(ConfigReader &config, BlockSpec &block, int64_t width) {
  block.moe->shared = block.mlp;
  block.moe->shared.width = config.integer("shared_expert_intermediate_size", width, 1);
  block.moe->sharedGate = true;
}

static void nameExperts(Family &family, bool shared) {
  family.nameInLayers({{"router", "mlp.gate.weight"},
                       {"expert_gate", "mlp.experts.{expert}.gate_proj.weight"},
                       {"expert_up", "mlp.experts.{expert}.up_proj.weight"},
                       {"expert_down", "mlp.experts.{expert}.down_proj.weight"}});
  if (shared)
    family.nameInLayers({{"shared_gate", "mlp.shared_expert.gate_proj.weight"},
                         {"shared_up", "mlp.shared_expert.up_proj.weight"},
                         {"shared_down", "mlp.shared_expert.down_proj.weight"},
                         {"shared_router", "mlp.shared_expert_gate.weight"}});
}

static Family qwen2MoeFamily() {
  Family family = qwen2Family();
  family.modelType = "qwen2_moe";
  family.hidden.absent = 2048;
  family.width.absent = 5632;
  family.layers.absent = 24;
  family.heads.absent = family.kvHeads.absent = 16;
  family.qkvBias = {"qkv_bias", true};
  family.adjust = [](ConfigReader &config, ModelSpec &spec, BlockSpec &block) {
    readExperts(config, block, 60, 4, 1408, false);
    readSharedExpert(config, block, 5632);
    // Not as in Qwen 2: the even layers below the bound slide.
    LayerRule windows =
        readWindows(config, spec, [](int64_t layer, int64_t bound) { return layer % 2 == 0 && layer < bound; });
    return sparseLayers(readSparseLayers(config), windows);
  };
  nameExperts(family, /*shared=*/true);
  return family;
}

static Family qwen3MoeFamily() {
  Family family = qwen3Family();
  family.modelType = "qwen3_moe";
  family.hidden.absent = 2048;
  family.width.absent = 6144;
  family.layers.absent = 24;
  family.kvHeads.absent = 4;
  family.headDim.absent = 0;
  family.ignored.insert(family.ignored.end(), {"max_window_layers"});
  family.adjust = [](ConfigReader &config, ModelSpec &spec, BlockSpec &block) {
    block.attention.qkNorm = spec.finalNorm;
    int64_t window = config.optionalInteger("sliding_window", 4096).value_or(0);
    block.attention.window = config.flag("use_sliding_window", false) ? window : 0;
    readExperts(config, block, 128, 8, 768, false);
    return sparseLayers(readSparseLayers(config));
  };
  nameExperts(family, /*shared=*/false);
  return family;
}

static LayerRule readQwen3Next(ConfigReader &config, ModelSpec &spec, BlockSpec &block) {
  block.attention.qkNorm = spec.finalNorm;
  block.attention.outputGate = true;
  DeltaNetSpec delta;
  delta.keyHeads = config.integer("linear_num_key_heads", 16, 1);
  delta.valueHeads = config.integer("linear_num_value_heads", 32, 1);
  delta.keyDim = config.integer("linear_key_head_dim", 128, 1);
  delta.valueDim = config.integer("linear_value_head_dim", 128, 1);
  delta.kernel = config.integer("linear_conv_kernel_dim", 4, 1);
  delta.norm = spec.finalNorm;
  delta.norm.weightOffset = 0;
  readExperts(config, block, 512, 10, 512, true);
  readSharedExpert(config, block, 512);
  int64_t interval = config.integer("full_attention_interval", 4, 1);
  std::vector<std::string> types =
      readLayerTypes(config, spec, {"full_attention", "linear_attention"}, [&](int64_t layer) -> llvm::StringRef {
        return (layer + 1) % interval != 0 ? "linear_attention" : "full_attention";
      });
  return sparseLayers(readSparseLayers(config), [=](int64_t layer, BlockSpec &made) {
    made.name = types[layer] == "full_attention" ? "full" : "linear";
    if (types[layer] == "full_attention")
      return;
    made.attention = {};
    made.deltaNet = delta;
  });
}

static Family qwen3NextFamily() {
  Family family = qwen3Family();
  family.modelType = "qwen3_next";
  family.hidden.absent = 2048;
  family.width.absent = 5632;
  family.layers.absent = 48;
  family.heads.absent = 16;
  family.kvHeads.absent = 2;
  family.headDim.absent = 256;
  family.norm.weightOffset = 1;
  family.rotaryFactor = 0.25;
  family.adjust = readQwen3Next;
  nameExperts(family, /*shared=*/true);
  family.nameInLayers({{"delta_in_qkvz", "linear_attn.in_proj_qkvz.weight"},
                       {"delta_in_ba", "linear_attn.in_proj_ba.weight"},
                       {"delta_conv", "linear_attn.conv1d.weight"},
                       {"delta_dt_bias", "linear_attn.dt_bias"},
                       {"delta_a_log", "linear_attn.A_log"},
                       {"delta_norm", "linear_attn.norm.weight"},
                       {"delta_out", "linear_attn.out_proj.weight"}});
  return family;
}

void addQwenFamilies(std::vector<Family> &families) {
  for (auto make : {qwen2Family, qwen3Family, qwen2MoeFamily, qwen3MoeFamily, qwen3NextFamily})
    families.push_back(make());
}

} // namespace mcc
