// mcc's own spec JSON: reading, printing, errors at their places, the schema, and the contradictions a spec can hold.
#include "spec_files.h"

#include "compiler/Import/ModelSpec.h"

#include "doctest/doctest.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

using namespace mcc;
using namespace mcc::test;

/// A small spec with every required field and a few others.
static const char *const smallSpec = R"({
  "kind": "decoder",
  "family": "test",
  "vocabulary": 32,
  "hidden": 16,
  "context": 64,
  "dtype": "bf16",
  "eos_tokens": [2, 5],
  "layers": [{"repeat": ["sliding", "full"], "times": 2}, "sliding"],
  "blocks": [
    {
      "name": "sliding",
      "attention_norm": {"kind": "rms", "eps": 1e-05},
      "attention": {
        "heads": 4,
        "kv_heads": 2,
        "head_dim": 8,
        "scale": 0.35,
        "window": 16,
        "rope": {"theta": 10000, "dims": 8, "pairing": "half"}
      },
      "mlp_norm": {"kind": "rms", "eps": 1e-05},
      "mlp": {"width": 24, "activation": "silu", "gated": true}
    },
    {
      "name": "full",
      "attention_norm": {"kind": "rms", "eps": 1e-05},
      "attention": {"heads": 4, "kv_heads": 2, "head_dim": 8, "scale": 0.35},
      "mlp_norm": {"kind": "rms", "eps": 1e-05},
      "mlp": {"width": 24, "activation": "gelu_tanh", "gated": false}
    }
  ],
  "final_norm": {"kind": "rms", "eps": 1e-05},
  "tied_head": true,
  "tensors": {
    "attention_norm": "l.{layer}.n1",
    "down": "l.{layer}.down",
    "embedding": "embed",
    "final_norm": "norm",
    "gate": "l.{layer}.gate",
    "k": "l.{layer}.k",
    "mlp_norm": "l.{layer}.n2",
    "o": "l.{layer}.o",
    "q": "l.{layer}.q",
    "up": "l.{layer}.up",
    "v": "l.{layer}.v"
  }
}
)";

static ModelSpec small() { return llvm::cantFail(readSpec(json(smallSpec, "spec.json"))); }

static std::string changed(const std::string &from, const std::string &to) {
  return specError(replaced(smallSpec, from, to));
}

TEST_CASE("a spec is read field by field") {
  ModelSpec spec = small();
  CHECK(spec.vocabulary == 32);
  CHECK(spec.dtype == Format::BF16);
  CHECK(spec.eosTokens == std::vector<int32_t>{2, 5});
  CHECK(spec.bosToken == -1);
  CHECK(spec.layers == std::vector<int32_t>{0, 1, 0, 1, 0});
  CHECK(spec.block(0).attention.window == 16);
  CHECK(spec.block(0).attention.rope->dims == 8);
  CHECK(!spec.block(1).attention.rope);
  CHECK(spec.block(1).mlp.activation == Activation::GeluTanh);
  CHECK(!spec.block(1).mlp.gated);
  CHECK(spec.finalNorm.eps == 1e-5);
  CHECK(spec.tiedHead);
}

TEST_CASE("printing what was read gives the same text") { CHECK(printSpec(small()) == smallSpec); }

TEST_CASE("fields at their default may be left out") {
  std::string brief = replaced(smallSpec, "\"family\": \"test\",", "");
  brief = replaced(brief, "\"pairing\": \"half\"", "\"factor\": 1");
  ModelSpec spec = llvm::cantFail(readSpec(json(brief)));
  spec.family = "test";
  CHECK(spec == small());
}

TEST_CASE("null is the absence of an optional part") {
  ModelSpec spec =
      llvm::cantFail(readSpec(json(replaced(smallSpec, "\"window\": 16,", "\"window\": 16, \"qk_norm\": null,"))));
  CHECK(spec == small());
}

