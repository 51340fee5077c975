// config.json of the Llama, Mistral and Qwen families, in both spellings; what is refused, and with which words.
#include "spec_files.h"

#include "doctest/doctest.h"

#include <cmath>

using namespace mcc;
using namespace mcc::test;

static const char *const llama4x = R"({
  "architectures": ["LlamaForCausalLM"],
  "model_type": "llama",
  "vocab_size": 1000,
  "hidden_size": 64,
  "intermediate_size": 128,
  "num_hidden_layers": 3,
  "num_attention_heads": 4,
  "num_key_value_heads": 2,
  "hidden_act": "silu",
  "max_position_embeddings": 8192,
  "rms_norm_eps": 1e-05,
  "rope_theta": 500000.0,
  "rope_scaling": null,
  "tie_word_embeddings": true,
  "torch_dtype": "bfloat16",
  "bos_token_id": 7,
  "eos_token_id": [8, 9],
  "transformers_version": "4.45.0",
  "use_cache": true
}
)";

static const RopeSpec &ropeOf(const ModelSpec &spec, size_t block = 0) { return *spec.blocks[block].attention.rope; }

TEST_CASE("llama in the spelling of transformers 4") {
  ModelSpec spec = configSpec(llama4x);
  CHECK(spec.family == "llama");
  CHECK(spec.vocabulary == 1000);
  CHECK(spec.hidden == 64);
  CHECK(spec.context == 8192);
  CHECK(spec.layers == std::vector<int32_t>{0, 0, 0});
  CHECK(spec.dtype == Format::BF16);
  CHECK(spec.tiedHead);
  CHECK(spec.bosToken == 7);
  CHECK(spec.eosTokens == std::vector<int32_t>{8, 9});
  CHECK(spec.finalNorm.eps == 1e-5);
  CHECK(spec.blocks[0].attentionNorm == spec.finalNorm);
  const AttentionSpec &attention = spec.blocks[0].attention;
  CHECK(attention.heads == 4);
  CHECK(attention.kvHeads == 2);
  CHECK(attention.headDim == 16);
  CHECK(attention.scale == 0.25);
  CHECK(attention.window == 0);
  CHECK(!attention.qkvBias);
  CHECK(ropeOf(spec).theta == 500000);
  CHECK(ropeOf(spec).dims == 16);
  CHECK(ropeOf(spec).pairing == RopeSpec::Pairing::Half);
  CHECK(spec.blocks[0].mlp.width == 128);
  CHECK(spec.blocks[0].mlp.gated);
  CHECK(spec.tensorName("q", 2) == "model.layers.2.self_attn.q_proj.weight");
}

TEST_CASE("the spelling of transformers 5 means the same") {
  std::string text = replaced(llama4x, "\"rope_theta\": 500000.0,\n  \"rope_scaling\": null,",
                              "\"rope_parameters\": {\"rope_theta\": 500000.0, \"rope_type\": \"default\"},");
  text = replaced(text, "torch_dtype", "dtype");
  CHECK(configSpec(text) == configSpec(llama4x));
}

TEST_CASE("absent keys are transformers' defaults") {
  ModelSpec spec = configSpec(R"({"model_type": "llama"})");
  CHECK(spec.vocabulary == 32000);
  CHECK(spec.hidden == 4096);
  CHECK(spec.layers.size() == 32);
  CHECK(spec.block(0).attention.kvHeads == 32);
  CHECK(spec.block(0).attention.headDim == 128);
  CHECK(spec.block(0).mlp.width == 11008);
  CHECK(spec.finalNorm.eps == 1e-6);
  CHECK(ropeOf(spec).theta == 10000);
  CHECK(spec.context == 2048);
  CHECK(!spec.tiedHead);
  CHECK(spec.bosToken == 1);
  CHECK(spec.eosTokens == std::vector<int32_t>{2});
  CHECK(spec.dtype == Format::F32);
  // Not as many key heads as heads, as in Llama, but eight.
  CHECK(configSpec(R"({"model_type": "mistral"})").block(0).attention.kvHeads == 8);
}

TEST_CASE("head_dim and biases come from the config") {
  std::string text = replaced(llama4x, "\"hidden_act\"",
                              "\"head_dim\": 32, \"attention_bias\": true, \"mlp_bias\": true, \"hidden_act\"");
  const BlockSpec block = configSpec(text).blocks[0];
  CHECK(block.attention.headDim == 32);
  CHECK(block.attention.rope->dims == 32);
  CHECK(block.attention.scale == 1 / std::sqrt(32.0));
  CHECK(block.attention.qkvBias);
  CHECK(block.attention.outBias);
  CHECK(block.mlp.bias);
  CHECK(configSpec(replaced(llama4x, "\"hidden_act\"", "\"head_dim\": null, \"hidden_act\"")) == configSpec(llama4x));
  CHECK(configSpec(replaced(llama4x, "\"num_key_value_heads\": 2", "\"num_key_value_heads\": null"))
            .blocks[0]
            .attention.kvHeads == 4);
}

