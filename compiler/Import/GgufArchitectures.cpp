// The table of GGUF architectures: facts that their readers know by name and their files do not hold.
//
// Rows of q and k. Writers permute those of Llama and its kin (and OLMo's, Granite's), so that adjacent dimensions rotate
// together; GLM, Cohere and Ernie rotate adjacent ones by their definition, and the others keep Hugging Face's halves.
// Weights. Norms of Gemma and Nemotron have their +1 already; GPT-2's matrices are stored [out, in]; q, k and v of one
// tensor follow each other, whatever the order was in Bloom, GPT-NeoX and Falcon; Falcon-H1's multipliers are in its weights.
#include "compiler/Import/GgufArchitecture.h"

#include "compiler/Import/GgufRope.h"

#include <cmath>

namespace mcc {

using Pairing = RopeSpec::Pairing;
using Norm = NormSpec::Kind;

// Rules that the fields of GgufArchitecture do not cover -----------------------------------------------------------

/// Gemma: embeddings times sqrt(hidden).
static LayerRule adjustGemma(GgufKeys &, ModelSpec &spec, BlockSpec &) {
  spec.embeddingScale = std::sqrt(double(spec.hidden));
  return nullptr;
}

/// The largest models of Gemma 2 and 3 divide scores by the square root of another size than the head's.
static LayerRule adjustGemma2(GgufKeys &keys, ModelSpec &spec, BlockSpec &block, size_t layersOfLargest) {
  if (!keys.given("attention.scale") && spec.layers.size() == layersOfLargest)
    block.attention.scale = 1 / std::sqrt(double(spec.hidden) / double(block.attention.heads));
  return adjustGemma(keys, spec, block);
}

static LayerRule adjustGemma2Caps(GgufKeys &keys, ModelSpec &spec, BlockSpec &block) {
  block.attention.softcap = keys.number("attn_logit_softcapping", 50);
  spec.logitSoftcap = keys.number("final_logit_softcapping", 30);
  return adjustGemma2(keys, spec, block, 46);
}

/// Granite's multipliers; `logit_scale` divides.
static LayerRule adjustGranite(GgufKeys &keys, ModelSpec &spec, BlockSpec &block) {
  auto factor = [&](llvm::StringRef name) {
    double value = keys.number(name, 1);
    return value == 0 ? 1 : value;
  };
  spec.embeddingScale = factor("embedding_scale");
  block.residualScale = factor("residual_scale");
  spec.logitScale = 1 / factor("logit_scale");
  return nullptr;
}

static LayerRule adjustCohere(GgufKeys &keys, ModelSpec &spec, BlockSpec &) {
  spec.logitScale = keys.number("logit_scale", 0.0625);
  return nullptr;
}

/// Falcon: with two input norms the second is the attention's; with one, both halves read it.
static LayerRule adjustFalcon(GgufKeys &keys, ModelSpec &spec, BlockSpec &block) {
  if (!keys.anyLayers("attn_norm_2.weight", spec.layers.size()))
    return nullptr;
  block.residual = Residual::Parallel;
  block.mlpNorm = block.attentionNorm;
  spec.tensors["attention_norm"] = "blk.{layer}.attn_norm_2.weight";
  spec.tensors["mlp_norm"] = "blk.{layer}.attn_norm.weight";
  return nullptr;
}

static LayerRule adjustNeox(GgufKeys &keys, ModelSpec &, BlockSpec &block) {
  block.residual = keys.flag("use_parallel_residual", true) ? Residual::Parallel : Residual::Serial;
  return nullptr;
}

/// StableLM's layers without a second norm take both halves from the first.
static LayerRule adjustStablelm(GgufKeys &keys, ModelSpec &spec, BlockSpec &block) {
  keys.ignore({"use_parallel_residual"});
  if (!keys.anyLayers("ffn_norm.weight", spec.layers.size()))
    block.residual = Residual::ParallelOneNorm;
  return nullptr;
}

static LayerRule adjustMpt(GgufKeys &keys, ModelSpec &, BlockSpec &block) {
  if (double maxBias = keys.number("attention.max_alibi_bias", 0); maxBias != 0)
    block.attention.alibi = AlibiSpec{.maxBias = maxBias};
  return nullptr;
}

static LayerRule adjustBloom(GgufKeys &, ModelSpec &, BlockSpec &block) {
  block.attention.alibi.emplace();
  return nullptr;
}

static LayerRule adjustBitnet(GgufKeys &, ModelSpec &spec, BlockSpec &block) {
  block.attention.innerNorm = block.mlp.innerNorm = spec.finalNorm;
  return nullptr;
}

/// gpt-oss: clamped experts; its frequencies blend over whole and broken dimensions.
static LayerRule adjustGptOss(GgufKeys &, ModelSpec &, BlockSpec &block) {
  block.attention.rope->truncate = block.attention.rope->scaling != RopeSpec::Scaling::Yarn;
  if (block.moe) {
    block.moe->expert.activation = Activation::GeluQuick;
    block.moe->expert.clamp = 7;
    block.moe->expert.upOffset = 1;
  }
  return nullptr;
}

/// DeepSeek: latent attention. Newer files store the two halves of `attn_kv_b` apart, one of them transposed.
static LayerRule adjustDeepseek(GgufKeys &keys, ModelSpec &spec, BlockSpec &block) {
  AttentionSpec &attention = block.attention;
  attention.heads = attention.kvHeads = keys.sameForLayers("attention.head_count", 0, spec.layers.size());
  if (attention.heads < 1) {
    keys.refuse("attention.head_count", "is {0}; expected at least 1", attention.heads);
    return nullptr;
  }
  LatentSpec &latent = attention.latent.emplace();
  latent.queryRank = keys.integer("attention.q_lora_rank", 0);
  latent.kvRank = keys.required("attention.kv_lora_rank");
  latent.ropeDim = keys.required("rope.dimension_count");
  // Files made for attention over the latent itself give the sizes of a head under other names.
  attention.headDim = keys.integer("attention.key_length_mla", keys.integer("attention.key_length", 0));
  latent.valueDim = keys.integer("attention.value_length_mla", keys.integer("attention.value_length", 0));
  latent.nopeDim = attention.headDim - latent.ropeDim;
  latent.normEps = block.attentionNorm.eps;
  attention.rope = readGgufRope(keys, spec, Pairing::Adjacent, latent.ropeDim);
  const RopeSpec &rope = *attention.rope;
  double mscale = rope.mscaleAllDim != 0 && rope.factor > 1 ? 0.1 * rope.mscaleAllDim * std::log(rope.factor) + 1 : 1;
  attention.scale = mscale * mscale / std::sqrt(double(attention.headDim));
  keys.ignore({"attention.head_count_kv"});
  if (keys.anyLayers("attn_k_b.weight", spec.layers.size()))
    keys.refuse("attention.key_length_mla",
                "goes with 'attn_k_b' and 'attn_v_b' of every layer, which are not supported; convert the model with "
                "'attn_kv_b' in one piece");
  return nullptr;
}

static LayerRule adjustMamba(GgufKeys &keys, ModelSpec &spec, BlockSpec &block) {
  block.mlp = {};
  block.mlpNorm.kind = Norm::None;
  MambaSpec &mamba = block.mamba.emplace();
  mamba.inner = keys.required("ssm.inner_size");
  mamba.state = keys.required("ssm.state_size");
  mamba.timeRank = keys.required("ssm.time_step_rank");
  mamba.kernel = keys.required("ssm.conv_kernel");
  mamba.convBias = keys.anyLayers("ssm_conv1d.bias", spec.layers.size());
  mamba.bias = keys.anyLayers("ssm_in.bias", spec.layers.size());
  keys.ignore({"attention.head_count", "attention.head_count_kv"});
  return nullptr;
}

static Mamba2Spec readMamba2(GgufKeys &keys, const ModelSpec &spec) {
  Mamba2Spec mamba;
  mamba.inner = keys.required("ssm.inner_size");
  mamba.heads = keys.required("ssm.time_step_rank");
  mamba.headDim = mamba.inner / mamba.heads;
  mamba.groups = std::max<int64_t>(keys.integer("ssm.group_count", 1), 1);
  mamba.state = keys.required("ssm.state_size");
  mamba.kernel = keys.required("ssm.conv_kernel");
  mamba.convBias = keys.anyLayers("ssm_conv1d.bias", spec.layers.size());
  mamba.inBias = keys.anyLayers("ssm_in.bias", spec.layers.size());
  mamba.outBias = keys.anyLayers("ssm_out.bias", spec.layers.size());
  if (keys.anyLayers("ssm_norm.weight", spec.layers.size())) {
    mamba.norm = spec.finalNorm;
    mamba.normGroups = mamba.groups;
  }
  return mamba;
}

static LayerRule adjustMamba2(GgufKeys &keys, ModelSpec &spec, BlockSpec &block) {
  block.mlp = {};
  block.mlpNorm.kind = Norm::None;
  block.mamba2 = readMamba2(keys, spec);
  keys.ignore({"attention.head_count", "attention.head_count_kv"});
  return nullptr;
}

static LayerRule adjustFalconH1(GgufKeys &keys, ModelSpec &spec, BlockSpec &block) {
  block.mamba2 = readMamba2(keys, spec);
  return nullptr;
}

/// LFM2: a layer without key heads is a short convolution. Its last norm has the embedding norm's name.
static LayerRule adjustLfm2(GgufKeys &keys, ModelSpec &spec, BlockSpec &) {
  if (spec.embeddingNorm)
    spec.tensors["final_norm"] = "token_embd_norm.weight";
  spec.embeddingNorm.reset();
  ShortConvSpec conv;
  conv.kernel = keys.required("shortconv.l_cache");
  conv.bias = keys.anyLayers("shortconv.conv.bias", spec.layers.size());
  std::vector<int64_t> heads = keys.perLayer("attention.head_count_kv", 1, spec.layers.size());
  return [=](int64_t layer, BlockSpec &made) {
    made.name = heads[layer] == 0 ? "conv" : "attention";
    if (heads[layer] != 0)
      return;
    made.attention = {};
    made.shortConv = conv;
  };
}

// The table --------------------------------------------------------------------------------------------------------

using Names = std::vector<std::pair<llvm::StringRef, llvm::StringRef>>;

static const Names oneInputNorm = {{"mlp_norm", ""}};
static const Names normBeforeMlp = {{"mlp_norm", "post_attention_norm.weight"}, {"attention_post_norm", ""}};
static const Names mambaNames = {{"mamba_in", "ssm_in.weight"},     {"mamba_conv", "ssm_conv1d.weight"},
                                 {"mamba_x", "ssm_x.weight"},       {"mamba_dt", "ssm_dt.weight"},
                                 {"mamba_dt_bias", "ssm_dt.bias"},  {"mamba_a_log", "ssm_a"},
                                 {"mamba_d", "ssm_d"},              {"mamba_norm", "ssm_norm.weight"},
                                 {"mamba_out", "ssm_out.weight"}};

static void addLlamaKin(std::vector<GgufArchitecture> &all) {
  all.push_back({.name = "llama", .pairing = Pairing::Adjacent, .normalizesExperts = true});
  all.push_back({.name = "arcee", .pairing = Pairing::Adjacent, .activation = Activation::Relu2, .gated = false});
  all.push_back({.name = "smollm3", .pairing = Pairing::Adjacent, .noRopePeriod = 4});
  all.push_back({.name = "granite", .pairing = Pairing::Adjacent, .adjust = adjustGranite});
  all.push_back(
      {.name = "granitemoe", .pairing = Pairing::Adjacent, .normalizesExperts = true, .adjust = adjustGranite});
  all.push_back({.name = "ernie4_5", .pairing = Pairing::Adjacent});
  all.push_back({.name = "apertus",
                 .activation = Activation::Xielu,
                 .gated = false,
                 .tensors = {{"activation_alpha_p", "xielu.alpha_p"},
                             {"activation_alpha_n", "xielu.alpha_n"},
                             {"activation_beta", "xielu.beta"},
                             {"activation_eps", "xielu.eps"}}});
  all.push_back({.name = "hunyuan-dense", .normsAfterRope = true});
  all.push_back({.name = "seed_oss", .tensors = normBeforeMlp});
  all.push_back({.name = "bitnet",
                 .tensors = {{"attention_inner_norm", "attn_sub_norm.weight"}, {"mlp_inner_norm", "ffn_sub_norm.weight"}},
                 .adjust = adjustBitnet});
  all.push_back({.name = "exaone4", .inputNorms = false, .postNorms = true, .windowPeriod = 4, .fullLayersRotate = false});
  all.push_back({.name = "chatglm", .pairing = Pairing::Adjacent, .joinsGateUp = true});
  all.push_back({.name = "glm4", .pairing = Pairing::Adjacent, .postNorms = true, .joinsGateUp = true});
  all.push_back({.name = "qwen2"});
  all.push_back({.name = "qwen3"});
  all.push_back({.name = "qwen2moe"});
  all.push_back({.name = "qwen3moe", .normalizesExperts = true});
  all.push_back({.name = "gpt-oss",
                 .scoring = MoeSpec::Scoring::SelectedSoftmax,
                 .windowPeriod = 2,
                 .tensors = normBeforeMlp,
                 .adjust = adjustGptOss});
  all.push_back({.name = "deepseek2",
                 .pairing = Pairing::Adjacent,
                 .hasAttention = false,
                 .tensors = {{"q_a", "attn_q_a.weight"},
                             {"q_a_norm", "attn_q_a_norm.weight"},
                             {"q_b", "attn_q_b.weight"},
                             {"kv_a", "attn_kv_a_mqa.weight"},
                             {"kv_a_norm", "attn_kv_a_norm.weight"},
                             {"kv_b", "attn_kv_b.weight"}},
                 .adjust = adjustDeepseek});
}

static void addGemmaAndOlmo(std::vector<GgufArchitecture> &all) {
  all.push_back({.name = "gemma", .activation = Activation::GeluTanh, .adjust = adjustGemma});
  all.push_back({.name = "gemma2",
                 .postNorms = true,
                 .activation = Activation::GeluTanh,
                 .windowPeriod = 2,
                 .adjust = adjustGemma2Caps});
  all.push_back({.name = "gemma3",
                 .postNorms = true,
                 .activation = Activation::GeluTanh,
                 .windowPeriod = 6,
                 .slidingUnscaled = true,
                 .slidingTheta = 10000,
                 .adjust = [](GgufKeys &keys, ModelSpec &spec, BlockSpec &block) {
                   return adjustGemma2(keys, spec, block, 62);
                 }});
  all.push_back({.name = "olmo", .pairing = Pairing::Adjacent, .norm = Norm::Layer, .plainNorms = true});
  all.push_back(
      {.name = "olmo2", .inputNorms = false, .postNorms = true, .windowPeriod = 4, .slidingUnscaled = true});
  all.push_back({.name = "olmoe"});
}

static void addLayerNormed(std::vector<GgufArchitecture> &all) {
  GgufArchitecture gpt{.name = "gpt2", .hasRope = false, .norm = Norm::Layer, .activation = Activation::GeluTanh, .gated = false};
  all.push_back(gpt);
  GgufArchitecture gptj = gpt;
  gptj.name = "gptj";
  gptj.hasRope = true;
  gptj.pairing = Pairing::Adjacent;
  gptj.residual = Residual::ParallelOneNorm;
  gptj.tensors = oneInputNorm;
  all.push_back(gptj);
  GgufArchitecture phi2 = gptj;
  phi2.name = "phi2";
  phi2.pairing = Pairing::Half;
  all.push_back(phi2);
  GgufArchitecture neox = gpt;
  neox.name = "gptneox";
  neox.hasRope = true;
  neox.activation = Activation::GeluErf;
  neox.adjust = adjustNeox;
  all.push_back(neox);
  GgufArchitecture falcon = phi2;
  falcon.name = "falcon";
  falcon.activation = Activation::GeluErf;
  falcon.adjust = adjustFalcon;
  all.push_back(falcon);
  GgufArchitecture mpt = gpt;
  mpt.name = "mpt";
  mpt.activation = Activation::GeluErf;
  mpt.adjust = adjustMpt;
  all.push_back(mpt);
  GgufArchitecture bloom = gpt;
  bloom.name = "bloom";
  bloom.adjust = adjustBloom;
  all.push_back(bloom);
  GgufArchitecture starcoder2 = gpt;
  starcoder2.name = "starcoder2";
  starcoder2.hasRope = true;
  all.push_back(starcoder2);
  GgufArchitecture nemotron = starcoder2;
  nemotron.name = "nemotron";
  nemotron.activation = Activation::Relu2;
  all.push_back(nemotron);
  all.push_back({.name = "stablelm", .norm = Norm::Layer, .adjust = adjustStablelm});
  GgufArchitecture cohere{.name = "command-r",
                          .pairing = Pairing::Adjacent,
                          .norm = Norm::Layer,
                          .residual = Residual::ParallelOneNorm,
                          .tensors = oneInputNorm,
                          .adjust = adjustCohere};
  all.push_back(cohere);
  cohere.name = "cohere2";
  cohere.windowPeriod = 4;
  cohere.fullLayersRotate = false;
  all.push_back(cohere);
  all.push_back({.name = "phi3", .joinsGateUp = true});
}

static void addRecurrent(std::vector<GgufArchitecture> &all) {
  all.push_back({.name = "mamba", .hasAttention = false, .tensors = mambaNames, .adjust = adjustMamba});
  all.push_back({.name = "mamba2", .hasAttention = false, .tensors = mambaNames, .adjust = adjustMamba2});
  all.push_back({.name = "falcon-h1", .tensors = mambaNames, .adjust = adjustFalconH1});
  all.push_back({.name = "lfm2",
                 .tensors = {{"conv_in", "shortconv.in_proj.weight"},
                             {"conv", "shortconv.conv.weight"},
                             {"conv_out", "shortconv.out_proj.weight"}},
                 .adjust = adjustLfm2});
}

const std::vector<GgufArchitecture> &ggufArchitectures() {
  static const std::vector<GgufArchitecture> all = [] {
    std::vector<GgufArchitecture> made;
    addLlamaKin(made);
    addGemmaAndOlmo(made);
    addLayerNormed(made);
    addRecurrent(made);
    return made;
  }();
  return all;
}

} // namespace mcc
