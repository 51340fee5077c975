// Every tensor a spec reads, with its stored shape, in program order; and the sizes that follow from them.
//
// One walk names the roles of a block half by half, in the order in which the step uses them. The shapes here are
// the contract with checkpoints: a family is right when this list equals the tensors of its published files.
#include "compiler/Import/ModelSpec.h"

#include <algorithm>

namespace mcc {

namespace {

using Shape = std::vector<int64_t>;

class TensorWalk {
public:
  explicit TensorWalk(const ModelSpec &spec) : spec(spec) {}

  std::vector<RequiredTensor> run() {
    addModelHead();
    for (layer = 0; layer < int64_t(spec.layers.size()); ++layer) {
      const BlockSpec &block = spec.block(layer);
      addNorm("attention_norm", block.attentionNorm, spec.hidden);
      addMixers(block);
      if (block.attentionPostNorm)
        addNorm("attention_post_norm", *block.attentionPostNorm, spec.hidden);
      if (block.residual != Residual::ParallelOneNorm && (block.mlp.width != 0 || block.moe))
        addNorm("mlp_norm", block.mlpNorm, spec.hidden);
      addMlp("", block.mlp, spec.transposedLinears);
      if (block.moe)
        addExperts(*block.moe);
      if (block.mlpPostNorm)
        addNorm("mlp_post_norm", *block.mlpPostNorm, spec.hidden);
    }
    layer = -1;
    addModelTail();
    return std::move(tensors);
  }

private:
  const ModelSpec &spec;
  std::vector<RequiredTensor> tensors;
  int64_t layer = -1;

  void add(std::string role, Shape shape, int64_t index = -1) {
    tensors.push_back({spec.tensorName(role, layer, index), role, layer, std::move(shape), index});
  }

  void addNorm(const std::string &role, const NormSpec &norm, Shape shape) {
    if (norm.kind == NormSpec::Kind::None || !norm.hasWeight)
      return;
    add(role, shape);
    if (norm.hasBias)
      add(role + ".bias", shape);
  }
  void addNorm(const std::string &role, const NormSpec &norm, int64_t elems) { addNorm(role, norm, Shape{elems}); }

  void addLinear(const std::string &role, int64_t out, int64_t in, bool bias, bool transposed = false) {
    add(role, transposed ? Shape{in, out} : Shape{out, in});
    if (bias)
      add(role + ".bias", {out});
  }

  int64_t embeddingWidth() const { return spec.embeddingWidth != 0 ? spec.embeddingWidth : spec.hidden; }

  void addModelHead() {
    add("embedding", {spec.vocabulary, embeddingWidth()});
    if (embeddingWidth() != spec.hidden)
      add("embedding_projection", {spec.hidden, embeddingWidth()});
    if (spec.learnedPositions != 0)
      add("position_embedding", {spec.learnedPositions, spec.hidden});
    if (spec.embeddingNorm)
      addNorm("embedding_norm", *spec.embeddingNorm, spec.hidden);
  }

  void addModelTail() {
    addNorm("final_norm", spec.finalNorm, spec.hidden);
    if (embeddingWidth() != spec.hidden)
      add("head_projection", {embeddingWidth(), spec.hidden});
    if (!spec.tiedHead)
      add("head", {spec.vocabulary, embeddingWidth()});
    if (spec.headBias)
      add("head.bias", {spec.vocabulary});
  }

  void addMixers(const BlockSpec &block) {
    if (block.attention.heads != 0)
      addAttention(block.attention);
    if (block.mamba)
      addMamba(*block.mamba);
    if (block.mamba2)
      addMamba2(*block.mamba2);
    if (block.shortConv)
      addShortConv(*block.shortConv);
    if (block.deltaNet)
      addDeltaNet(*block.deltaNet);
  }

  void addAttention(const AttentionSpec &attention) {
    int64_t queries = attention.heads * attention.headDim, keys = attention.kvHeads * attention.headDim;
    int64_t results = attention.latent ? attention.heads * attention.latent->valueDim : queries;
    if (attention.latent) {
      addLatent(attention, *attention.latent);
    } else if (attention.qkvLayout != QkvLayout::Separate) {
      addLinear("qkv", queries + 2 * keys, spec.hidden, attention.qkvBias, spec.transposedLinears);
    } else {
      addLinear("q", attention.outputGate ? 2 * queries : queries, spec.hidden, attention.qkvBias,
                spec.transposedLinears);
      addLinear("k", keys, spec.hidden, attention.qkvBias, spec.transposedLinears);
      addLinear("v", keys, spec.hidden, attention.qkvBias, spec.transposedLinears);
    }
    if (attention.qkNorm) {
      addHeadNorm("q_norm", attention, attention.heads);
      addHeadNorm("k_norm", attention, attention.kvHeads);
    }
    if (attention.sinks)
      add("sinks", {attention.heads});
    if (attention.innerNorm)
      addNorm("attention_inner_norm", *attention.innerNorm, results);
    addLinear("o", spec.hidden, results, attention.outBias, spec.transposedLinears);
  }