TEST_CASE("every kind of rotary scaling, in both spellings") {
  auto scaled = [](const std::string &scaling) {
    ModelSpec old = configSpec(replaced(llama4x, "\"rope_scaling\": null", "\"rope_scaling\": " + scaling));
    std::string parameters = replaced(scaling, "{", "{\"rope_theta\": 500000.0, ");
    ModelSpec current = configSpec(
        replaced(llama4x, "\"rope_theta\": 500000.0,\n  \"rope_scaling\": null", "\"rope_parameters\": " + parameters));
    CHECK(old == current);
    return ropeOf(old);
  };
  RopeSpec linear = scaled(R"({"type": "linear", "factor": 4.0})");
  CHECK(linear.scaling == RopeSpec::Scaling::Linear);
  CHECK(linear.factor == 4);
  RopeSpec dynamic = scaled(R"({"rope_type": "dynamic", "factor": 2.0})");
  CHECK(dynamic.scaling == RopeSpec::Scaling::Dynamic);
  CHECK(dynamic.originalContext == 8192);
  RopeSpec llama3 = scaled(
      R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.5, "high_freq_factor": 4.5, "original_max_position_embeddings": 1024})");
  CHECK(llama3.scaling == RopeSpec::Scaling::Llama3);
  CHECK(llama3.factor == 8);
  CHECK(llama3.lowFreqFactor == 1.5);
  CHECK(llama3.highFreqFactor == 4.5);
  CHECK(llama3.originalContext == 1024);
  RopeSpec yarn = scaled(R"({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048})");
  CHECK(yarn.scaling == RopeSpec::Scaling::Yarn);
  CHECK(yarn.originalContext == 2048);
  CHECK(yarn.betaFast == 32);
  CHECK(yarn.betaSlow == 1);
  CHECK(yarn.truncate);
  CHECK(!yarn.attentionFactor);
  RopeSpec full = scaled(
      R"({"rope_type": "yarn", "factor": 4, "beta_fast": 16, "beta_slow": 2, "truncate": false, "attention_factor": 1.5, "mscale": 0.7, "mscale_all_dim": 0.8})");
  CHECK(full.betaFast == 16);
  CHECK(full.betaSlow == 2);
  CHECK(!full.truncate);
  CHECK(full.attentionFactor == 1.5);
  CHECK(full.mscale == 0.7);
  CHECK(full.mscaleAllDim == 0.8);
  // Without one of its own, the original context is the model's.
  CHECK(full.originalContext == 8192);
  RopeSpec longRope = scaled(
      R"({"type": "longrope", "short_factor": [1, 1, 1, 1, 1, 1, 1, 1], "long_factor": [1, 2, 3, 4, 5, 6, 7, 8], "original_max_position_embeddings": 1024})");
  CHECK(longRope.scaling == RopeSpec::Scaling::LongRope);
  CHECK(longRope.factor == 8);
  CHECK(longRope.longFactors.back() == 8);
  CHECK(scaled(R"({"type": "default"})") == ropeOf(configSpec(llama4x)));
}

TEST_CASE("an original context outside the parameters wins over the one inside") {
  std::string text = replaced(
      llama4x, "\"rope_scaling\": null",
      R"("original_max_position_embeddings": 512, "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048})");
  CHECK(ropeOf(configSpec(text)).originalContext == 512);
}

TEST_CASE("a scaling that is not understood is refused") {
  auto scaled = [](const std::string &scaling) {
    return configError(replaced(llama4x, "\"rope_scaling\": null", "\"rope_scaling\": " + scaling));
  };
  CHECK(scaled(R"({"type": "lienar", "factor": 4.0})") ==
        "config.json:14:28: error: field 'rope_scaling.type' is \"lienar\", which is not supported; known are "
        "'default', 'linear', 'dynamic', "
        "'llama3', 'yarn', 'longrope' and 'su'; did you mean 'linear'?");
  CHECK(scaled(R"({"type": "linear"})") ==
        "config.json:14:19: error: field 'rope_scaling.factor' is missing; this 'rope_type' needs it");
  CHECK(scaled(R"({"type": "llama3", "factor": 8.0})") ==
        "config.json:14:19: error: field 'rope_scaling.low_freq_factor' is missing; \"llama3\" needs it");
  CHECK(scaled(R"({"type": "linear", "factor": 2, "facter": 4})") ==
        "config.json:14:61: error: field 'rope_scaling.facter' is not known for rotary embeddings; did you mean "
        "'factor'?");
  CHECK(
      scaled(
          R"({"type": "longrope", "short_factor": [1], "long_factor": [1], "original_max_position_embeddings": 1024})") ==
      "config.json: error: the config makes a spec whose field 'blocks[0].attention.rope.short_factors' has 1 "
      "elements; expected 8");
  CHECK(scaled("4") == "config.json:14:19: error: field 'rope_scaling' is 4; expected an object");
}

