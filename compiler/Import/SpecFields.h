// The fields of mcc's spec JSON, once: reader, printer, JSON Schema and problem paths all walk these lists.
//
// For each struct, `describeFields(visit, Tag<S>{})` calls visit(name, &S::member, limits, doc) in printing order. A
// field's default is the default-constructed struct's; fields without `required` may be left out of a file and are
// printed where they differ from it.
#pragma once

#include "compiler/Import/ModelSpec.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <limits>

namespace mcc::specjson {

template <typename S>
struct Tag {};

/// What a number (or every number of a list) may be, and when the field is given and printed.
struct Limits {
  double low = -std::numeric_limits<double>::max();
  double high = std::numeric_limits<double>::max();
  bool lowExcluded = false;
  bool required = false; ///< must be given
  bool shown = false;    ///< is printed even at its default

  Limits must() const {
    Limits result = *this;
    result.required = true;
    return result;
  }
  Limits always() const {
    Limits result = *this;
    result.shown = true;
    return result;
  }
};

inline constexpr double maxExtent = 1 << 24; ///< of one axis: far above any model, far below overflow
inline constexpr Limits anything{};
inline constexpr Limits natural{0, maxExtent, false};
inline constexpr Limits positiveInt{1, maxExtent, false};
inline constexpr Limits position{0, 1e12, false};
inline constexpr Limits nonNegative{0, 1e30, false};
inline constexpr Limits positive{0, 1e30, true, false};
inline constexpr Limits factor{-1e30, 1e30, false};
inline constexpr Limits tokenId{-1, 2147483647, false};

/// One spelling of an enumerator.
template <typename E>
struct EnumName {
  E value;
  llvm::StringRef name;
};

/// Each returns the spellings of an enumeration.
inline llvm::ArrayRef<EnumName<NormSpec::Kind>> enumNames(Tag<NormSpec::Kind>) {
  using Kind = NormSpec::Kind;
  static constexpr EnumName<Kind> names[] = {{Kind::Rms, "rms"}, {Kind::Layer, "layer"}, {Kind::None, "none"}};
  return names;
}
inline llvm::ArrayRef<EnumName<RopeSpec::Pairing>> enumNames(Tag<RopeSpec::Pairing>) {
  using Pairing = RopeSpec::Pairing;
  static constexpr EnumName<Pairing> names[] = {{Pairing::Half, "half"}, {Pairing::Adjacent, "adjacent"}};
  return names;
}
inline llvm::ArrayRef<EnumName<RopeSpec::Scaling>> enumNames(Tag<RopeSpec::Scaling>) {
  using Scaling = RopeSpec::Scaling;
  static constexpr EnumName<Scaling> names[] = {{Scaling::None, "none"},       {Scaling::Linear, "linear"},
                                                {Scaling::Dynamic, "dynamic"}, {Scaling::Llama3, "llama3"},
                                                {Scaling::Yarn, "yarn"},       {Scaling::LongRope, "longrope"}};
  return names;
}
inline llvm::ArrayRef<EnumName<AttentionSpec::NormScope>> enumNames(Tag<AttentionSpec::NormScope>) {
  using Scope = AttentionSpec::NormScope;
  static constexpr EnumName<Scope> names[] = {{Scope::Head, "head"},
                                              {Scope::HeadOwnWeights, "head_own_weights"},
                                              {Scope::HeadOwnTensors, "head_own_tensors"},
                                              {Scope::All, "all"}};
  return names;
}
inline llvm::ArrayRef<EnumName<QkvLayout>> enumNames(Tag<QkvLayout>) {
  static constexpr EnumName<QkvLayout> names[] = {{QkvLayout::Separate, "separate"},
                                                  {QkvLayout::Concatenated, "concatenated"},
                                                  {QkvLayout::PerKvHead, "per_kv_head"}};
  return names;
}
inline llvm::ArrayRef<EnumName<GateUpLayout>> enumNames(Tag<GateUpLayout>) {
  static constexpr EnumName<GateUpLayout> names[] = {{GateUpLayout::Separate, "separate"},
                                                     {GateUpLayout::Concatenated, "concatenated"},
                                                     {GateUpLayout::Interleaved, "interleaved"}};
  return names;
}
inline llvm::ArrayRef<EnumName<MoeSpec::Scoring>> enumNames(Tag<MoeSpec::Scoring>) {
  using Scoring = MoeSpec::Scoring;
  static constexpr EnumName<Scoring> names[] = {
      {Scoring::Softmax, "softmax"}, {Scoring::SelectedSoftmax, "selected_softmax"}, {Scoring::Sigmoid, "sigmoid"}};
  return names;
}
inline llvm::ArrayRef<EnumName<MoeSpec::GroupScore>> enumNames(Tag<MoeSpec::GroupScore>) {
  using Score = MoeSpec::GroupScore;
  static constexpr EnumName<Score> names[] = {{Score::Max, "max"}, {Score::TopTwoSum, "top_two_sum"}};
  return names;
}
inline llvm::ArrayRef<EnumName<MoeSpec::Storage>> enumNames(Tag<MoeSpec::Storage>) {
  using Storage = MoeSpec::Storage;
  static constexpr EnumName<Storage> names[] = {{Storage::Separate, "separate"},
                                                {Storage::Stacked, "stacked"},
                                                {Storage::StackedTransposed, "stacked_transposed"}};
  return names;
}
inline llvm::ArrayRef<EnumName<QuantizationSpec::Method>> enumNames(Tag<QuantizationSpec::Method>) {
  using Method = QuantizationSpec::Method;
  static constexpr EnumName<Method> names[] = {
      {Method::Fp8, "fp8"}, {Method::Mxfp4, "mxfp4"}, {Method::Gptq, "gptq"}, {Method::Awq, "awq"}};
  return names;
}
inline llvm::ArrayRef<EnumName<Residual>> enumNames(Tag<Residual>) {
  static constexpr EnumName<Residual> names[] = {
      {Residual::Serial, "serial"}, {Residual::Parallel, "parallel"}, {Residual::ParallelOneNorm, "parallel_one_norm"}};
  return names;
}
inline llvm::ArrayRef<EnumName<Activation>> enumNames(Tag<Activation>) {
  static constexpr EnumName<Activation> names[] = {{Activation::None, "none"},
                                                   {Activation::Silu, "silu"},
                                                   {Activation::GeluErf, "gelu_erf"},
                                                   {Activation::GeluTanh, "gelu_tanh"},
                                                   {Activation::Relu, "relu"},
                                                   {Activation::Relu2, "relu2"},
                                                   {Activation::GeluQuick, "gelu_quick"},
                                                   {Activation::Xielu, "xielu"}};
  return names;
}

template <typename V>
void describeFields(V &visit, Tag<NormSpec>) {
  visit("kind", &NormSpec::kind, anything.always(), "how the values are normalised; none is the identity");
  visit("eps", &NormSpec::eps, nonNegative.always(), "added to the mean square or the variance");
  visit("weight_offset", &NormSpec::weightOffset, factor, "added to every weight before use");
  visit("has_weight", &NormSpec::hasWeight, anything, "whether the result is multiplied by a weight");
  visit("has_bias", &NormSpec::hasBias, anything, "whether a bias is added");
}

template <typename V>
void describeFields(V &visit, Tag<RopeSpec>) {
  visit("theta", &RopeSpec::theta, positive.must(), "base of the frequencies");
  visit("dims", &RopeSpec::dims, positiveInt.must(), "rotated dimensions of a head, the first ones");
  visit("pairing", &RopeSpec::pairing, anything.always(),
        "which dimensions turn together: i and i + dims/2, or 2i and 2i + 1");
  visit("scaling", &RopeSpec::scaling, anything, "how the frequencies are stretched");
  visit("factor", &RopeSpec::factor, positive, "linear, dynamic, llama3, yarn, longrope: the stretch");
  visit("low_freq_factor", &RopeSpec::lowFreqFactor, positive, "llama3");
  visit("high_freq_factor", &RopeSpec::highFreqFactor, positive, "llama3");
  visit("beta_fast", &RopeSpec::betaFast, positive, "yarn");
  visit("beta_slow", &RopeSpec::betaSlow, positive, "yarn");
  visit("mscale", &RopeSpec::mscale, nonNegative, "yarn; 0: not given");
  visit("mscale_all_dim", &RopeSpec::mscaleAllDim, nonNegative, "yarn; 0: not given");
  visit("truncate", &RopeSpec::truncate, anything, "yarn: the correction range is rounded to whole dimensions");
  visit("attention_factor", &RopeSpec::attentionFactor, nonNegative,
        "yarn, longrope: multiplies cos and sin; derived where absent");
  visit("original_context", &RopeSpec::originalContext, position,
        "dynamic, llama3, yarn, longrope: positions before the stretch");
  visit("short_factors", &RopeSpec::shortFactors, positive, "longrope: divisors up to original_context positions");
  visit("long_factors", &RopeSpec::longFactors, positive, "longrope: divisors beyond");
  visit("frequency_divisors", &RopeSpec::frequencyDivisors, positive, "divide the frequencies one by one");
}

template <typename V>
void describeFields(V &visit, Tag<AlibiSpec>) {
  visit("max_bias", &AlibiSpec::maxBias, positive, "the slopes of n heads are 2^(-max_bias i/n)");
  visit("scaled", &AlibiSpec::scaled, anything, "whether the bias is multiplied by the attention scale");
  visit("rounded", &AlibiSpec::rounded, anything, "whether slopes, positions and products are rounded to bfloat16");
}

template <typename V>
void describeFields(V &visit, Tag<LatentSpec>) {
  visit("query_rank", &LatentSpec::queryRank, natural, "width of the query's low-rank vector; 0: projected directly");
  visit("kv_rank", &LatentSpec::kvRank, positiveInt.must(), "width of the key's and value's low-rank vector");
  visit("nope_dim", &LatentSpec::nopeDim, natural.must(), "dimensions of a head that are not rotated");
  visit("rope_dim", &LatentSpec::ropeDim, natural.must(), "rotated dimensions, shared by all heads of the key");
  visit("value_dim", &LatentSpec::valueDim, positiveInt.must(), "dimensions of a value head");
  visit("norm_eps", &LatentSpec::normEps, nonNegative, "of the norms of the low-rank vectors");
}

template <typename V>
void describeFields(V &visit, Tag<AttentionSpec>) {
  visit("heads", &AttentionSpec::heads, natural.must(), "query heads; 0: no attention");
  visit("kv_heads", &AttentionSpec::kvHeads, natural.must(), "key and value heads, a divisor of heads");
  visit("head_dim", &AttentionSpec::headDim, natural.must(), "dimensions of a head");
  visit("scale", &AttentionSpec::scale, nonNegative.must(), "multiplies the scores");
  visit("qkv_bias", &AttentionSpec::qkvBias, anything, "whether the q, k and v projections have biases");
  visit("out_bias", &AttentionSpec::outBias, anything, "whether the o projection has a bias");
  visit("qkv_layout", &AttentionSpec::qkvLayout, anything, "how q, k and v lie in the checkpoint");
  visit("qk_norm", &AttentionSpec::qkNorm, anything, "norm of q and k");
  visit("qk_norm_scope", &AttentionSpec::qkNormScope, anything, "what the norm of q and k runs over");
  visit("qk_norm_after_rope", &AttentionSpec::qkNormAfterRope, anything, "whether the norm follows the rotation");
  visit("qkv_clip", &AttentionSpec::qkvClip, nonNegative, "q, k and v are clamped to this magnitude; 0: not");
  visit("softcap", &AttentionSpec::softcap, nonNegative, "scores become softcap tanh(score / softcap); 0: none");
  visit("window", &AttentionSpec::window, position, "a token sees itself and window - 1 before it; 0: all");
  visit("chunk", &AttentionSpec::chunk, position, "a token sees its own chunk of that many positions; 0: all");
  visit("sinks", &AttentionSpec::sinks, anything, "whether every softmax has one more logit without a value");
  visit("output_gate", &AttentionSpec::outputGate, anything, "whether q carries a gate for the result");
  visit("input_scale", &AttentionSpec::inputScale, factor, "multiplies what the branch reads");
  visit("output_scale", &AttentionSpec::outputScale, factor, "multiplies what the branch adds");
  visit("inner_norm", &AttentionSpec::innerNorm, anything, "norm before the o projection");
  visit("rope", &AttentionSpec::rope, anything, "rotary position embedding");
  visit("alibi", &AttentionSpec::alibi, anything, "linear position biases");
  visit("latent", &AttentionSpec::latent, anything, "keys and values rebuilt from one low-rank vector");
}

template <typename V>
void describeFields(V &visit, Tag<MlpSpec>) {
  visit("width", &MlpSpec::width, natural.must(), "intermediate features; 0: no MLP");
  visit("activation", &MlpSpec::activation, anything.always(), "of the gate, or of up where there is no gate");
  visit("gated", &MlpSpec::gated, anything.always(), "down(act(gate(x)) * up(x)), else down(act(up(x)))");
  visit("bias", &MlpSpec::bias, anything, "whether the projections have biases");
  visit("gate_up_layout", &MlpSpec::gateUpLayout, anything, "how gate and up lie in the checkpoint");
  visit("clamp", &MlpSpec::clamp, nonNegative, "bounds gate above and up on both sides; 0: not");
  visit("up_offset", &MlpSpec::upOffset, factor, "added to up");
  visit("gate_scale", &MlpSpec::gateScale, factor, "multiplies the gate before its activation");
  visit("output_scale", &MlpSpec::outputScale, factor, "multiplies the result");
  visit("inner_norm", &MlpSpec::innerNorm, anything, "norm before the down projection");
}

template <typename V>
void describeFields(V &visit, Tag<MoeSpec>) {
  visit("experts", &MoeSpec::experts, positiveInt.must(), "how many there are");
  visit("experts_per_token", &MoeSpec::expertsPerToken, positiveInt.must(), "how many run for a token");
  visit("expert", &MoeSpec::expert, anything.must(), "one of them");
  visit("scoring", &MoeSpec::scoring, anything, "what the router's logits become");
  visit("normalize", &MoeSpec::normalize, anything, "whether selected weights are divided by their sum");
  visit("scale", &MoeSpec::scale, factor, "multiplies the selected weights");
  visit("groups", &MoeSpec::groups, positiveInt, "groups of experts");
  visit("groups_per_token", &MoeSpec::groupsPerToken, positiveInt, "groups that experts are selected from");
  visit("group_score", &MoeSpec::groupScore, anything, "how groups are ranked");
  visit("selection_bias", &MoeSpec::selectionBias, anything,
        "whether a bias is added to scores for the selection only");
  visit("router_bias", &MoeSpec::routerBias, anything, "whether the router has a bias");
  visit("storage", &MoeSpec::storage, anything, "how the experts' weights lie in the checkpoint");
  visit("shared", &MoeSpec::shared, anything, "an MLP that runs for every token");
  visit("shared_gate", &MoeSpec::sharedGate, anything, "whether its result is multiplied by a learned gate");
}

template <typename V>
void describeFields(V &visit, Tag<MambaSpec>) {
  visit("inner", &MambaSpec::inner, positiveInt.must(), "channels");
  visit("state", &MambaSpec::state, positiveInt.must(), "state of a channel");
  visit("time_rank", &MambaSpec::timeRank, positiveInt.must(), "width of the time step's low-rank vector");
  visit("kernel", &MambaSpec::kernel, positiveInt.must(), "taps of the convolution");
  visit("conv_bias", &MambaSpec::convBias, anything, "whether the convolution has a bias");
  visit("bias", &MambaSpec::bias, anything, "whether the projections have biases");
}

template <typename V>
void describeFields(V &visit, Tag<Mamba2Spec>) {
  visit("inner", &Mamba2Spec::inner, positiveInt.must(), "channels, heads times head_dim");
  visit("heads", &Mamba2Spec::heads, positiveInt.must(), "heads, each with its own decay");
  visit("head_dim", &Mamba2Spec::headDim, positiveInt.must(), "channels of a head");
  visit("groups", &Mamba2Spec::groups, positiveInt, "groups of heads that share B and C");
  visit("state", &Mamba2Spec::state, positiveInt.must(), "state of a channel");
  visit("kernel", &Mamba2Spec::kernel, positiveInt.must(), "taps of the convolution");
  visit("conv_bias", &Mamba2Spec::convBias, anything, "whether the convolution has a bias");
  visit("in_bias", &Mamba2Spec::inBias, anything, "whether the input projection has a bias");
  visit("out_bias", &Mamba2Spec::outBias, anything, "whether the output projection has a bias");
  visit("time_min", &Mamba2Spec::timeMin, nonNegative, "lower bound of the time step");
  visit("time_max", &Mamba2Spec::timeMax, nonNegative, "upper bound of the time step; absent: none");
  visit("norm", &Mamba2Spec::norm, anything, "norm of the gated result");
  visit("norm_before_gate", &Mamba2Spec::normBeforeGate, anything, "whether the gate is multiplied in after the norm");
  visit("norm_groups", &Mamba2Spec::normGroups, positiveInt, "parts of the result that are normalised apart");
  visit("input_scale", &Mamba2Spec::inputScale, factor, "multiplies what the branch reads");
  visit("output_scale", &Mamba2Spec::outputScale, factor, "multiplies what the branch adds");
  visit("part_scales", &Mamba2Spec::partScales, factor, "multiply z, x, B, C and dt");
}

template <typename V>
void describeFields(V &visit, Tag<ShortConvSpec>) {
  visit("kernel", &ShortConvSpec::kernel, positiveInt.must(), "taps of the convolution");
  visit("bias", &ShortConvSpec::bias, anything, "whether convolution and projections have biases");
}

template <typename V>
void describeFields(V &visit, Tag<DeltaNetSpec>) {
  visit("key_heads", &DeltaNetSpec::keyHeads, positiveInt.must(), "heads of q and k, a divisor of value_heads");
  visit("value_heads", &DeltaNetSpec::valueHeads, positiveInt.must(), "heads of v, z, beta and the decay");
  visit("key_dim", &DeltaNetSpec::keyDim, positiveInt.must(), "dimensions of a key head");
  visit("value_dim", &DeltaNetSpec::valueDim, positiveInt.must(), "dimensions of a value head");
  visit("kernel", &DeltaNetSpec::kernel, positiveInt.must(), "taps of the convolution");
  visit("norm", &DeltaNetSpec::norm, anything, "norm of each value head's result");
}

template <typename V>
void describeFields(V &visit, Tag<QuantizationSpec>) {
  visit("method", &QuantizationSpec::method, anything.must(), "how weights are packed");
  visit("bits", &QuantizationSpec::bits, Limits{.low = 0, .high = 8}, "gptq, awq: bits of a weight");
  visit("group_size", &QuantizationSpec::groupSize, Limits{.low = -1, .high = maxExtent},
        "gptq, awq: inputs that share a scale; -1: all");
  visit("block_rows", &QuantizationSpec::blockRows, natural, "fp8: rows that share a scale; 0: all");
  visit("block_cols", &QuantizationSpec::blockCols, natural, "fp8: columns that share a scale; 0: all");
  visit("ordered", &QuantizationSpec::ordered, anything, "gptq: groups in the order of activations");
  visit("zeros_less_one", &QuantizationSpec::zerosLessOne, anything, "gptq: zeros are stored less one");
  visit("excluded", &QuantizationSpec::excluded, anything, "modules that are stored plainly");
}

template <typename V>
void describeFields(V &visit, Tag<BlockSpec>) {
  visit("name", &BlockSpec::name, anything.must(), "what layers call this block");
  visit("residual", &BlockSpec::residual, anything, "how mixer and MLP meet the residual stream");
  visit("residual_scale", &BlockSpec::residualScale, factor, "multiplies what each half adds");
  visit("norm_after_residual", &BlockSpec::normAfterResidual, anything, "whether the norms apply to the sums");
  visit("residual_from_norm", &BlockSpec::residualFromNorm, anything,
        "whether the stream continues from the normed input");
  visit("attention_norm", &BlockSpec::attentionNorm, anything.always(), "norm of the mixer's input");
  visit("attention", &BlockSpec::attention, anything, "attention");
  visit("mamba", &BlockSpec::mamba, anything, "selective state space");
  visit("mamba2", &BlockSpec::mamba2, anything, "state-space duality");
  visit("short_conv", &BlockSpec::shortConv, anything, "gated short convolution");
  visit("delta_net", &BlockSpec::deltaNet, anything, "gated delta rule");
  visit("attention_post_norm", &BlockSpec::attentionPostNorm, anything, "norm of the mixer's result");
  visit("mlp_norm", &BlockSpec::mlpNorm, anything.always(), "norm of the MLP's input");
  visit("mlp", &BlockSpec::mlp, anything, "feed-forward network");
  visit("moe", &BlockSpec::moe, anything, "mixture of experts");
  visit("mlp_post_norm", &BlockSpec::mlpPostNorm, anything, "norm of the MLP's result");
}

template <typename V>
void describeFields(V &visit, Tag<ModelSpec>) {
  visit("family", &ModelSpec::family, anything.always(), "where the model comes from");
  visit("vocabulary", &ModelSpec::vocabulary, positiveInt.must(), "tokens, rows of the embedding");
  visit("hidden", &ModelSpec::hidden, positiveInt.must(), "width of the residual stream");
  visit("context", &ModelSpec::context, Limits{.low = 1, .high = 1e12, .required = true},
        "positions the model was made for");
  visit("dtype", &ModelSpec::dtype, anything.always(), "what the checkpoint stores");
  visit("quantization", &ModelSpec::quantization, anything, "how the checkpoint packs its linear weights");
  visit("bos_token", &ModelSpec::bosToken, tokenId, "first token of a text; -1: none");
  visit("eos_tokens", &ModelSpec::eosTokens, Limits{0, 2147483647, false}, "tokens that end a text");
  visit("embedding_scale", &ModelSpec::embeddingScale, factor, "multiplies the embedding");
  visit("embedding_width", &ModelSpec::embeddingWidth, natural, "columns of the embedding; 0: hidden");
  visit("embedding_norm", &ModelSpec::embeddingNorm, anything, "norm of the embedding");
  visit("learned_positions", &ModelSpec::learnedPositions, natural, "rows of the position table; 0: none");
  visit("position_offset", &ModelSpec::positionOffset, natural, "position p reads row p + position_offset");
  visit.layers("layers", &ModelSpec::layers, "blocks in order: names, and {\"repeat\": names, \"times\": n}");
  visit("blocks", &ModelSpec::blocks, anything.must(), "the kinds of layers");
  visit("final_norm", &ModelSpec::finalNorm, anything.always(), "norm before the head");
  visit("tied_head", &ModelSpec::tiedHead, anything.always(), "whether the head uses the embedding's weight");
  visit("head_bias", &ModelSpec::headBias, anything, "whether the head has a bias");
  visit("logit_scale", &ModelSpec::logitScale, factor, "multiplies the logits");
  visit("logit_softcap", &ModelSpec::logitSoftcap, nonNegative, "logits become softcap tanh(logit / softcap); 0: none");
  visit("transposed_linears", &ModelSpec::transposedLinears, anything,
        "whether the blocks' weights are stored [in, out]");
  visit("tensors", &ModelSpec::tensors, anything.must(), "role -> tensor name, with {layer}, {expert} and {head}");
}

} // namespace mcc::specjson