  void addHeadNorm(const std::string &role, const AttentionSpec &attention, int64_t heads) {
    const NormSpec &norm = *attention.qkNorm;
    switch (attention.qkNormScope) {
    case AttentionSpec::NormScope::Head:
      return addNorm(role, norm, attention.headDim);
    case AttentionSpec::NormScope::HeadOwnWeights:
      return addNorm(role, norm, Shape{heads, attention.headDim});
    case AttentionSpec::NormScope::All:
      return addNorm(role, norm, heads * attention.headDim);
    case AttentionSpec::NormScope::HeadOwnTensors:
      for (int64_t head = 0; head < heads && norm.hasWeight; ++head) {
        add(role, {attention.headDim}, head);
        if (norm.hasBias)
          add(role + ".bias", {attention.headDim}, head);
      }
    }
  }

  void addLatent(const AttentionSpec &attention, const LatentSpec &latent) {
    int64_t queries = attention.heads * (latent.nopeDim + latent.ropeDim);
    if (latent.queryRank == 0) {
      addLinear("q", queries, spec.hidden, false);
    } else {
      addLinear("q_a", latent.queryRank, spec.hidden, attention.qkvBias);
      add("q_a_norm", {latent.queryRank});
      addLinear("q_b", queries, latent.queryRank, false);
    }
    addLinear("kv_a", latent.kvRank + latent.ropeDim, spec.hidden, attention.qkvBias);
    add("kv_a_norm", {latent.kvRank});
    addLinear("kv_b", attention.heads * (latent.nopeDim + latent.valueDim), latent.kvRank, false);
  }

  void addConv(const std::string &role, int64_t channels, int64_t kernel, bool bias) {
    add(role, {channels, 1, kernel});
    if (bias)
      add(role + ".bias", {channels});
  }

  void addMamba(const MambaSpec &mamba) {
    addLinear("mamba_in", 2 * mamba.inner, spec.hidden, mamba.bias);
    addConv("mamba_conv", mamba.inner, mamba.kernel, mamba.convBias);
    addLinear("mamba_x", mamba.timeRank + 2 * mamba.state, mamba.inner, false);
    addLinear("mamba_dt", mamba.inner, mamba.timeRank, true);
    add("mamba_a_log", {mamba.inner, mamba.state});
    add("mamba_d", {mamba.inner});
    addLinear("mamba_out", spec.hidden, mamba.inner, mamba.bias);
  }

  void addMamba2(const Mamba2Spec &mamba) {
    int64_t mixed = mamba.inner + 2 * mamba.groups * mamba.state;
    addLinear("mamba_in", mamba.inner + mixed + mamba.heads, spec.hidden, mamba.inBias);
    addConv("mamba_conv", mixed, mamba.kernel, mamba.convBias);
    add("mamba_dt_bias", {mamba.heads});
    add("mamba_a_log", {mamba.heads});
    add("mamba_d", {mamba.heads});
    if (mamba.norm)
      addNorm("mamba_norm", *mamba.norm, mamba.inner);
    addLinear("mamba_out", spec.hidden, mamba.inner, mamba.outBias);
  }

  void addShortConv(const ShortConvSpec &conv) {
    addLinear("conv_in", 3 * spec.hidden, spec.hidden, conv.bias);
    addConv("conv", spec.hidden, conv.kernel, conv.bias);
    addLinear("conv_out", spec.hidden, spec.hidden, conv.bias);
  }

  void addDeltaNet(const DeltaNetSpec &delta) {
    int64_t keys = delta.keyHeads * delta.keyDim, values = delta.valueHeads * delta.valueDim;
    addLinear("delta_in_qkvz", 2 * keys + 2 * values, spec.hidden, false);
    addLinear("delta_in_ba", 2 * delta.valueHeads, spec.hidden, false);
    addConv("delta_conv", 2 * keys + values, delta.kernel, false);
    add("delta_dt_bias", {delta.valueHeads});
    add("delta_a_log", {delta.valueHeads});
    addNorm("delta_norm", delta.norm, delta.valueDim);
    addLinear("delta_out", spec.hidden, values, false);
  }

