// Every family: its spec names exactly the tensors that transformers saved, with their shapes; and what sets each
// apart.
#include "spec_files.h"

#include "doctest/doctest.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

using namespace mcc;
using namespace mcc::test;

static nlohmann::json readModel(const std::filesystem::path &path) {
  std::ifstream stream(path);
  return nlohmann::json::parse(std::string{std::istreambuf_iterator<char>(stream), {}});
}

/// Returns the config of a family as stored beside the tests.
static nlohmann::json configOf(const std::string &name) {
  return readModel(std::filesystem::path(MCC_TEST_DATA) / "configs" / (name + ".json"))["config"];
}

/// Returns the spec of a family's config with some keys changed; null removes a key.
static ModelSpec specOf(const std::string &name, const nlohmann::json &changes = nlohmann::json::object()) {
  nlohmann::json config = configOf(name);
  for (const auto &[key, value] : changes.items()) {
    if (value == "REMOVED")
      config.erase(key);
    else
      config[key] = value;
  }
  return configSpec(config.dump());
}

static std::string errorOf(const std::string &name, const nlohmann::json &changes) {
  nlohmann::json config = configOf(name);
  config.update(changes);
  return configError(config.dump());
}

/// Returns `get` of every layer's block.
template <typename F>
static auto perLayer(const ModelSpec &spec, F get) {
  std::vector<decltype(get(spec.block(0)))> list;
  for (size_t layer = 0; layer < spec.layers.size(); ++layer)
    list.push_back(get(spec.block(int64_t(layer))));
  return list;
}
static std::vector<int64_t> windowsOf(const ModelSpec &spec) {
  return perLayer(spec, [](const BlockSpec &block) { return block.attention.window; });
}
static std::vector<int> rotates(const ModelSpec &spec) {
  return perLayer(spec, [](const BlockSpec &block) { return int(block.attention.rope.has_value()); });
}
using Windows = std::vector<int64_t>;
using Flags = std::vector<int>;

TEST_CASE("every family names exactly the tensors of its checkpoint, with their shapes") {
  int families = 0;
  for (const auto &entry : std::filesystem::directory_iterator(std::filesystem::path(MCC_TEST_DATA) / "configs")) {
    if (entry.path().extension() != ".json")
      continue;
    CAPTURE(entry.path().filename().string());
    nlohmann::json model = readModel(entry.path());
    ModelSpec spec = configSpec(model["config"].dump());
    std::map<std::string, std::vector<int64_t>> stored = model["tensors"], needed;
    for (const RequiredTensor &tensor : requiredTensors(spec))
      needed[tensor.name] = tensor.shape;
    CHECK(needed == stored);
    ++families;
  }
  CHECK(families == 57);
}

TEST_CASE("every family's spec survives printing and reading") {
  for (const auto &entry : std::filesystem::directory_iterator(std::filesystem::path(MCC_TEST_DATA) / "configs")) {
    if (entry.path().extension() != ".json")
      continue;
    CAPTURE(entry.path().filename().string());
    ModelSpec spec = configSpec(readModel(entry.path())["config"].dump());
    std::string text = printSpec(spec);
    CHECK(llvm::cantFail(readSpec(json(text))) == spec);
  }
}

TEST_CASE("weights of packed tensors are covered once: their sources add up to the whole") {
  for (const char *name : {"phi3", "gpt2", "gpt-neox", "bloom", "falcon-mq", "falcon-new", "mpt", "glm"}) {
    CAPTURE(name);
    ModelSpec spec = specOf(name);
    std::map<std::string, int64_t> rows, covered;
    for (const RequiredTensor &tensor : requiredTensors(spec))
      rows[tensor.name] = tensor.shape[spec.transposedLinears ? tensor.shape.size() - 1 : 0];
    for (const char *role : {"q", "k", "v", "gate", "up"}) {
      if (role == std::string("gate") && !spec.block(0).mlp.gated)
        continue;
      WeightSource source = weightSource(spec, role, 0);
      if (!source.whole)
        covered[source.tensor] += source.rows * source.groups;
    }
    CHECK(!covered.empty());
    for (const auto &[tensor, count] : covered)
      CHECK(count == rows[tensor]);
  }
}