TEST_CASE("every field survives printing and reading") {
  ModelSpec spec = small();
  spec.bosToken = 1;
  spec.embeddingScale = 1.0 / 3;
  spec.embeddingNorm = NormSpec{NormSpec::Kind::Layer, 1e-7, 1, true, true};
  spec.logitScale = 0.0625;
  spec.logitSoftcap = 30;
  spec.quantization = QuantizationSpec{QuantizationSpec::Method::Gptq, 4, 128, 0, 0, true, true, {"lm_head"}};
  spec.tensors["embedding_norm"] = "en.weight";
  BlockSpec &block = spec.blocks[0];
  block.residualScale = 0.22;
  block.attentionPostNorm = NormSpec{};
  spec.tensors["attention_post_norm"] = "l.{layer}.pn";
  block.attention.qkNorm = NormSpec{};
  block.attention.qkNormScope = AttentionSpec::NormScope::All;
  spec.tensors["q_norm"] = "l.{layer}.qn";
  spec.tensors["k_norm"] = "l.{layer}.kn";
  block.attention.alibi = AlibiSpec{8, true, true};
  RopeSpec &rope = *block.attention.rope;
  rope.scaling = RopeSpec::Scaling::LongRope;
  rope.originalContext = 32;
  rope.shortFactors = {1, 1.1, 1.2, 1.3};
  rope.longFactors = {2, 4, 8, 16.123456789012345};
  rope.attentionFactor = 1.19;
  block.mlp.clamp = 7;
  spec.layers = {0, 1, 1, 0, 0};
  REQUIRE(!findProblem(spec));
  std::string text = printSpec(spec);
  CHECK(llvm::cantFail(readSpec(json(text))) == spec);
  CHECK(printSpec(llvm::cantFail(readSpec(json(text)))) == text);
}

TEST_CASE("errors name the place, the field's path, what was found and what was expected") {
  CHECK(changed("\"hidden\": 16", "\"hidden\": \"16\"") ==
        "spec.json:5:13: error: field 'hidden' is a string, \"16\"; expected an integer");
  CHECK(changed("\"hidden\": 16", "\"hidden\": 16.5") ==
        "spec.json:5:13: error: field 'hidden' is a number, 16.5; expected an integer");
  CHECK(changed("\"hidden\": 16,", "") == "spec.json:1:1: error: field 'hidden' is missing");
  CHECK(changed("\"hidden\": 16", "\"hidden\": -1") ==
        "spec.json:5:13: error: field 'hidden' is -1; expected at least 1 and at most 16777216");
  CHECK(changed("\"hidden\": 16", "\"hidden\": 99999999") ==
        "spec.json:5:13: error: field 'hidden' is 99999999; expected at least 1 and at most 16777216");
  CHECK(changed("\"theta\": 10000", "\"theta\": 0") ==
        "spec.json:20:27: error: field 'blocks[0].attention.rope.theta' is 0; expected more than 0 and at most 1e+30");
  CHECK(changed("\"window\": 16", "\"windw\": 16") ==
        "spec.json:19:9: error: unknown field 'blocks[0].attention.windw'; did you mean 'window'?");
  CHECK(changed("\"silu\"", "\"sillu\"") ==
        "spec.json:23:42: error: field 'blocks[0].mlp.activation' is \"sillu\"; expected one of 'none', 'silu', "
        "'gelu_erf', "
        "'gelu_tanh', 'relu', 'relu2', 'gelu_quick' and 'xielu'; did you mean 'silu'?");
  CHECK(changed("\"tied_head\": true", "\"tied_head\": 1") ==
        "spec.json:34:16: error: field 'tied_head' is an integer, 1; expected true or false");
  CHECK(changed("\"eos_tokens\": [2, 5]", "\"eos_tokens\": [2, \"5\"]") ==
        "spec.json:8:21: error: field 'eos_tokens[1]' is a string, \"5\"; expected an integer");
  CHECK(changed("\"eos_tokens\": [2, 5]", "\"eos_tokens\": 2") ==
        "spec.json:8:17: error: field 'eos_tokens' is an integer, 2; expected an array");
  CHECK(changed("{\"theta\": 10000, \"dims\": 8, \"pairing\": \"half\"}", "[]") ==
        "spec.json:20:17: error: field 'blocks[0].attention.rope' is an array; expected an object");
  CHECK(changed("\"bf16\"", "\"bf61\"")
            .find("spec.json:7:12: error: field 'dtype' is \"bf61\"; expected one of 'f32', 'f16'") == 0);
  CHECK(changed("\"embedding\": \"embed\"", "\"embedding\": 3") ==
        "spec.json:38:18: error: field 'tensors.embedding' is an integer, 3; expected a string");
}