  void addMlp(const std::string &prefix, const MlpSpec &mlp, bool transposed, int64_t index = -1) {
    if (mlp.width == 0)
      return;
    auto linear = [&](const std::string &role, int64_t out, int64_t in) {
      add(prefix + role, transposed ? Shape{in, out} : Shape{out, in}, index);
      if (mlp.bias)
        add(prefix + role + ".bias", {out}, index);
    };
    if (mlp.gated && mlp.gateUpLayout != GateUpLayout::Separate) {
      linear("gate_up", 2 * mlp.width, spec.hidden);
    } else {
      if (mlp.gated)
        linear("gate", mlp.width, spec.hidden);
      linear("up", mlp.width, spec.hidden);
    }
    if (mlp.activation == Activation::Xielu) {
      add(prefix + "activation_alpha_p", {1}, index);
      add(prefix + "activation_alpha_n", {1}, index);
      add(prefix + "activation_beta", {}, index);
      add(prefix + "activation_eps", {}, index);
    }
    if (mlp.innerNorm)
      addNorm(prefix + "mlp_inner_norm", *mlp.innerNorm, mlp.width);
    linear("down", spec.hidden, mlp.width);
  }

  void addExperts(const MoeSpec &moe) {
    addLinear("router", moe.experts, spec.hidden, moe.routerBias);
    if (moe.selectionBias)
      add("router_selection_bias", {moe.experts});
    if (moe.storage == MoeSpec::Storage::Separate) {
      for (int64_t expert = 0; expert < moe.experts; ++expert)
        addMlp("expert_", moe.expert, false, expert);
    } else {
      size_t first = tensors.size();
      addMlp("expert_", moe.expert, moe.storage == MoeSpec::Storage::StackedTransposed);
      for (size_t i = first; i < tensors.size(); ++i)
        tensors[i].shape.insert(tensors[i].shape.begin(), moe.experts);
    }
    addMlp("shared_", moe.shared, false);
    if (moe.sharedGate)
      add("shared_router", {1, spec.hidden});
  }
};

int64_t elementsOf(const RequiredTensor &tensor) {
  int64_t elems = 1;
  for (int64_t extent : tensor.shape)
    elems *= extent;
  return elems;
}

/// The elements of an expert's tensors that a token does not read, on average over the experts.
int64_t idleElements(const ModelSpec &spec, const RequiredTensor &tensor, int64_t elems) {
  if (tensor.layer < 0 || !tensor.role.starts_with("expert_"))
    return 0;
  const MoeSpec &moe = *spec.block(tensor.layer).moe;
  if (moe.storage == MoeSpec::Storage::Separate)
    return tensor.index < moe.expertsPerToken ? 0 : elems;
  return elems / moe.experts * (moe.experts - moe.expertsPerToken);
}

void addCaches(ModelSize &size, const BlockSpec &block, int64_t hidden) {
  const AttentionSpec &attention = block.attention;
  if (attention.heads != 0) {
    int64_t elems = 2 * attention.kvHeads * attention.headDim; // of latent attention too: it is cached expanded
    size.cacheElems += elems;
    if (attention.window != 0 || attention.chunk != 0)
      size.windowedCacheElems += elems;
  }
  // A convolution of kernel k keeps k - 1 past inputs per channel.
  if (const auto &mamba = block.mamba)
    size.stateElems += mamba->inner * (mamba->state + mamba->kernel - 1);
  if (const auto &mamba = block.mamba2)
    size.stateElems += mamba->heads * mamba->headDim * mamba->state +
                       (mamba->inner + 2 * mamba->groups * mamba->state) * (mamba->kernel - 1);
  if (const auto &conv = block.shortConv)
    size.stateElems += hidden * (conv->kernel - 1);
  if (const auto &delta = block.deltaNet)
    size.stateElems +=
        delta->valueHeads * delta->valueDim * delta->keyDim +
        (2 * delta->keyHeads * delta->keyDim + delta->valueHeads * delta->valueDim) * (delta->kernel - 1);
}

} // namespace

std::vector<RequiredTensor> requiredTensors(const ModelSpec &spec) { return TensorWalk(spec).run(); }

ModelSize modelSize(const ModelSpec &spec) {
  ModelSize size;
  for (const RequiredTensor &tensor : requiredTensors(spec)) {
    int64_t elems = elementsOf(tensor);
    size.parameters += elems;
    size.activeParameters += elems - idleElements(spec, tensor, elems);
  }
  for (int64_t layer = 0; layer < int64_t(spec.layers.size()); ++layer)
    addCaches(size, spec.block(layer), spec.hidden);
  return size;
}

int64_t weightBytes(const ModelSpec &spec, Format format) {
  bool hasBlocks = formatInfo(format).blockElems > 1;
  int64_t bytes = 0;
  for (const RequiredTensor &tensor : requiredTensors(spec)) {
    int64_t elems = elementsOf(tensor);
    bool isMatrix = tensor.shape.size() >= 2;
    bool fits = isMatrix && tensor.shape.back() % formatInfo(format).blockElems == 0;
    Format stored = !hasBlocks || fits ? format : isMatrix ? Format::F16 : Format::F32;
    bytes += formatBytes(stored, elems);
  }
  return bytes;
}

} // namespace mcc