TEST_CASE("an activation that is not understood is refused, synonyms are not") {
  CHECK(configError(replaced(llama4x, "\"silu\"", "\"sillu\""))
            .find("config.json:10:17: error: field 'hidden_act' is \"sillu\", which is not supported; known are "
                  "'silu', 'swish'") == 0);
  CHECK(configError(replaced(llama4x, "\"silu\"", "\"mish\"")) != "");
  auto activation = [](const std::string &name) {
    return configSpec(replaced(llama4x, "\"silu\"", "\"" + name + "\"")).blocks[0].mlp.activation;
  };
  CHECK(activation("swish") == Activation::Silu);
  CHECK(activation("gelu") == Activation::GeluErf);
  CHECK(activation("gelu_new") == Activation::GeluTanh);
  CHECK(activation("gelu_pytorch_tanh") == Activation::GeluTanh);
  CHECK(activation("gelu_fast") == Activation::GeluTanh);
  CHECK(activation("relu") == Activation::Relu);
  CHECK(activation("relu2") == Activation::Relu2);
}

TEST_CASE("model types that are not known are named, with the nearest") {
  std::string error = configError(replaced(llama4x, "\"llama\"", "\"lama\""));
  CHECK(error.find("config.json:3:17: error: field 'model_type' is \"lama\", which is not supported; known are ") == 0);
  CHECK(error.find("; did you mean 'llama'?") != std::string::npos);
  CHECK(configError("{}").find("config.json:1:1: error: field 'model_type' is missing") == 0);
  CHECK(configError("[]") == "config.json:1:1: error: a config is an object; found an array");
  CHECK(configError(R"({"model_type": 3})") == "config.json:1:16: error: field 'model_type' is 3; expected a string");
}

TEST_CASE("models that are no decoders of text are refused") {
  CHECK(configError(replaced(llama4x, "LlamaForCausalLM", "LlamaForSequenceClassification")) ==
        "config.json:2:20: error: field 'architectures' has \"LlamaForSequenceClassification\", which is not a "
        "language model that predicts the next token");
  CHECK(configError(replaced(llama4x, "\"use_cache\": true", "\"is_encoder_decoder\": true")) ==
        "config.json:20:25: error: field 'is_encoder_decoder' is true, which is not supported");
}

TEST_CASE("quantised checkpoints are described where the method is known") {
  auto quantised = [](const std::string &config) {
    return replaced(llama4x, "\"use_cache\": true", "\"quantization_config\": " + config);
  };
  ModelSpec gptq =
      configSpec(quantised(R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": true, "sym": true})"));
  CHECK(gptq.quantization->method == QuantizationSpec::Method::Gptq);
  CHECK(gptq.quantization->groupSize == 128);
  CHECK(gptq.quantization->ordered);
  CHECK(gptq.quantization->zerosLessOne);
  CHECK_FALSE(configSpec(quantised(R"({"quant_method": "gptq", "checkpoint_format": "gptq_v2"})")).quantization->zerosLessOne);
  ModelSpec fp8 = configSpec(quantised(
      R"({"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 64]})"));
  CHECK(fp8.quantization->blockRows == 128);
  CHECK(fp8.quantization->blockCols == 64);
  CHECK(configError(quantised(R"({"quant_method": "gptqq"})")) ==
        "config.json:20:43: error: field 'quantization_config.quant_method' is \"gptqq\", which is not supported; "
        "known are 'fp8', 'fbgemm_fp8', 'mxfp4', "
        "'gptq' and 'awq'; did you mean 'gptq'?");
  CHECK(configError(quantised(R"({"bits": 4})")).find("'quantization_config.quant_method' is missing") !=
        std::string::npos);
  CHECK(configError(quantised(R"({"quant_method": "awq", "bits": 3})"))
            .find("'quantization_config.bits' is 3; known are 4 and 8") != std::string::npos);
  CHECK(configError(quantised(R"({"quant_method": "fp8", "rotation": 3})"))
            .find("'quantization_config.rotation' is not known") != std::string::npos);
  CHECK(configSpec(quantised("null")) == configSpec(replaced(llama4x, "\"use_cache\": true", "\"use_cache\": false")));
}