TEST_CASE("gemma: scaled embedding, weights about zero, tanh GELU whatever hidden_act says") {
  ModelSpec spec = specOf("gemma");
  CHECK(spec.embeddingScale == 8);
  CHECK(spec.finalNorm.weightOffset == 1);
  CHECK(spec.tiedHead);
  CHECK(spec.block(0).mlp.activation == Activation::GeluTanh);
  CHECK(specOf("gemma", {{"hidden_act", "gelu"}, {"hidden_activation", nullptr}}).block(0).mlp.activation ==
        Activation::GeluTanh);
  CHECK(specOf("gemma", {{"hidden_act", "silu"}, {"hidden_activation", nullptr}}).block(0).mlp.activation ==
        Activation::Silu);
}

TEST_CASE("gemma2: soft caps, norms on both sides, every other layer sliding") {
  ModelSpec spec =
      specOf("gemma2",
             {{"attn_logit_softcapping", 25.0}, {"final_logit_softcapping", "REMOVED"}, {"query_pre_attn_scalar", 64}});
  CHECK(spec.block(0).attention.softcap == 25);
  CHECK(spec.logitSoftcap == 30);
  CHECK(spec.block(0).attention.scale == 0.125);
  CHECK(spec.block(0).attentionPostNorm->weightOffset == 1);
  CHECK(spec.block(0).mlpPostNorm.has_value());
  std::vector<int64_t> windows = windowsOf(specOf("gemma2", {{"layer_types", "REMOVED"}}));
  for (size_t layer = 0; layer < windows.size(); ++layer)
    CHECK((windows[layer] != 0) == (layer % 2 == 0));
}

TEST_CASE("gemma3: five sliding layers with a base of their own, then a full one") {
  ModelSpec spec = specOf("gemma3");
  CHECK(windowsOf(spec) == Windows{10, 10, 10, 10, 10, 0});
  CHECK(spec.block(0).attention.rope->theta == 10000);
  CHECK(spec.block(5).attention.rope->theta == 1000000);
  CHECK(spec.block(0).attention.qkNorm->weightOffset == 1);
  // transformers 4: one scaling, of the full layers alone.
  ModelSpec old = specOf("gemma3", {{"rope_parameters", "REMOVED"},
                                    {"rope_theta", 5e5},
                                    {"rope_local_base_freq", 2e4},
                                    {"layer_types", "REMOVED"},
                                    {"rope_scaling", {{"rope_type", "linear"}, {"factor", 8.0}}}});
  CHECK(windowsOf(old) == windowsOf(spec));
  CHECK(old.block(0).attention.rope->theta == 20000);
  CHECK(old.block(0).attention.rope->scaling == RopeSpec::Scaling::None);
  CHECK(old.block(5).attention.rope->theta == 500000);
  CHECK(old.block(5).attention.rope->factor == 8);
  CHECK(errorOf("gemma3", {{"use_bidirectional_attention", true}}).find("'use_bidirectional_attention' is true") !=
        std::string::npos);
}

TEST_CASE("layers without rotation") {
  CHECK(rotates(specOf("smollm3")) == Flags{1, 1, 1, 0, 1});
  CHECK(rotates(specOf("smollm3", {{"no_rope_layers", "REMOVED"}, {"no_rope_layer_interval", 2}})) ==
        Flags{1, 0, 1, 0, 1});
  CHECK(rotates(specOf("cohere2")) == Flags{1, 1, 1, 0, 1});
  CHECK(windowsOf(specOf("cohere2", {{"layer_types", "REMOVED"}})) == Windows{10, 10, 10, 0, 10});
  CHECK(rotates(specOf("exaone4")) == Flags{1, 1, 1, 0});
  CHECK(windowsOf(specOf("exaone4", {{"layer_types", "REMOVED"}, {"sliding_window_pattern", "LLLG"}})) ==
        Windows{12, 12, 12, 0});
  // Without a window Exaone 4 rotates everywhere.
  CHECK(rotates(specOf("exaone4", {{"sliding_window", nullptr}, {"layer_types", "REMOVED"}})) == Flags{1, 1, 1, 1});
}

