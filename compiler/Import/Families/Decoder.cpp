// Builds a spec from a config by a family's table: sizes, one template block, then the layers by the family's rule.
//
// Layers that come out equal share a block; a rule names the kinds it makes ("sliding", "full"), and kinds of the same
// name are numbered.
#include "compiler/Import/Families/Family.h"

#include "compiler/Support/Suggest.h"

#include <cmath>

namespace mcc {

static constexpr int64_t maxLayers = 1 << 16;

static int64_t read(ConfigReader &config, const Key<int64_t> &key, int64_t low = 1) {
  return key.keys.empty() ? key.absent : config.integer(key.keys, key.absent, low);
}
static bool read(ConfigReader &config, const Key<bool> &key) {
  return key.keys.empty() ? key.absent : config.flag(key.keys, key.absent);
}
/// A key whose zero and null mean "derived".
static std::optional<int64_t> readDerived(ConfigReader &config, const Key<int64_t> &key) {
  int64_t value = key.keys.empty() ? key.absent : config.optionalInteger(key.keys, key.absent).value_or(0);
  return value == 0 ? std::nullopt : std::optional(value);
}

Activation readActivation(ConfigReader &config, const Key<llvm::StringRef> &key) {
  static constexpr ConfigReader::Choice<Activation> names[] = {{"silu", Activation::Silu},
                                                               {"swish", Activation::Silu},
                                                               {"gelu", Activation::GeluErf},
                                                               {"gelu_python", Activation::GeluErf},
                                                               {"gelu_new", Activation::GeluTanh},
                                                               {"gelu_pytorch_tanh", Activation::GeluTanh},
                                                               {"gelu_python_tanh", Activation::GeluTanh},
                                                               {"gelu_fast", Activation::GeluTanh},
                                                               {"gelu_accurate", Activation::GeluTanh},
                                                               {"quick_gelu", Activation::GeluQuick},
                                                               {"relu", Activation::Relu},
                                                               {"relu2", Activation::Relu2},
                                                               {"xielu", Activation::Xielu},
                                                               {"linear", Activation::None}};
  return config.choice<Activation>(key.keys, key.absent, names);
}

static AttentionSpec readAttention(ConfigReader &config, const Family &family, int64_t hidden) {
  AttentionSpec attention;
  attention.heads = read(config, family.heads);
  attention.kvHeads = readDerived(config, family.kvHeads).value_or(attention.heads);
  if (std::optional<int64_t> headDim = readDerived(config, family.headDim)) {
    attention.headDim = *headDim;
  } else {
    attention.headDim = hidden / attention.heads;
    if (hidden % attention.heads != 0)
      config.refuse(family.hidden.keys, "is {0}; '{1}' is {2}, which does not divide it", hidden,
                    family.heads.keys.split('|').first, attention.heads);
  }
  attention.scale = 1 / std::sqrt(double(attention.headDim));
  attention.qkvBias = read(config, family.qkvBias);
  attention.outBias = read(config, family.outBias);
  if (family.hasRope)
    attention.rope = readRope(config, family, attention.headDim);
  return attention;
}

static BlockSpec readTemplate(ConfigReader &config, const Family &family, ModelSpec &spec) {
  BlockSpec block;
  block.name = "block";
  NormSpec norm = family.norm;
  norm.eps =
      family.normEps.keys.empty() ? family.normEps.absent : config.number(family.normEps.keys, family.normEps.absent);
  block.attentionNorm = block.mlpNorm = spec.finalNorm = norm;
  if (!family.heads.keys.empty())
    block.attention = readAttention(config, family, spec.hidden);
  block.mlp.width = readDerived(config, family.width).value_or(4 * spec.hidden);
  block.mlp.activation = readActivation(config, family.activation);
  block.mlp.gated = family.gated;
  block.mlp.bias = read(config, family.mlpBias);
  return block;
}

void expandLayers(ModelSpec &spec, const BlockSpec &block, const LayerRule &rule) {
  if (!rule) {
    spec.blocks = {block};
    return;
  }
  std::map<std::string, int> kinds;
  std::vector<BlockSpec> unnumbered;
  for (size_t layer = 0; layer < spec.layers.size(); ++layer) {
    BlockSpec made = block;
    rule(int64_t(layer), made);
    size_t index = llvm::find(unnumbered, made) - unnumbered.begin();
    if (index == unnumbered.size()) {
      unnumbered.push_back(made);
      if (int count = ++kinds[made.name]; count > 1)
        made.name += std::to_string(count);
      spec.blocks.push_back(made);
    }
    spec.layers[layer] = int32_t(index);
  }
}

static void readTokens(ConfigReader &config, const Family &family, ModelSpec &spec) {
  std::optional<int64_t> bos = config.optionalInteger("bos_token_id", std::nullopt, -1);
  const JsonMember *given = config.find("bos_token_id");
  if (!given)
    bos = family.bosToken < spec.vocabulary ? family.bosToken : -1;
  else if (bos && *bos >= spec.vocabulary)
    config.refuse("bos_token_id", "is {0}; the vocabulary has {1} tokens", *bos, spec.vocabulary);
  spec.bosToken = int32_t(bos.value_or(-1));
  std::vector<int64_t> eos = family.eosTokens;
  if (const JsonMember *member = config.find("eos_token_id")) {
    eos.clear();
    if (member->value.isArray())
      eos = config.integers("eos_token_id").value_or(eos);
    else if (std::optional<int64_t> one = config.optionalInteger("eos_token_id", std::nullopt, -1))
      eos = {*one};
  }
  // An id that no logit stands for cannot end a text: configs of pruned vocabularies still name them.
  for (int64_t id : eos)
    if (id >= 0 && id < spec.vocabulary && !llvm::is_contained(spec.eosTokens, id))
      spec.eosTokens.push_back(int32_t(id));
}

static Format readDtype(ConfigReader &config) {
  static constexpr ConfigReader::Choice<Format> names[] = {
      {"float32", Format::F32},       {"float16", Format::F16},       {"bfloat16", Format::BF16},
      {"torch.float32", Format::F32}, {"torch.float16", Format::F16}, {"torch.bfloat16", Format::BF16}};
  bool given = config.has("dtype|torch_dtype");
  config.ignore({"dtype", "torch_dtype"});
  return given ? config.choice<Format>("dtype|torch_dtype", "float32", names) : Format::F32;
}

/// Refuses what no family supports: encoders, classifiers.
static void checkGeneral(ConfigReader &config) {
  for (llvm::StringRef key : {"is_encoder_decoder", "add_cross_attention", "use_bidirectional_attention"})
    if (config.has(key))
      config.requireFalse(key);
  config.ignore({"is_encoder_decoder", "add_cross_attention", "use_bidirectional_attention"});
  if (std::optional<std::vector<std::string>> names = config.texts("architectures"))
    for (const std::string &name : *names)
      if (!llvm::StringRef(name).ends_with("ForCausalLM") && !llvm::StringRef(name).ends_with("LMHeadModel") &&
          !llvm::StringRef(name).ends_with("Model"))
        config.refuse("architectures", "has {0}, which is not a language model that predicts the next token",
                      quoteJson(name));
  if (config.has("compression_config"))
    config.refuse("compression_config", "is given; weights compressed that way are not supported");
}

/// Whether a value says that the feature its key names is not there: nothing, false, a factor of 1, full layers only.
static bool isNeutral(const JsonMember &member) {
  const JsonValue &value = member.value;
  if (value.isNumber())
    return value.real == 1 && (llvm::StringRef(member.key).contains("multiplier") || member.key == "logit_scale" ||
                               member.key == "logits_scaling" || member.key == "partial_rotary_factor");
  if (value.isArray())
    return llvm::all_of(value.elements, [](const JsonValue &element) { return element.string == "full_attention"; });
  return value.isNull() || (value.kind == JsonValue::Kind::Bool && !value.boolean);
}

/// Refuses keys that nobody has read where they name a feature or look like a misspelt key of this family.
static void checkUnread(ConfigReader &config, const Family &family) {
  std::vector<llvm::StringRef> absent;
  for (llvm::StringRef key : config.asked())
    if (!config.object.find(key))
      absent.push_back(key);
  for (const JsonMember *member : config.unread()) {
    KeyMeaning meaning = keyMeaning(member->key);
    if (isNeutral(*member) || meaning == KeyMeaning::Harmless)
      continue;
    if (meaning == KeyMeaning::Feature)
      return config.refuse(member->key, "is {0}; models of type '{1}' have no such thing",
                           config.document.quoted(member->value), family.modelType);
    llvm::StringRef near = member->key.size() >= 6 ? nearestName(member->key, absent) : llvm::StringRef();
    if (!near.empty() && llvm::StringRef(member->key).edit_distance(near) <= 2)
      return config.refuse(member->key, "is unknown; did you mean '{0}'?", near);
  }
}

ModelSpec buildFromConfig(ConfigReader &config, const Family &family) {
  ModelSpec spec;
  spec.family = family.modelType.str();
  config.ignore({"model_type"});
  config.ignore(family.ignored);
  checkGeneral(config);
  spec.vocabulary = read(config, family.vocabulary);
  spec.hidden = read(config, family.hidden);
  spec.context = read(config, family.context);
  int64_t layers = read(config, family.layers);
  if (layers > maxLayers)
    config.refuse(family.layers.keys, "is {0}; at most {1} layers are supported", layers, maxLayers);
  if (config.failed())
    return spec;
  spec.layers.assign(layers, 0);
  spec.dtype = readDtype(config);
  spec.quantization = readQuantization(config);
  spec.tiedHead = read(config, family.tiedHead);
  for (const auto &[role, name] : family.tensors)
    spec.tensors[role] = name;
  BlockSpec block = readTemplate(config, family, spec);
  if (config.failed())
    return spec;
  LayerRule rule = family.adjust ? family.adjust(config, spec, block) : nullptr;
  if (config.failed())
    return spec;
  expandLayers(spec, block, rule);
  readTokens(config, family, spec);
  checkUnread(config, family);
  return spec;
}

std::vector<std::string> readLayerTypes(ConfigReader &config, const ModelSpec &spec,
                                        llvm::ArrayRef<llvm::StringRef> known,
                                        llvm::function_ref<llvm::StringRef(int64_t layer)> fallback) {
  std::vector<std::string> types = config.texts("layer_types").value_or(std::vector<std::string>());
  bool given = config.has("layer_types");
  for (size_t layer = 0; !given && layer < spec.layers.size(); ++layer)
    types.push_back(fallback(int64_t(layer)).str());
  if (types.size() < spec.layers.size())
    config.refuse("layer_types", "has {0} entries; the model has {1} layers", types.size(), spec.layers.size());
  for (const std::string &type : types)
    if (!llvm::is_contained(known, type))
      config.refuse("layer_types", "has {0}; known are {1}{2}", quoteJson(type), quotedList(known),
                    suggestName(type, known));
  types.resize(spec.layers.size());
  return types;
}

LayerRule slidingLayers(std::vector<std::string> types, int64_t window) {
  return [types = std::move(types), window](int64_t layer, BlockSpec &block) {
    bool slides = types[layer] == "sliding_attention";
    block.name = slides ? "sliding" : "full";
    block.attention.window = slides ? window : 0;
  };
}

LayerRule sparseLayers(std::function<bool(int64_t layer)> isSparse, LayerRule inner) {
  return [isSparse = std::move(isSparse), inner = std::move(inner)](int64_t layer, BlockSpec &block) {
    if (inner)
      inner(layer, block);
    bool sparse = isSparse(layer);
    block.name = (inner ? block.name + "_" : "") + (sparse ? "sparse" : "dense");
    if (sparse)
      block.mlp = {};
    else
      block.moe.reset();
  };
}

} // namespace mcc