TEST_CASE("the kind is checked first") {
  CHECK(changed("\"kind\": \"decoder\",", "") == "spec.json:1:1: error: field 'kind' is missing; expected \"decoder\"");
  CHECK(changed("\"decoder\"", "\"encoder\"") ==
        "spec.json:2:11: error: field 'kind' is \"encoder\"; expected \"decoder\"");
  CHECK(specError("[]") == "spec.json:1:1: error: a spec is an object; found an array");
  CHECK(isSpecJson(json(smallSpec)));
  CHECK(!isSpecJson(json("{\"model_type\": \"llama\"}")));
}

TEST_CASE("layers name blocks") {
  CHECK(changed("}, \"sliding\"],", "}, \"slidin\"],") ==
        "spec.json:9:59: error: field 'layers[1]' is \"slidin\"; no block has that name; did you mean 'sliding'?");
  CHECK(changed("\"times\": 2}", "\"times\": 0}") ==
        "spec.json:9:55: error: field 'layers[0].times' is 0; expected at least 1 and at most 65536");
  CHECK(changed("\"times\": 2}", "\"times\": 60000}") ==
        "spec.json:9:14: error: field 'layers[0]' makes 120000 layers; at most 65536 are supported");
  CHECK(changed("\"times\": 2}", "\"time\": 2}") ==
        "spec.json:9:46: error: unknown field 'layers[0].time'; did you mean 'times'?");
  CHECK(changed(", \"times\": 2}", "}") == "spec.json:9:14: error: field 'layers[0]' has no 'times'");
  CHECK(changed("[{\"repeat\": [\"sliding\", \"full\"], \"times\": 2}, \"sliding\"]", "[]") ==
        "spec.json:9:13: error: field 'layers' is empty; expected at least one layer");
}

TEST_CASE("contradictions are found at the field that is easiest to put right") {
  CHECK(changed("\"kv_heads\": 2", "\"kv_heads\": 3") ==
        "spec.json:16:21: error: field 'blocks[0].attention.kv_heads' is 3; 'heads' is 4, not a multiple of it");
  CHECK(changed("\"dims\": 8", "\"dims\": 7") == "spec.json:20:42: error: field 'blocks[0].attention.rope.dims' is 7; "
                                                 "expected an even number from 2 to the head's 8 dimensions");
  CHECK(changed("\"dims\": 8", "\"dims\": 10") == "spec.json:20:42: error: field 'blocks[0].attention.rope.dims' is "
                                                  "10; expected an even number from 2 to the head's 8 dimensions");
  CHECK(changed("\"eos_tokens\": [2, 5]", "\"eos_tokens\": [2, 32]") ==
        "spec.json:8:21: error: field 'eos_tokens[1]' is 32; 'vocabulary' is 32");
  CHECK(changed("\"name\": \"full\"", "\"name\": \"sliding\"").find("no block has that name") != std::string::npos);
  CHECK(changed("\"o\": \"l.{layer}.o\",", "") == "spec.json:35:14: error: field 'tensors' has no name for 'o'");
  CHECK(changed("\"o\": \"l.{layer}.o\"", "\"o\": \"l.{layer}.q\"") ==
        "spec.json:43:10: error: field 'tensors.o' gives the name 'l.0.q', which another weight has");
  CHECK(changed("\"o\": \"l.{layer}.o\"", "\"o\": \"l.o\"") ==
        "spec.json:43:10: error: field 'tensors.o' gives the name 'l.o', which another weight has");
}

/// Returns the problem of `small()` after `change`, as "field what".
static std::string problemAfter(llvm::function_ref<void(ModelSpec &)> change) {
  ModelSpec spec = small();
  change(spec);
  std::optional<SpecProblem> problem = findProblem(spec);
  return problem ? problem->field + " " + problem->what : "";
}