TEST_CASE("partial and adjacent rotation") {
  auto rope = [](const char *name) { return *specOf(name).block(0).attention.rope; };
  CHECK(rope("phi").dims == 8);
  CHECK(rope("phi").pairing == RopeSpec::Pairing::Half);
  CHECK(rope("gpt-neox").dims == 4);
  CHECK(rope("gpt-neox-serial").dims == 8);
  CHECK(rope("stablelm").dims == 4);
  CHECK(rope("nemotron").dims == 8);
  CHECK(rope("gptj").dims == 8);
  CHECK(rope("gptj").pairing == RopeSpec::Pairing::Adjacent);
  CHECK(rope("glm4").dims == 8);
  for (const char *name : {"glm", "glm4", "cohere", "ernie4_5", "helium", "deepseek-v2", "deepseek-v3"})
    CHECK_MESSAGE(rope(name).pairing == RopeSpec::Pairing::Adjacent, name);
  // Defaults of the family where the key is absent, and the old names of Pythia's keys.
  CHECK(specOf("phi", {{"partial_rotary_factor", "REMOVED"}, {"rope_parameters", "REMOVED"}})
            .block(0)
            .attention.rope->dims == 8);
  ModelSpec pythia =
      specOf("gpt-neox", {{"rope_parameters", "REMOVED"}, {"rotary_pct", 0.5}, {"rotary_emb_base", 20000}});
  CHECK(pythia.block(0).attention.rope->dims == 8);
  CHECK(pythia.block(0).attention.rope->theta == 20000);
}

TEST_CASE("how the halves of a block meet the stream") {
  auto residual = [](const char *name) { return specOf(name).block(0).residual; };
  for (const char *name : {"cohere", "cohere2", "phi", "gptj", "falcon-mq", "stablelm-qknorm"})
    CHECK_MESSAGE(residual(name) == Residual::ParallelOneNorm, name);
  for (const char *name : {"gpt-neox", "falcon-new"})
    CHECK_MESSAGE(residual(name) == Residual::Parallel, name);
  for (const char *name : {"gpt-neox-serial", "stablelm", "llama", "opt"})
    CHECK_MESSAGE(residual(name) == Residual::Serial, name);
  for (const char *name : {"olmo2", "olmo3", "exaone4"}) {
    ModelSpec spec = specOf(name);
    CHECK(spec.block(0).attentionNorm.kind == NormSpec::Kind::None);
    CHECK(spec.block(0).attentionPostNorm.has_value());
  }
  CHECK(specOf("granite").block(0).residualScale == 0.3);
  CHECK(specOf("bloom", {{"apply_residual_connection_post_layernorm", true}}).block(0).residualFromNorm);
}

TEST_CASE("norms of q and k, of each kind") {
  auto attention = [](const char *name) { return specOf(name).block(0).attention; };
  using Scope = AttentionSpec::NormScope;
  for (const char *name : {"olmo2", "olmo3", "olmoe"})
    CHECK_MESSAGE(attention(name).qkNormScope == Scope::All, name);
  CHECK(attention("stablelm-qknorm").qkNormScope == Scope::HeadOwnTensors);
  CHECK(attention("stablelm-qknorm").qkNorm->kind == NormSpec::Kind::Layer);
  CHECK(attention("hunyuan").qkNormAfterRope);
  CHECK(!attention("qwen3").qkNormAfterRope);
  ModelSpec cohere = specOf("cohere", {{"use_qk_norm", true}});
  CHECK(cohere.block(0).attention.qkNormScope == Scope::HeadOwnWeights);
  CHECK(!attention("cohere").qkNorm);
  CHECK(!attention("llama").qkNorm);
}

TEST_CASE("norms without weights, without biases, with offsets") {
  CHECK(!specOf("olmo").finalNorm.hasWeight);
  CHECK(specOf("olmo").finalNorm.kind == NormSpec::Kind::Layer);
  CHECK(specOf("olmo").block(0).attention.qkvClip == 2);
  CHECK(!specOf("cohere").finalNorm.hasBias);
  CHECK(specOf("cohere").finalNorm.kind == NormSpec::Kind::Layer);
  CHECK(specOf("nemotron").finalNorm.weightOffset == 1);
  CHECK(specOf("nemotron").finalNorm.hasBias);
  CHECK(specOf("qwen3-next").finalNorm.weightOffset == 1);
  CHECK(specOf("qwen3-next").block(0).deltaNet->norm.weightOffset == 0);
  CHECK(specOf("glm4").finalNorm.eps == 1.5625e-7);
}

