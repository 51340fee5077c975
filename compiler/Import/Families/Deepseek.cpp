// DeepSeek 2 and 3: latent attention, a few dense layers first, then mixtures with shared experts. 2 scores by softmax
// and ranks groups by their best expert; 3 scores by sigmoid, adds a bias for the selection, and ranks groups by their
// best two.
#include "compiler/Import/Families/Family.h"

#include <cmath>

namespace mcc {

static void readLatentAttention(ConfigReader &config, const Family &family, BlockSpec &block, int64_t absentQueryRank) {
  AttentionSpec &attention = block.attention;
  LatentSpec &latent = attention.latent.emplace();
  latent.queryRank = config.optionalInteger("q_lora_rank", absentQueryRank, 1).value_or(0);
  latent.kvRank = config.integer("kv_lora_rank", 512, 1);
  latent.nopeDim = config.integer("qk_nope_head_dim", 128);
  latent.ropeDim = config.integer("qk_rope_head_dim", 64, 1);
  latent.valueDim = config.integer("v_head_dim", 128, 1);
  config.ignore({"qk_head_dim", "head_dim"});
  attention.headDim = latent.nopeDim + latent.ropeDim;
  // Every head has a key of its own, whatever the config's number of key heads.
  attention.kvHeads = attention.heads;
  Family ropes = family;
  if (!config.flag("rope_interleave", true))
    ropes.ropePairing = RopeSpec::Pairing::Half;
  attention.rope = readRope(config, ropes, latent.ropeDim);
  attention.scale = 1 / std::sqrt(double(attention.headDim));
  const RopeSpec &rope = *attention.rope;
  if (rope.scaling != RopeSpec::Scaling::None && rope.mscaleAllDim != 0 && rope.factor > 1) {
    double mscale = 0.1 * rope.mscaleAllDim * std::log(rope.factor) + 1;
    attention.scale *= mscale * mscale;
  }
}

static void readExperts(ConfigReader &config, BlockSpec &block, int64_t experts, int64_t perToken, int64_t shared,
                        int64_t width) {
  MoeSpec &moe = block.moe.emplace();
  moe.experts = config.integer("n_routed_experts|num_experts|num_local_experts", experts, 1);
  moe.expertsPerToken = config.optionalInteger("num_experts_per_tok", perToken, 1).value_or(1);
  moe.expert = moe.shared = block.mlp;
  moe.expert.bias = false;
  moe.expert.width = config.integer("moe_intermediate_size", width, 1);
  moe.shared.width = moe.expert.width * config.optionalInteger("n_shared_experts", shared).value_or(0);
  config.requireNumber("moe_layer_freq", 1);
}

static LayerRule readDeepseek2(ConfigReader &config, const Family &family, BlockSpec &block) {
  readLatentAttention(config, family, block, 1536);
  readExperts(config, block, 64, 1, 2, 1407);
  MoeSpec &moe = *block.moe;
  moe.scale = config.number("routed_scaling_factor", 1);
  std::string method = config.text("topk_method", "greedy"), scoring = config.text("scoring_func", "softmax");
  int64_t groups = config.optionalInteger("n_group", std::nullopt, 1).value_or(1);
  int64_t groupsPerToken = config.optionalInteger("topk_group", std::nullopt, 1).value_or(1);
  if (method == "group_limited_greedy") {
    moe.groups = groups;
    moe.groupsPerToken = groupsPerToken;
  } else if (method != "greedy") {
    config.refuse("topk_method", "is {0}; known are 'greedy' and 'group_limited_greedy'", quoteJson(method));
  }
  if (scoring != "softmax")
    config.refuse("scoring_func", "is {0}; only 'softmax' is supported for this family", quoteJson(scoring));
  // transformers never divides by the sum here, the published code would.
  config.requireFalse("norm_topk_prob");
  int64_t dense = config.integer("first_k_dense_replace", 0);
  return sparseLayers([dense](int64_t layer) { return layer >= dense; });
}

static LayerRule readDeepseek3(ConfigReader &config, const Family &family, BlockSpec &block) {
  readLatentAttention(config, family, block, 1536);
  readExperts(config, block, 256, 8, 1, 2048);
  MoeSpec &moe = *block.moe;
  moe.scoring = MoeSpec::Scoring::Sigmoid;
  moe.normalize = config.flag("norm_topk_prob", true);
  moe.scale = config.number("routed_scaling_factor", 2.5);
  moe.groups = config.integer("n_group", 8, 1);
  moe.groupsPerToken = config.integer("topk_group", 4, 1);
  moe.groupScore = MoeSpec::GroupScore::TopTwoSum;
  moe.selectionBias = true;
  if (std::string method = config.text("topk_method", "noaux_tc"); method != "noaux_tc")
    config.refuse("topk_method", "is {0}; only 'noaux_tc' is supported for this family", quoteJson(method));
  if (std::string scoring = config.text("scoring_func", "sigmoid"); scoring != "sigmoid")
    config.refuse("scoring_func", "is {0}; only 'sigmoid' is supported for this family", quoteJson(scoring));
  int64_t dense = config.optionalInteger("first_k_dense_replace", 3).value_or(0);
  return sparseLayers([dense](int64_t layer) { return layer >= dense; });
}

static Family deepseekBase() {
  Family family = llamaFamily();
  family.headDim = {"", 1}; // set with the latent dimensions
  family.hasRope = false;
  family.ropePairing = RopeSpec::Pairing::Adjacent;
  family.ignored.insert(family.ignored.end(),
                        {"ep_size", "num_nextn_predict_layers", "num_mtp_layers", "aux_loss_alpha", "seq_aux"});
  family.unname({"k", "v"});
  family.nameInLayers({{"q_a", "self_attn.q_a_proj.weight"},
                       {"q_a_norm", "self_attn.q_a_layernorm.weight"},
                       {"q_b", "self_attn.q_b_proj.weight"},
                       {"kv_a", "self_attn.kv_a_proj_with_mqa.weight"},
                       {"kv_a_norm", "self_attn.kv_a_layernorm.weight"},
                       {"kv_b", "self_attn.kv_b_proj.weight"},
                       {"router", "mlp.gate.weight"},
                       {"expert_gate", "mlp.experts.{expert}.gate_proj.weight"},
                       {"expert_up", "mlp.experts.{expert}.up_proj.weight"},
                       {"expert_down", "mlp.experts.{expert}.down_proj.weight"},
                       {"shared_gate", "mlp.shared_experts.gate_proj.weight"},
                       {"shared_up", "mlp.shared_experts.up_proj.weight"},
                       {"shared_down", "mlp.shared_experts.down_proj.weight"}});
  return family;
}

static Family deepseek2Family() {
  Family family = deepseekBase();
  family.modelType = "deepseek_v2";
  family.vocabulary.absent = 102400;
  Family self = family;
  family.adjust = [self](ConfigReader &config, ModelSpec &, BlockSpec &block) {
    return readDeepseek2(config, self, block);
  };
  return family;
}

static Family deepseek3Family() {
  Family family = deepseekBase();
  family.modelType = "deepseek_v3";
  // Kimi K2 is published as DeepSeek's architecture under a name of its own.
  family.aliases = {"kimi_k2"};
  family.vocabulary.absent = 129280;
  family.hidden.absent = 7168;
  family.width.absent = 18432;
  family.layers.absent = 61;
  family.heads.absent = family.kvHeads.absent = 128;
  family.context.absent = 4096;
  family.mlpBias = {};
  family.bosToken = 0;
  family.eosTokens = {1};
  family.nameInLayers({{"router_selection_bias", "mlp.gate.e_score_correction_bias"}});
  Family self = family;
  family.adjust = [self](ConfigReader &config, ModelSpec &, BlockSpec &block) {
    return readDeepseek3(config, self, block);
  };
  return family;
}

void addDeepseekFamilies(std::vector<Family> &families) {
  families.push_back(deepseek2Family());
  families.push_back(deepseek3Family());
}

} // namespace mcc
