// Mixtures of experts over Llama's attention: Mixtral, Granite's and gpt-oss. Each stores its experts in another way.
#include "compiler/Import/Families/Family.h"

#include <utility>

namespace mcc {

static Family mixtralFamily() {
  Family family = llamaFamily();
  family.modelType = "mixtral";
  family.kvHeads.absent = 8;
  family.width.absent = 14336;
  family.context.absent = 131072;
  family.qkvBias = family.outBias = family.mlpBias = {};
  family.normEps.absent = 1e-5;
  family.ropeTheta = 1000000;
  family.adjust = [](ConfigReader &config, ModelSpec &, BlockSpec &block) -> LayerRule {
    block.attention.window = config.optionalInteger("sliding_window", std::nullopt, 1).value_or(0);
    MoeSpec &moe = block.moe.emplace();
    moe.experts = config.integer("num_local_experts|num_experts", 8, 1);
    moe.expertsPerToken = config.integer("num_experts_per_tok", 2, 1);
    moe.normalize = true;
    moe.expert = std::exchange(block.mlp, {});
    return nullptr;
  };
  family.unname({"gate", "up", "down"});
  family.nameInLayers({{"router", "block_sparse_moe.gate.weight"},
                       {"expert_gate", "block_sparse_moe.experts.{expert}.w1.weight"},
                       {"expert_up", "block_sparse_moe.experts.{expert}.w3.weight"},
                       {"expert_down", "block_sparse_moe.experts.{expert}.w2.weight"}});
  return family;
}

static Family graniteMoeFamily() {
  Family family = llamaFamily();
  family.modelType = "granitemoe";
  family.mlpBias = {};
  family.adjust = [](ConfigReader &config, ModelSpec &spec, BlockSpec &block) {
    MoeSpec &moe = block.moe.emplace();
    moe.experts = config.optionalInteger("num_local_experts|num_experts", 8, 1).value_or(8);
    moe.expertsPerToken = config.optionalInteger("num_experts_per_tok", 2, 1).value_or(2);
    moe.scoring = MoeSpec::Scoring::SelectedSoftmax;
    moe.storage = MoeSpec::Storage::Stacked;
    moe.expert = std::exchange(block.mlp, {});
    moe.expert.gateUpLayout = GateUpLayout::Concatenated;
    return readGraniteMultipliers(config, spec, block);
  };
  family.unname({"gate", "up", "down"});
  family.nameInLayers({{"router", "block_sparse_moe.router.layer.weight"},
                       {"expert_gate_up", "block_sparse_moe.input_linear.weight"},
                       {"expert_down", "block_sparse_moe.output_linear.weight"}});
  return family;
}

/// gpt-oss: attention sinks, every other layer sliding, and experts whose gate and up are clamped at 7.
static LayerRule readGptOss(ConfigReader &config, ModelSpec &spec, BlockSpec &block) {
  block.attention.sinks = true;
  if (!config.has("rope_parameters") && !config.has("rope_scaling")) {
    RopeSpec &rope = *block.attention.rope;
    rope.scaling = RopeSpec::Scaling::Yarn;
    rope.factor = 32;
    rope.originalContext = 4096;
    rope.truncate = false;
  }
  MoeSpec &moe = block.moe.emplace();
  moe.experts = config.integer("num_local_experts|num_experts", 128, 1);
  moe.expertsPerToken = config.integer("num_experts_per_tok|experts_per_token", 4, 1);
  moe.scoring = MoeSpec::Scoring::SelectedSoftmax;
  moe.routerBias = true;
  moe.storage = MoeSpec::Storage::StackedTransposed;
  moe.expert = std::exchange(block.mlp, {});
  moe.expert.bias = true;
  moe.expert.gateUpLayout = GateUpLayout::Interleaved;
  moe.expert.activation = Activation::GeluQuick;
  moe.expert.clamp = 7;
  moe.expert.upOffset = 1;
  config.requireNumber("swiglu_limit", 7);
  std::vector<std::string> types =
      readLayerTypes(config, spec, {"full_attention", "sliding_attention"}, [&](int64_t layer) -> llvm::StringRef {
        return (layer + 1) % 2 != 0 ? "sliding_attention" : "full_attention";
      });
  return slidingLayers(types, config.optionalInteger("sliding_window", 128, 1).value_or(0));
}

static Family gptOssFamily() {
  Family family = llamaFamily();
  family.modelType = "gpt_oss";
  family.vocabulary.absent = 201088;
  family.hidden.absent = family.width.absent = 2880;
  family.layers.absent = 36;
  family.heads.absent = 64;
  family.kvHeads.absent = 8;
  family.headDim.absent = 64;
  family.context.absent = 131072;
  family.qkvBias.absent = family.outBias.absent = true;
  family.mlpBias = {};
  family.normEps.absent = 1e-5;
  family.ropeTheta = 150000;
  family.bosToken = -1;
  family.eosTokens = {};
  family.ignored = {"initial_context_length"};
  family.adjust = readGptOss;
  family.unname({"gate", "up", "down"});
  family.nameInLayers({{"sinks", "self_attn.sinks"},
                       {"router", "mlp.router.weight"},
                       {"expert_gate_up", "mlp.experts.gate_up_proj"},
                       {"expert_gate_up.bias", "mlp.experts.gate_up_proj_bias"},
                       {"expert_down", "mlp.experts.down_proj"},
                       {"expert_down.bias", "mlp.experts.down_proj_bias"}});
  return family;
}

void addMixtureFamilies(std::vector<Family> &families) {
  for (auto make : {mixtralFamily, graniteMoeFamily, gptOssFamily})
    families.push_back(make());
}

} // namespace mcc