TEST_CASE("multipliers") {
  ModelSpec granite = specOf("granite");
  CHECK(granite.embeddingScale == 6);
  CHECK(granite.logitScale == 0.25);
  CHECK(granite.block(0).attention.scale == 0.1);
  CHECK(specOf("cohere").logitScale == 0.25);
  ModelSpec falcon = specOf("falcon-h1", {{"key_multiplier", 0.5},
                                          {"attention_in_multiplier", 2.0},
                                          {"attention_out_multiplier", 3.0},
                                          {"mlp_multipliers", {0.25, 4.0}},
                                          {"ssm_multipliers", {1, 2, 3, 4, 5}},
                                          {"ssm_in_multiplier", 6.0},
                                          {"ssm_out_multiplier", 7.0},
                                          {"lm_head_multiplier", 8.0},
                                          {"embedding_multiplier", 9.0}});
  const BlockSpec &block = falcon.block(0);
  CHECK(block.attention.scale == 0.125);
  CHECK(block.attention.inputScale == 2);
  CHECK(block.attention.outputScale == 3);
  CHECK(block.mlp.gateScale == 0.25);
  CHECK(block.mlp.outputScale == 4);
  CHECK(block.mamba2->partScales == std::vector<double>{1, 2, 3, 4, 5});
  CHECK(block.mamba2->inputScale == 6);
  CHECK(block.mamba2->outputScale == 7);
  CHECK(falcon.logitScale == 8);
  CHECK(falcon.embeddingScale == 9);
}

TEST_CASE("positions: learned, with an offset, and linear biases") {
  CHECK(specOf("gpt2").learnedPositions == 128);
  CHECK(specOf("gpt2").positionOffset == 0);
  CHECK(specOf("opt").learnedPositions == 130);
  CHECK(specOf("opt").positionOffset == 2);
  CHECK(!specOf("gpt2").block(0).attention.rope);
  CHECK(!specOf("bloom").block(0).attention.alibi->scaled);
  CHECK(specOf("mpt").block(0).attention.alibi->maxBias == 8);
  ModelSpec falcon = specOf("falcon-mq", {{"alibi", true}});
  CHECK(falcon.block(0).attention.alibi->scaled);
  CHECK(falcon.block(0).attention.alibi->rounded);
  CHECK(!falcon.block(0).attention.rope);
}

TEST_CASE("gpt-neo: no attention scale, local layers") {
  ModelSpec spec = specOf("gpt-neo");
  CHECK(spec.block(0).attention.scale == 1);
  CHECK(windowsOf(spec) == Windows{0, 8, 0, 8});
  CHECK(errorOf("gpt-neo", {{"attention_types", nlohmann::json::parse(R"([[["global", "local"], 3]])")}})
            .find("gives 6 layers; the model has 4") != std::string::npos);
  CHECK(errorOf("gpt-neo", {{"attention_types", nlohmann::json::parse(R"([[["global", "lcal"], 2]])")}})
            .find("has \"lcal\"") != std::string::npos);
  CHECK(errorOf("gpt-neo", {{"attention_types", nlohmann::json::parse(R"([[["global"], 1000000000]])")}}) != "");
}

TEST_CASE("gpt2: scores divided by the layer's number") {
  std::vector<double> scales = perLayer(specOf("gpt2", {{"scale_attn_by_inverse_layer_idx", true}}),
                                        [](const BlockSpec &block) { return block.attention.scale; });
  CHECK(scales == std::vector<double>{0.25, 0.125});
  CHECK(specOf("gpt2", {{"scale_attn_weights", false}}).block(0).attention.scale == 1);
}

TEST_CASE("opt: projections beside a narrower embedding, norms after the sum") {
  ModelSpec narrow = specOf("opt", {{"word_embed_proj_dim", 32}, {"do_layer_norm_before", false}});
  CHECK(narrow.embeddingWidth == 32);
  CHECK(narrow.block(0).normAfterResidual);
  CHECK(narrow.finalNorm.kind == NormSpec::Kind::None);
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const RequiredTensor &tensor : requiredTensors(narrow))
    shapes[tensor.name] = tensor.shape;
  CHECK(shapes["model.decoder.project_in.weight"] == std::vector<int64_t>{64, 32});
  CHECK(shapes["model.decoder.project_out.weight"] == std::vector<int64_t>{32, 64});
  CHECK(shapes["model.decoder.embed_tokens.weight"] == std::vector<int64_t>{192, 32});
  CHECK(!shapes.count("model.decoder.final_layer_norm.weight"));
}