TEST_CASE("specs that were not read from JSON pass the same gate") {
  CHECK(problemAfter([](ModelSpec &) {}) == "");
  CHECK(problemAfter([](ModelSpec &spec) { spec.layers[2] = 2; }) == "layers[2] is 2; there are 2 blocks");
  CHECK(problemAfter([](ModelSpec &spec) { spec.blocks[1].name = "sliding"; }) ==
        "blocks[1].name is 'sliding', as an earlier block's is");
  CHECK(problemAfter([](ModelSpec &spec) { spec.finalNorm.eps = -1; }) ==
        "final_norm.eps is -1; expected a finite number that is not negative");
  CHECK(problemAfter([](ModelSpec &spec) { spec.blocks[0].attention.heads = 0; }) ==
        "blocks[0] has no attention and no other mixer");
  CHECK(problemAfter([](ModelSpec &spec) { spec.blocks[0].attention.scale = 0; }) ==
        "blocks[0].attention.scale is 0; expected a positive number");
  CHECK(problemAfter([](ModelSpec &spec) { spec.learnedPositions = 10; }) ==
        "learned_positions is 10; 'context' 64 and 'position_offset' 0 need 64");
  CHECK(problemAfter([](ModelSpec &spec) { spec.hidden = 1 << 25; }) ==
        "hidden is 33554432; expected at least 1 and at most 16777216");
  CHECK(problemAfter([](ModelSpec &spec) {
          spec.hidden = spec.vocabulary = spec.blocks[0].mlp.width = 1 << 24;
          spec.layers.assign(1 << 16, 0);
        }).find("layers make about") == 0);
}

TEST_CASE("mixtures and latent attention are checked") {
  auto moe = [](llvm::function_ref<void(MoeSpec &)> change) {
    return problemAfter([&](ModelSpec &spec) {
      MoeSpec &made = spec.blocks[0].moe.emplace();
      made.experts = 8;
      made.expertsPerToken = 2;
      made.expert.width = 8;
      spec.blocks[0].mlp = {};
      for (const char *role : {"router", "expert_gate", "expert_up", "expert_down"})
        spec.tensors[role] = std::string("l.{layer}.{expert}.") + role;
      change(made);
    });
  };
  CHECK(moe([](MoeSpec &) {}) == "");
  CHECK(moe([](MoeSpec &made) { made.expertsPerToken = 9; }) ==
        "blocks[0].moe.experts_per_token is 9; 8 experts can be selected");
  CHECK(moe([](MoeSpec &made) { made.groups = 3; }) ==
        "blocks[0].moe.groups is 3; 'experts' is 8, not a multiple of it");
  CHECK(moe([](MoeSpec &made) {
          made.groups = 4;
          made.groupsPerToken = 5;
        }) == "blocks[0].moe.groups_per_token is 5; 'groups' is 4");
  CHECK(moe([](MoeSpec &made) { made.sharedGate = true; }) ==
        "blocks[0].moe.shared_gate is true, but 'shared' is empty");
  CHECK(moe([](MoeSpec &made) { made.expert.width = 0; }) ==
        "blocks[0].moe.expert.width is 0; expected at least 1 and at most 16777216");
  CHECK(problemAfter([](ModelSpec &spec) {
          spec.layers.assign(16, 0);
          spec.blocks[0].mlp = {};
          MoeSpec &made = spec.blocks[0].moe.emplace();
          made.experts = 65536;
          made.expertsPerToken = made.expert.width = 1;
        }) == "layers have 1048576 experts with tensors of their own; at most 262144 are supported");
  CHECK(problemAfter([](ModelSpec &spec) { spec.blocks[0].moe.emplace(); }) ==
        "blocks[0].moe is given beside an 'mlp' that is not empty");
  CHECK(problemAfter([](ModelSpec &spec) { spec.blocks[0].attention.latent = LatentSpec{0, 8, 4, 2, 8, 1e-6}; }) ==
        "blocks[0].attention.latent.nope_dim is 4 and 'rope_dim' is 2; their sum is not the attention's 'head_dim' 8");
}

