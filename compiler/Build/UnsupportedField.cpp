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
  return firstPresent(prefix + "rope.", {{rope.scaling == RopeSpec::Scaling::Dynamic, "scaling"}});
}

std::optional<std::string> unsupportedAttention(const std::string &prefix, const AttentionSpec &attention) {
  if (attention.heads == 0) // another mixer stands for it
    return std::nullopt;
  // Values are padded to the size of a key, and nothing but the rotation happens to q and k.
  std::optional<std::string> field;
  if (attention.latent)
    field = firstPresent(prefix, {{attention.latent->valueDim > attention.headDim, "latent.value_dim"},
                                  {attention.latent->ropeDim == 0, "latent.rope_dim"},
                                  {attention.latent->nopeDim == 0, "latent.nope_dim"},
                                  {attention.qkNorm.has_value(), "qk_norm"},
                                  {attention.outputGate, "output_gate"},
                                  {attention.qkvBias, "qkv_bias"}});
  if (!field && attention.rope)
    field = unsupportedRope(prefix, *attention.rope);
  return field;
}

std::optional<std::string> unsupportedMlp(const std::string &prefix, const MlpSpec &mlp) {
  bool known = mlp.activation <= Activation::GeluQuick || (mlp.activation == Activation::Xielu && !mlp.gated);
  return firstPresent(prefix, {{!known, "activation"}, {mlp.clamp != 0, "clamp"}, {mlp.upOffset != 0, "up_offset"}});
}

// The routers' kernels keep a score and a mark for so many.
constexpr int64_t mostExperts = 1024;

std::optional<std::string> unsupportedExperts(const std::string &prefix, const MoeSpec &moe) {
  auto field = firstPresent(prefix, {{moe.experts > mostExperts, "experts"},
                                     {moe.groups > mostExperts, "groups"},
                                     {moe.expert.width % 16 != 0, "expert.width"}, // experts lie in whole panels of 16 rows
                                     {moe.expert.activation > Activation::GeluQuick, "expert.activation"},
                                     {moe.expert.gateScale != 1, "expert.gate_scale"},
                                     {moe.expert.outputScale != 1, "expert.output_scale"},
                                     {moe.expert.innerNorm.has_value(), "expert.inner_norm"}});
  return field || moe.shared.width == 0 ? field : unsupportedMlp(prefix + "shared.", moe.shared);
}

std::optional<std::string> unsupportedBlock(const std::string &prefix, const BlockSpec &block) {
  auto field = firstPresent(prefix, {{block.normAfterResidual, "norm_after_residual"},
                                     {block.residualFromNorm, "residual_from_norm"}});
  if (!field)
    field = unsupportedAttention(prefix + "attention.", block.attention);
  if (!field)
    field = block.moe ? unsupportedExperts(prefix + "moe.", *block.moe) : unsupportedMlp(prefix + "mlp.", block.mlp);
  return field;
}

} // namespace

std::optional<std::string> unsupportedField(const ModelSpec &spec) {
  // Quantised words run along the inputs; a transposed linear would be read across them.
  auto field = firstPresent("", {{spec.quantization && spec.transposedLinears, "quantization"},
                                 {spec.embeddingWidth != 0 && spec.embeddingWidth != spec.hidden, "embedding_width"}});
  for (size_t i = 0; i < spec.blocks.size() && !field; ++i)
    if (spec.blocks[i].moe && spec.hidden % 16 != 0) // the rows of an expert's last matrix
      field = "hidden";
  for (size_t i = 0; i < spec.blocks.size() && !field; ++i)
    field = unsupportedBlock("blocks[" + std::to_string(i) + "].", spec.blocks[i]);
  return field;
}

} // namespace mcc