TEST_CASE("routers: renormalised only where told") {
  auto moe = [](const char *name, nlohmann::json changes = nlohmann::json::object()) {
    ModelSpec spec = specOf(name, changes);
    return *spec.block(int64_t(spec.layers.size()) - 1).moe;
  };
  CHECK(moe("mixtral").normalize);
  CHECK(moe("mixtral").scoring == MoeSpec::Scoring::Softmax);
  CHECK(!moe("qwen2-moe").normalize);
  CHECK(moe("qwen2-moe").sharedGate);
  CHECK(moe("qwen2-moe").shared.width == 64);
  CHECK(moe("qwen3-moe").normalize);
  CHECK(!moe("qwen3-moe", {{"norm_topk_prob", "REMOVED"}}).normalize);
  CHECK(!moe("olmoe", {{"norm_topk_prob", "REMOVED"}}).normalize);
  CHECK(moe("granitemoe").scoring == MoeSpec::Scoring::SelectedSoftmax);
  MoeSpec gptOss = moe("gpt-oss");
  CHECK(gptOss.scoring == MoeSpec::Scoring::SelectedSoftmax);
  CHECK(gptOss.routerBias);
  CHECK(gptOss.expert.clamp == 7);
  CHECK(gptOss.expert.upOffset == 1);
  CHECK(gptOss.expert.activation == Activation::GeluQuick);
  MoeSpec deepseek = moe("deepseek-v3");
  CHECK(deepseek.scoring == MoeSpec::Scoring::Sigmoid);
  CHECK(deepseek.selectionBias);
  CHECK(deepseek.groups == 4);
  CHECK(deepseek.groupsPerToken == 2);
  CHECK(deepseek.groupScore == MoeSpec::GroupScore::TopTwoSum);
  CHECK(deepseek.scale == 2.5);
  MoeSpec grouped = moe(
      "deepseek-v2",
      {{"topk_method", "group_limited_greedy"}, {"n_group", 2}, {"topk_group", 1}, {"routed_scaling_factor", 16.0}});
  CHECK(grouped.groups == 2);
  CHECK(grouped.groupScore == MoeSpec::GroupScore::Max);
  CHECK(grouped.scale == 16);
  CHECK(moe("deepseek-v2").groups == 1);
}

TEST_CASE("which layers are sparse") {
  auto sparse = [](const char *name, nlohmann::json changes) {
    return perLayer(specOf(name, changes), [](const BlockSpec &block) { return int(block.moe.has_value()); });
  };
  CHECK(sparse("deepseek-v3", nlohmann::json::object()) == Flags{0, 1});
  CHECK(sparse("qwen3-moe", {{"mlp_only_layers", {1}}}) == Flags{1, 0});
  CHECK(sparse("qwen3-moe", {{"decoder_sparse_step", 2}}) == Flags{0, 1});
  CHECK(sparse("qwen3-next", {{"mlp_only_layers", {0, 3}}}) == Flags{0, 1, 1, 0});
}

TEST_CASE("latent attention: dimensions, one rotated key, yarn's scale") {
  const AttentionSpec plain = specOf("deepseek-v3").block(0).attention;
  CHECK(plain.headDim == 24);
  CHECK(plain.latent->queryRank == 24);
  CHECK(plain.latent->kvRank == 32);
  CHECK(plain.rope->dims == 8);
  CHECK(plain.scale == 1 / std::sqrt(24.0));
  CHECK(specOf("deepseek-v2").block(0).attention.latent->queryRank == 0);
  CHECK(specOf("deepseek-v3", {{"rope_interleave", false}}).block(0).attention.rope->pairing ==
        RopeSpec::Pairing::Half);
  nlohmann::json yarn = {{"rope_type", "yarn"}, {"rope_theta", 10000.0}, {"factor", 40.0},
                         {"mscale", 1.0},       {"mscale_all_dim", 1.0}, {"original_max_position_embeddings", 64}};
  double mscale = 0.1 * std::log(40.0) + 1;
  CHECK(specOf("deepseek-v3", {{"rope_parameters", yarn}}).block(0).attention.scale ==
        doctest::Approx(mscale * mscale / std::sqrt(24.0)).epsilon(1e-14));
  CHECK(modelSize(specOf("deepseek-v3")).cacheElems == 2 * 2 * 4 * 24); // cached expanded
}