TEST_CASE("the schema in the repository is the one of this reader") {
  std::ifstream stream(MCC_SPEC_SCHEMA);
  std::string stored{std::istreambuf_iterator<char>(stream), {}};
  // Where this fails: run import_spec_test with MCC_WRITE_SCHEMA=1 in the environment, and look at the difference.
  if (std::getenv("MCC_WRITE_SCHEMA"))
    std::ofstream(MCC_SPEC_SCHEMA) << specSchema();
  else
    CHECK(stored == specSchema());
  nlohmann::json schema = nlohmann::json::parse(specSchema());
  CHECK(schema["$schema"] == "https://json-schema.org/draft/2020-12/schema");
  CHECK(schema["properties"]["hidden"]["type"] == "integer");
  CHECK(schema["$defs"]["rope"]["properties"]["scaling"]["enum"].size() == 6);
}

/// Whether every member of `value` is a property of `schema`, and every required property is there.
static void checkAgainst(const nlohmann::json &value, const nlohmann::json &schema, const nlohmann::json &root) {
  if (schema.contains("$ref"))
    return checkAgainst(value, root["$defs"][schema["$ref"].get<std::string>().substr(8)], root);
  if (schema.contains("anyOf") && !value.is_null())
    return checkAgainst(
        value,
        schema["anyOf"]
              [value.is_object() && schema["anyOf"].size() == 2 && schema["anyOf"][1].contains("properties") ? 1 : 0],
        root);
  if (value.is_array())
    for (const nlohmann::json &element : value)
      checkAgainst(element, schema["items"], root);
  if (schema.contains("enum")) {
    const nlohmann::json &names = schema["enum"];
    CHECK_MESSAGE(std::find(names.begin(), names.end(), value) != names.end(), value.dump());
  }
  if (!value.is_object() || !schema.contains("properties"))
    return;
  for (const auto &[key, member] : value.items()) {
    CHECK_MESSAGE(schema["properties"].contains(key), key);
    if (schema["properties"].contains(key))
      checkAgainst(member, schema["properties"][key], root);
  }
  if (schema.contains("required"))
    for (const nlohmann::json &name : schema["required"])
      CHECK_MESSAGE(value.contains(name.get<std::string>()), name.dump());
}

TEST_CASE("printed specs follow the schema") {
  nlohmann::json schema = nlohmann::json::parse(specSchema());
  checkAgainst(nlohmann::json::parse(smallSpec), schema, schema);
}

TEST_CASE("sizes are counted exactly") {
  ModelSpec spec = small();
  // embedding 32*16, final norm 16; per layer: norms 2*16, q 32*16, k and v 16*16, o 16*32, up and down 24*16;
  // sliding layers (3) have a gate too.
  int64_t layer = 32 + 512 + 2 * 256 + 512 + 2 * 384;
  CHECK(modelSize(spec).parameters == 512 + 16 + 5 * layer + 3 * 384);
  CHECK(modelSize(spec).activeParameters == modelSize(spec).parameters);
  CHECK(modelSize(spec).cacheElems == 5 * 2 * 2 * 8);
  CHECK(modelSize(spec).windowedCacheElems == 3 * 2 * 2 * 8);
  CHECK(weightBytes(spec, Format::F16) == 2 * modelSize(spec).parameters);
  CHECK(weightBytes(spec, Format::F32) == 4 * modelSize(spec).parameters);
  // q8_0 has blocks of 32: rows of 16 and 24 are stored as f16, o's rows of 32 as q8_0, vectors as f32.
  int64_t vectors = 16 + 5 * 32, blocks = 5 * 512;
  int64_t others = modelSize(spec).parameters - vectors - blocks;
  CHECK(weightBytes(spec, Format::Q8_0) == 4 * vectors + blocks / 32 * 34 + 2 * others);
  CHECK(describeSize(spec).find("bytes as bf16: 26,720 (as stored)\n") != std::string::npos);
}