TEST_CASE("keys that nobody reads: harmless, features of others, misspelt, and never heard of") {
  auto with = [](const std::string &key) { return configError(replaced(llama4x, "\"use_cache\": true", key)); };
  CHECK(with("\"attention_dropout\": 0.1") == "");
  CHECK(with("\"pretraining_tp\": 1") == "");
  CHECK(with("\"my_note\": \"hello\"") == "");
  CHECK(with("\"sliding_window\": null") == "");
  CHECK(with("\"residual_multiplier\": 1.0") == "");
  CHECK(with("\"layer_types\": [\"full_attention\", \"full_attention\", \"full_attention\"]") == "");
  CHECK(with("\"layer_types\": [\"full_attention\", \"sliding_attention\", \"full_attention\"]") != "");
  CHECK(with("\"attn_logit_softcapping\": 50.0") ==
        "config.json:20:29: error: field 'attn_logit_softcapping' is 50.0; models of type 'llama' have no such thing");
  CHECK(with("\"sliding_window\": 4096")
            .find("field 'sliding_window' is 4096; models of type 'llama' have no such thing") != std::string::npos);
  CHECK(with("\"atention_bias\": true") ==
        "config.json:20:20: error: field 'atention_bias' is unknown; did you mean 'attention_bias'?");
}