TEST_CASE("attention sinks, gates, inner norms") {
  CHECK(specOf("gpt-oss").block(0).attention.sinks);
  CHECK(windowsOf(specOf("gpt-oss", {{"layer_types", "REMOVED"}})) == Windows{12, 0, 12, 0});
  CHECK(specOf("gpt-oss").block(0).attention.rope->truncate == false);
  CHECK(specOf("gpt-oss", {{"rope_parameters", "REMOVED"}}).block(0).attention.rope->factor == 32);
  CHECK(specOf("qwen3-next").block(3).attention.outputGate);
  CHECK(specOf("bitnet").block(0).attention.innerNorm.has_value());
  CHECK(specOf("bitnet").block(0).mlp.innerNorm.has_value());
  CHECK(specOf("bitnet").block(0).mlp.activation == Activation::Relu2);
}

TEST_CASE("recurrent mixers") {
  ModelSpec mamba = specOf("mamba", {{"time_step_rank", "auto"}});
  CHECK(mamba.block(0).attention.heads == 0);
  CHECK(mamba.block(0).mamba->timeRank == 4);
  CHECK(mamba.block(0).mlp.width == 0);
  CHECK(modelSize(mamba).cacheElems == 0);
  CHECK(modelSize(mamba).stateElems == 2 * 128 * (8 + 3));
  ModelSpec mamba2 = specOf("mamba2");
  CHECK(mamba2.block(0).mamba2->heads == 8);
  CHECK(mamba2.block(0).mamba2->norm.has_value());
  CHECK(!mamba2.block(0).mamba2->normBeforeGate);
  CHECK(!mamba2.block(0).mamba2->timeMax);
  CHECK(specOf("mamba2", {{"time_step_limit", {0.001, 0.1}}}).block(0).mamba2->timeMax == 0.1);
  ModelSpec hybrid = specOf("falcon-h1", {{"mamba_rms_norm", true}, {"mamba_d_head", "auto"}});
  CHECK(hybrid.block(0).attention.heads == 4);
  CHECK(hybrid.block(0).mamba2->headDim == 16);
  CHECK(hybrid.block(0).mamba2->normBeforeGate);
  CHECK(!specOf("falcon-h1").block(0).mamba2->norm);
  ModelSpec lfm = specOf("lfm2");
  CHECK(lfm.block(0).shortConv->kernel == 3);
  CHECK(lfm.block(0).attention.heads == 0);
  CHECK(lfm.block(2).attention.heads == 4);
  CHECK(specOf("lfm2", {{"block_auto_adjust_ff_dim", true}}).block(0).mlp.width == 256);
  CHECK(specOf("lfm2", {{"layer_types", "REMOVED"}, {"full_attn_idxs", {1}}}).block(1).attention.heads == 4);
  ModelSpec next = specOf("qwen3-next");
  CHECK(next.block(0).deltaNet->valueHeads == 4);
  CHECK(next.block(3).attention.heads == 4);
  CHECK(errorOf("mamba", {{"hidden_act", "gelu"}}).find("only 'silu' is supported") != std::string::npos);
}

TEST_CASE("phi3: longrope by the family's original context, and what it does not take") {
  nlohmann::json factors = nlohmann::json::array();
  for (int i = 0; i < 8; ++i)
    factors.push_back(1 + i);
  nlohmann::json scaling = {{"type", "su"}, {"short_factor", factors}, {"long_factor", factors}};
  ModelSpec spec =
      specOf("phi3", {{"rope_parameters", "REMOVED"}, {"rope_scaling", scaling}, {"max_position_embeddings", 131072}});
  const RopeSpec &rope = *spec.block(0).attention.rope;
  CHECK(rope.scaling == RopeSpec::Scaling::LongRope);
  CHECK(rope.originalContext == 4096);
  CHECK(rope.factor == 32);
  CHECK(rope.shortFactors.size() == 8);
  ModelSpec absent = specOf("phi3", {{"rope_parameters", "REMOVED"},
                                     {"rope_scaling", scaling},
                                     {"max_position_embeddings", 131072},
                                     {"original_max_position_embeddings", "REMOVED"}});
  CHECK(absent == spec);
  CHECK(errorOf("phi3", {{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}}})
            .find("does not know; known are 'default' and 'longrope'") != std::string::npos);
}

