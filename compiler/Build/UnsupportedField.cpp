// What a ModelSpec can say that no op or kernel implements yet: refused by name, never built wrong.
#include "compiler/Build/BuildStep.h"

namespace mcc {
namespace {

// One condition that the builder cannot meet.
struct Check {
  bool present;
  const char *field;
};

std::optional<std::string> firstPresent(std::string prefix, std::initializer_list<Check> checks) {
  for (const Check &check : checks)
    if (check.present)
      return prefix + check.field;
  return std::nullopt;
}

std::optional<std::string> unsupportedRope(const std::string &prefix, const RopeSpec &rope) {
  return firstPresent(prefix + "rope.", {{rope.scaling == RopeSpec::Scaling::Dynamic, "scaling"}, {rope.scaling == RopeSpec::Scaling::LongRope, "scaling"}});
}

std::optional<std::string> unsupportedAttention(const std::string &prefix, const AttentionSpec &attention) {
  bool perHeadRms = !attention.qkNorm || (attention.qkNorm->kind == NormSpec::Kind::Rms && attention.qkNorm->hasWeight && !attention.qkNorm->hasBias &&
                                          attention.qkNormScope == AttentionSpec::NormScope::Head);
  auto field = firstPresent(prefix, {{attention.heads == 0, "heads"},
                                     {attention.qkvLayout != QkvLayout::Separate, "qkv_layout"},
                                     {!perHeadRms, "qk_norm"},
                                     {attention.qkNormAfterRope, "qk_norm_after_rope"},
                                     {attention.qkvClip != 0, "qkv_clip"},
                                     {attention.chunk != 0, "chunk"},
                                     {attention.sinks, "sinks"},
                                     {attention.outputGate, "output_gate"},
                                     {attention.inputScale != 1, "input_scale"},
                                     {attention.outputScale != 1, "output_scale"},
                                     {attention.innerNorm.has_value(), "inner_norm"},
                                     {attention.alibi.has_value(), "alibi"},
                                     {attention.latent.has_value(), "latent"}});
  if (!field && attention.rope)
    field = unsupportedRope(prefix, *attention.rope);
  return field;
}

std::optional<std::string> unsupportedMlp(const std::string &prefix, const MlpSpec &mlp) {
  bool known = mlp.activation <= Activation::Relu2;
  return firstPresent(prefix, {{mlp.width == 0, "width"},
                               {!known, "activation"},
                               {mlp.gateUpLayout != GateUpLayout::Separate, "gate_up_layout"},
                               {mlp.clamp != 0, "clamp"},
                               {mlp.upOffset != 0, "up_offset"},
                               {mlp.gateScale != 1, "gate_scale"},
                               {mlp.outputScale != 1, "output_scale"},
                               {mlp.innerNorm.has_value(), "inner_norm"}});
}

std::optional<std::string> unsupportedBlock(const std::string &prefix, const BlockSpec &block) {
  auto field = firstPresent(prefix, {{block.mamba.has_value(), "mamba"},
                                     {block.mamba2.has_value(), "mamba2"},
                                     {block.shortConv.has_value(), "short_conv"},
                                     {block.deltaNet.has_value(), "delta_net"},
                                     {block.moe.has_value(), "moe"},
                                     {block.residual != Residual::Serial, "residual"},
                                     {block.residualScale != 1, "residual_scale"},
                                     {block.normAfterResidual, "norm_after_residual"},
                                     {block.residualFromNorm, "residual_from_norm"},
                                     {block.attentionPostNorm.has_value(), "attention_post_norm"},
                                     {block.mlpPostNorm.has_value(), "mlp_post_norm"}});
  if (!field)
    field = unsupportedAttention(prefix + "attention.", block.attention);
  if (!field)
    field = unsupportedMlp(prefix + "mlp.", block.mlp);
  return field;
}

} // namespace

std::optional<std::string> unsupportedField(const ModelSpec &spec) {
  auto field = firstPresent("", {{spec.embeddingWidth != 0 && spec.embeddingWidth != spec.hidden, "embedding_width"},
                                 {spec.embeddingNorm.has_value(), "embedding_norm"},
                                 {spec.learnedPositions != 0, "learned_positions"},
                                 {spec.transposedLinears, "transposed_linears"}});
  for (size_t i = 0; i < spec.blocks.size() && !field; ++i)
    field = unsupportedBlock("blocks[" + std::to_string(i) + "].", spec.blocks[i]);
  return field;
}

} // namespace mcc