TEST_CASE("wrong types and numbers name the field and the value") {
  CHECK(configError(replaced(llama4x, "\"hidden_size\": 64", "\"hidden_size\": \"64\"")) ==
        "config.json:5:18: error: field 'hidden_size' is \"64\"; expected an integer");
  CHECK(configError(replaced(llama4x, "\"hidden_size\": 64", "\"hidden_size\": null")) ==
        "config.json:5:18: error: field 'hidden_size' is null; expected an integer");
  CHECK(configError(replaced(llama4x, "\"hidden_size\": 64", "\"hidden_size\": 0")) ==
        "config.json:5:18: error: field 'hidden_size' is 0; expected at least 1 and at most 1099511627776");
  CHECK(configError(replaced(llama4x, "\"hidden_size\": 64", "\"hidden_size\": 66")) ==
        "config.json:5:18: error: field 'hidden_size' is 66; 'num_attention_heads' is 4, which does not divide it");
  CHECK(configError(replaced(llama4x, "\"num_hidden_layers\": 3", "\"num_hidden_layers\": 1000000")) ==
        "config.json:7:24: error: field 'num_hidden_layers' is 1000000; at most 65536 layers are supported");
  CHECK(configError(replaced(llama4x, "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3")) ==
        "config.json: error: the config makes a spec whose field 'blocks[0].attention.kv_heads' is 3; 'heads' is 4, "
        "not a multiple of it");
  CHECK(configError(replaced(llama4x, "\"rms_norm_eps\": 1e-05", "\"rms_norm_eps\": \"1e-05\"")) ==
        "config.json:12:19: error: field 'rms_norm_eps' is \"1e-05\"; expected a number");
  CHECK(configError(replaced(llama4x, "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": 1")) ==
        "config.json:15:26: error: field 'tie_word_embeddings' is 1; expected true or false");
  CHECK(configError(replaced(llama4x, "\"bfloat16\"", "\"float8\""))
            .find("field 'torch_dtype' is \"float8\", which is not supported") != std::string::npos);
  CHECK(configError(replaced(llama4x, "\"bos_token_id\": 7", "\"bos_token_id\": 1000")) ==
        "config.json:17:19: error: field 'bos_token_id' is 1000; the vocabulary has 1000 tokens");
}

TEST_CASE("end-of-text tokens: a number, a list, null, and those of generation_config.json") {
  auto eos = [](const std::string &value) {
    return configSpec(replaced(llama4x, "\"eos_token_id\": [8, 9]", "\"eos_token_id\": " + value)).eosTokens;
  };
  CHECK(eos("8") == std::vector<int32_t>{8});
  CHECK(eos("null").empty());
  CHECK(eos("[9, 9, 8]") == std::vector<int32_t>{9, 8});
  // An id without a logit can never be chosen.
  CHECK(eos("[5, 1000]") == std::vector<int32_t>{5});
  JsonDocument config = json(llama4x);
  auto merged = [&](const std::string &text) {
    JsonDocument generation = json(text, "generation_config.json");
    return readHuggingFaceConfig(config, &generation);
  };
  CHECK(llvm::cantFail(merged(R"({"eos_token_id": [9, 10]})")).eosTokens == std::vector<int32_t>{8, 9, 10});
  CHECK(llvm::cantFail(merged(R"({"eos_token_id": 11})")).eosTokens == std::vector<int32_t>{8, 9, 11});
  CHECK(llvm::cantFail(merged(R"({"eos_token_id": null})")).eosTokens == std::vector<int32_t>{8, 9});
  CHECK(llvm::cantFail(merged("{}")).eosTokens == std::vector<int32_t>{8, 9});
  CHECK(llvm::toString(merged(R"({"eos_token_id": "x"})").takeError()) ==
        "generation_config.json:1:18: error: field 'eos_token_id' has \"x\"; expected an integer");
}

TEST_CASE("mistral: every layer slides, unless the window is null") {
  std::string mistral = replaced(llama4x, "\"llama\"", "\"mistral\"");
  auto window = [&](const std::string &key) {
    return configSpec(replaced(mistral, "\"use_cache\": true", key)).block(0).attention.window;
  };
  CHECK(window("\"sliding_window\": 16") == 16);
  CHECK(window("\"sliding_window\": null") == 0);
  CHECK(window("\"use_cache\": true") == 4096);
}

TEST_CASE("qwen2: q, k and v have biases, o has none; windows need use_sliding_window") {
  std::string qwen = replaced(llama4x, "\"llama\"", "\"qwen2\"");
  ModelSpec plain = configSpec(qwen);
  CHECK(plain.block(0).attention.qkvBias);
  CHECK(!plain.block(0).attention.outBias);
  CHECK(plain.block(0).attention.window == 0);
  auto windows = [&](const std::string &keys) {
    ModelSpec spec = configSpec(replaced(qwen, "\"use_cache\": true", keys));
    std::vector<int64_t> list;
    for (size_t layer = 0; layer < spec.layers.size(); ++layer)
      list.push_back(spec.block(int64_t(layer)).attention.window);
    return list;
  };
  using List = std::vector<int64_t>;
  CHECK(windows("\"sliding_window\": 16, \"use_sliding_window\": false, \"max_window_layers\": 0") == List{0, 0, 0});
  CHECK(windows("\"sliding_window\": 16, \"use_sliding_window\": true, \"max_window_layers\": 1") == List{0, 16, 16});
  CHECK(windows("\"sliding_window\": 16, \"use_sliding_window\": true") == List{0, 0, 0});
  CHECK(windows("\"sliding_window\": 16, \"use_sliding_window\": true, \"layer_types\": [\"sliding_attention\", "
                "\"full_attention\", \"sliding_attention\"]") == List{16, 0, 16});
  CHECK(configError(replaced(qwen, "\"use_cache\": true", "\"layer_types\": [\"full_attention\"]")) ==
        "config.json:20:18: error: field 'layer_types' has 1 entries; the model has 3 layers");
  CHECK(configError(replaced(qwen, "\"use_cache\": true",
                             "\"layer_types\": [\"full_attention\", \"full\", \"full_attention\"]"))
            .find("field 'layer_types' has \"full\"; known are 'full_attention' and 'sliding_attention'") !=
        std::string::npos);
  CHECK(configError(replaced(qwen, "\"use_cache\": true",
                             "\"layer_types\": [\"full_attention\", \"sliding_attention\", \"full_attention\"]"))
            .find("give no window") != std::string::npos);
}

TEST_CASE("qwen3: q and k are normed per head, and head_dim has a default of its own") {
  ModelSpec spec = configSpec(replaced(llama4x, "\"llama\"", "\"qwen3\""));
  const AttentionSpec &attention = spec.block(0).attention;
  CHECK(attention.headDim == 128);
  CHECK(attention.qkNorm->eps == 1e-5);
  CHECK(attention.qkNormScope == AttentionSpec::NormScope::Head);
  CHECK(!attention.qkvBias);
  CHECK(spec.tensorName("k_norm", 1) == "model.layers.1.self_attn.k_norm.weight");
}

TEST_CASE("names without the base model's prefix are found") {
  ModelSpec spec = configSpec(llama4x);
  fitTensorPrefix(spec, [](llvm::StringRef name) { return name == "model.embed_tokens.weight"; });
  CHECK(spec == configSpec(llama4x));
  fitTensorPrefix(spec, [](llvm::StringRef name) { return name == "embed_tokens.weight"; });
  CHECK(spec.tensorName("q", 0) == "layers.0.self_attn.q_proj.weight");
  CHECK(spec.tensorName("head") == "lm_head.weight");
}