TEST_CASE("hunyuan: alpha is another base") {
  ModelSpec spec = specOf("hunyuan", {{"rope_parameters", "REMOVED"},
                                      {"rope_scaling", {{"type", "dynamic"}, {"alpha", 1000.0}, {"factor", 1.0}}}});
  const RopeSpec &rope = *spec.block(0).attention.rope;
  CHECK(rope.scaling == RopeSpec::Scaling::None);
  CHECK(rope.theta == doctest::Approx(10000 * std::pow(1000.0, 16.0 / 14)).epsilon(1e-14));
}

TEST_CASE("olmo3: only full layers are stretched") {
  ModelSpec spec = specOf(
      "olmo3", {{"rope_parameters", "REMOVED"},
                {"rope_scaling", {{"rope_type", "yarn"}, {"factor", 8.0}, {"original_max_position_embeddings", 64}}}});
  CHECK(spec.block(0).attention.rope->scaling == RopeSpec::Scaling::None);
  CHECK(spec.block(3).attention.rope->scaling == RopeSpec::Scaling::Yarn);
  CHECK(spec.block(0).attention.rope->theta == 500000);
}

TEST_CASE("falcon: the old names of keys and types") {
  nlohmann::json old = {
      {"model_type", "RefinedWeb"}, {"hidden_size", 64}, {"n_head", 4},   {"n_head_kv", 2},       {"n_layer", 2},
      {"vocab_size", 192},          {"alibi", false},    {"bias", false}, {"parallel_attn", true}};
  ModelSpec spec = configSpec(old.dump());
  CHECK(spec.block(0).attention.kvHeads == 2);
  CHECK(spec.block(0).residual == Residual::Parallel);
  CHECK(spec.tensorName("mlp_norm", 0) == "transformer.h.0.ln_mlp.weight");
  old.erase("n_head_kv");
  old["model_type"] = "RefinedWebModel";
  old["multi_query"] = true;
  CHECK(configSpec(old.dump()).block(0).attention.kvHeads == 1);
  CHECK(configSpec(old.dump()).block(0).residual == Residual::ParallelOneNorm);
}

TEST_CASE("mpt: other models under its name are refused") {
  auto attention = [](const char *key, nlohmann::json value) {
    nlohmann::json config = configOf("mpt")["attn_config"];
    config[key] = value;
    return errorOf("mpt", {{"attn_config", config}});
  };
  CHECK(attention("alibi", false).find("field 'attn_config.alibi' is false, which is not supported") !=
        std::string::npos);
  CHECK(attention("qk_ln", true).find("field 'attn_config.qk_ln' is true, which is not supported") !=
        std::string::npos);
  CHECK(attention("attn_type", "multiquery_attention").find("only 'multihead_attention' is supported") !=
        std::string::npos);
  CHECK(errorOf("mpt", {{"no_bias", false}}).find("field 'no_bias' is false") != std::string::npos);
  nlohmann::json clipped = configOf("mpt")["attn_config"];
  clipped["clip_qkv"] = 6;
  CHECK(specOf("mpt", {{"attn_config", clipped}}).block(0).attention.qkvClip == 6);
}

TEST_CASE("the four combinations of tied and stored heads are the config's to say") {
  CHECK(specOf("llama").tiedHead == false);
  CHECK(specOf("llama3-scaled-tied").tiedHead == true);
  CHECK(specOf("gemma", {{"tie_word_embeddings", "REMOVED"}}).tiedHead == true);
  CHECK(specOf("llama", {{"tie_word_embeddings", "REMOVED"}}).tiedHead == false);
  CHECK(specOf("gptj").headBias);
  CHECK(specOf("phi").headBias);
}
