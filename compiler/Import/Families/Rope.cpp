// Rotary parameters as transformers resolves them from configs of both spellings.
//
// `rope_scaling`, where it is not null or empty, replaces `rope_parameters`; `rope_theta` and
// `partial_rotary_factor` inside win over those outside; a top-level `original_max_position_embeddings` wins over
// the one inside; where neither is given the original context is `max_position_embeddings`.
#include "compiler/Import/Families/Family.h"

#include "compiler/Support/Suggest.h"

#include <cmath>

namespace mcc {

using Scaling = RopeSpec::Scaling;

static Scaling readScaling(ConfigReader &parameters) {
  static constexpr ConfigReader::Choice<Scaling> names[] = {
      {"default", Scaling::None},  {"linear", Scaling::Linear}, {"dynamic", Scaling::Dynamic},
      {"llama3", Scaling::Llama3}, {"yarn", Scaling::Yarn},     {"longrope", Scaling::LongRope},
      {"su", Scaling::LongRope}};
  // transformers takes `rope_type` where both are there; `find` marks both as read.
  parameters.ignore({"type", "rope_type"});
  return parameters.choice<Scaling>("rope_type|type", "default", names);
}

/// Keys of rotary parameters that no frequency depends on, or that belong to another scaling.
static void checkUnread(ConfigReader &parameters) {
  static constexpr llvm::StringRef known[] = {
      "factor",       "low_freq_factor", "high_freq_factor", "beta_fast",        "beta_slow",
      "mscale",       "mscale_all_dim",  "truncate",         "attention_factor", "original_max_position_embeddings",
      "short_factor", "long_factor"};
  static constexpr llvm::StringRef harmless[] = {"finetuned", "mrope_section", "mrope_interleaved"};
  for (const JsonMember *member : parameters.unread())
    if (!llvm::is_contained(known, member->key) && !llvm::is_contained(harmless, member->key) &&
        !member->value.isNull())
      parameters.refuse(member->key, "is not known for rotary embeddings{0}", suggestName(member->key, known));
}

static int64_t readContext(ConfigReader &config, const Family &family) {
  return config.optionalInteger(family.context.keys, family.context.absent).value_or(family.context.absent);
}

static double requiredFactor(ConfigReader &parameters) {
  if (!parameters.has("factor"))
    parameters.refuse("factor", "is missing; this 'rope_type' needs it");
  return parameters.number("factor", 1);
}

static int64_t readOriginalContext(ConfigReader &config, ConfigReader &parameters, const Family &family) {
  int64_t context = readContext(config, family);
  int64_t inside = parameters.optionalInteger("original_max_position_embeddings", context, 1).value_or(context);
  int64_t absent = family.originalContext != 0 ? family.originalContext : inside;
  return config.optionalInteger("original_max_position_embeddings", absent, 1).value_or(inside);
}

static void readYarn(ConfigReader &parameters, RopeSpec &rope) {
  rope.betaFast = parameters.optionalNumber("beta_fast", 32).value_or(32);
  rope.betaSlow = parameters.optionalNumber("beta_slow", 1).value_or(1);
  rope.mscale = parameters.optionalNumber("mscale", 0).value_or(0);
  rope.mscaleAllDim = parameters.optionalNumber("mscale_all_dim", 0).value_or(0);
  rope.truncate = parameters.flag("truncate", true);
  rope.attentionFactor = parameters.optionalNumber("attention_factor", std::nullopt);
}

/// The stretch that the two context lengths imply: what a null `factor` means.
static double impliedFactor(ConfigReader &config, const Family &family, const RopeSpec &rope) {
  double context = double(readContext(config, family));
  return rope.originalContext > 0 && context > 0 ? context / double(rope.originalContext) : 1;
}

static void readLongRope(ConfigReader &config, ConfigReader &parameters, const Family &family, RopeSpec &rope) {
  rope.shortFactors = parameters.numbers("short_factor").value_or(std::vector<double>());
  rope.longFactors = parameters.numbers("long_factor").value_or(std::vector<double>());
  for (llvm::StringRef key : {"short_factor", "long_factor"})
    if (!parameters.has(key))
      parameters.refuse(key, "is missing; \"longrope\" needs it");
  double implied = impliedFactor(config, family, rope);
  rope.factor = parameters.optionalNumber("factor", implied).value_or(implied);
  rope.attentionFactor = parameters.optionalNumber("attention_factor", std::nullopt);
}

/// HunYuan's "dynamic" with `alpha` does not depend on the length: it is another base.
static void foldAlpha(ConfigReader &parameters, RopeSpec &rope) {
  double alpha = parameters.optionalNumber("alpha", 0).value_or(0);
  if (alpha == 0 || rope.dims <= 2)
    return;
  rope.theta *= std::pow(alpha, double(rope.dims) / double(rope.dims - 2));
  rope.scaling = Scaling::None;
  rope.factor = 1;
  rope.originalContext = 0;
}

/// Reads one object of parameters; `theta` and `rotaryFactor` are what it falls back to.
static RopeSpec readParameters(ConfigReader &config, ConfigReader parameters, const Family &family, double theta,
                               double rotaryFactor, int64_t headDim) {
  RopeSpec rope;
  rope.pairing = family.ropePairing;
  rope.scaling = readScaling(parameters);
  rope.theta = parameters.number("rope_theta", theta);
  double rotated = double(headDim) * parameters.optionalNumber("partial_rotary_factor", rotaryFactor).value_or(1);
  if (!(rotated >= 0 && rotated <= double(headDim)))
    parameters.refuse("partial_rotary_factor", "rotates {0} of a head's {1} dimensions", printNumber(rotated), headDim);
  else
    rope.dims = int64_t(rotated);
  if (rope.scaling == Scaling::Dynamic)
    rope.originalContext = readContext(config, family);
  else if (rope.scaling != Scaling::None && rope.scaling != Scaling::Linear)
    rope.originalContext = readOriginalContext(config, parameters, family);
  const JsonMember *factor = parameters.find("factor");
  if (rope.scaling == Scaling::Yarn && factor && factor->value.isNull())
    rope.factor = impliedFactor(config, family, rope);
  else if (rope.scaling != Scaling::None && rope.scaling != Scaling::LongRope)
    rope.factor = requiredFactor(parameters);
  if (rope.scaling == Scaling::Llama3) {
    for (llvm::StringRef key : {"low_freq_factor", "high_freq_factor"})
      if (!parameters.has(key))
        parameters.refuse(key, "is missing; \"llama3\" needs it");
    rope.lowFreqFactor = parameters.number("low_freq_factor", 1);
    rope.highFreqFactor = parameters.number("high_freq_factor", 4);
  }
  if (rope.scaling == Scaling::Yarn)
    readYarn(parameters, rope);
  if (rope.scaling == Scaling::LongRope)
    readLongRope(config, parameters, family, rope);
  if (family.ropeHasAlpha && rope.scaling == Scaling::Dynamic)
    foldAlpha(parameters, rope);
  checkUnread(parameters);
  config.adopt(parameters);
  return rope;
}

static ConfigReader noParameters(ConfigReader &config) {
  static const JsonValue empty = [] {
    JsonValue value;
    value.kind = JsonValue::Kind::Object;
    return value;
  }();
  return ConfigReader(config.document, empty);
}

/// Whether a key holds something; marks it read.
static bool isGiven(ConfigReader &config, llvm::StringRef key) {
  const JsonMember *member = config.find(key);
  return member && !member->value.isNull() && !(member->value.isObject() && member->value.members.empty());
}

RopeSpec readRope(ConfigReader &config, const Family &family, int64_t headDim) {
  double theta = config.number(family.thetaKeys, family.ropeTheta);
  double rotaryFactor = config.optionalNumber(family.rotaryKeys, family.rotaryFactor).value_or(1);
  config.ignore({"original_max_position_embeddings"});
  bool legacy = isGiven(config, "rope_scaling"), current = isGiven(config, "rope_parameters");
  std::optional<ConfigReader> parameters = config.nested(legacy ? "rope_scaling" : current ? "rope_parameters" : "");
  return readParameters(config, parameters ? *parameters : noParameters(config), family, theta, rotaryFactor, headDim);
}

RopeSpec readLayerRope(ConfigReader &config, const Family &family, int64_t headDim, llvm::StringRef type, double theta,
                       bool takesScaling) {
  bool legacy = isGiven(config, "rope_scaling"), current = isGiven(config, "rope_parameters");
  config.ignore({"original_max_position_embeddings"});
  if (legacy && takesScaling) {
    if (std::optional<ConfigReader> parameters = config.nested("rope_scaling"))
      return readParameters(config, *parameters, family, theta, family.rotaryFactor, headDim);
  } else if (current) {
    if (std::optional<ConfigReader> all = config.nested("rope_parameters")) {
      for (const JsonMember &member : all->object.members)
        if (!member.value.isObject() && !member.value.isNull())
          all->refuse(member.key, "is not an object of parameters for one type of layer");
      std::optional<ConfigReader> parameters = all->nested(type);
      config.adopt(*all);
      if (parameters)
        return readParameters(config, *parameters, family, theta, family.rotaryFactor, headDim);
    }
  }
  return readParameters(config, noParameters(config), family, theta, family.rotaryFactor, headDim);
}

} // namespace mcc