TEST_CASE("sources of packed weights") {
  ModelSpec spec = small();
  AttentionSpec &attention = spec.blocks[0].attention;
  spec.tensors["qkv"] = "l.{layer}.qkv.weight";
  attention.qkvLayout = QkvLayout::Concatenated;
  WeightSource v = weightSource(spec, "v", 2);
  CHECK(v.tensor == "l.2.qkv.weight");
  CHECK(v.first == 48);
  CHECK(v.rows == 16);
  CHECK(v.groups == 1);
  CHECK(!v.whole);
  attention.qkvLayout = QkvLayout::PerKvHead;
  WeightSource q = weightSource(spec, "q", 0), k = weightSource(spec, "k.bias", 0);
  CHECK(q.first == 0);
  CHECK(q.rows == 16);
  CHECK(q.stride == 32);
  CHECK(q.groups == 2);
  CHECK(k.tensor == "l.0.qkv.bias");
  CHECK(k.first == 16);
  CHECK(k.rows == 8);
  spec.tensors["gate_up"] = "l.{layer}.gu.weight";
  spec.blocks[0].mlp.gateUpLayout = GateUpLayout::Interleaved;
  WeightSource up = weightSource(spec, "up", 0);
  CHECK(up.first == 1);
  CHECK(up.rows == 1);
  CHECK(up.stride == 2);
  CHECK(up.groups == 24);
  spec.transposedLinears = true;
  CHECK(weightSource(spec, "o", 0).transposed);
  CHECK(weightSource(spec, "o", 0).whole);
  CHECK(!weightSource(spec, "o.bias", 0).transposed);
}

TEST_CASE("sources of a gated query: every head's query, then its gate") {
  ModelSpec spec = small();
  AttentionSpec &attention = spec.blocks[0].attention;
  attention.outputGate = true;
  WeightSource q = weightSource(spec, "q", 0), gate = weightSource(spec, "q_gate", 0);
  for (const WeightSource &source : {q, gate}) {
    CHECK(source.tensor == spec.tensorName("q", 0));
    CHECK(!source.whole);
    CHECK(source.rows == attention.headDim);
    CHECK(source.stride == 2 * attention.headDim);
    CHECK(source.groups == attention.heads);
  }
  CHECK(q.first == 0);
  CHECK(gate.first == attention.headDim);
}

TEST_CASE("sources of a delta net: every key head's query, key, values and gates; betas and decays") {
  ModelSpec spec = small();
  DeltaNetSpec delta;
  delta.keyHeads = 2, delta.valueHeads = 6, delta.keyDim = 5, delta.valueDim = 7, delta.kernel = 4;
  spec.blocks[0].deltaNet = delta;
  spec.tensors["delta_in_qkvz"] = "l.{layer}.qkvz.weight";
  spec.tensors["delta_in_ba"] = "l.{layer}.ba.weight";
  struct Part {
    const char *role, *tensor;
    int64_t first, rows, stride;
  };
  for (const Part &part : {Part{"delta_q", "l.0.qkvz.weight", 0, 5, 52}, {"delta_k", "l.0.qkvz.weight", 5, 5, 52},
                           {"delta_v", "l.0.qkvz.weight", 10, 21, 52}, {"delta_z", "l.0.qkvz.weight", 31, 21, 52},
                           {"delta_b", "l.0.ba.weight", 0, 3, 6}, {"delta_a", "l.0.ba.weight", 3, 3, 6}}) {
    CAPTURE(part.role);
    WeightSource source = weightSource(spec, part.role, 0);
    CHECK(source.tensor == part.tensor);
    CHECK(source.first == part.first);
    CHECK(source.rows == part.rows);
    CHECK(source.stride == part.stride);
    CHECK(source.groups == 2);
    CHECK(!source.whole);
  }
}

TEST_CASE("names of weights") {
  ModelSpec spec = small();
  spec.tensors["o"] = "x.{layer}.o.weight";
  spec.tensors["router"] = "x.{layer}.{expert}.{layer}";
  CHECK(spec.tensorName("o", 3) == "x.3.o.weight");
  CHECK(spec.tensorName("o.bias", 3) == "x.3.o.bias");
  CHECK(spec.tensorName("q.bias", 3) == "");
  CHECK(spec.tensorName("nothing", 3) == "");
  CHECK(spec.tensorName("router", 1, 12) == "x.1.12.1");
}
