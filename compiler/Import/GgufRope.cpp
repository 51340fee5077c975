// Rotary parameters from GGUF metadata.
//
// Llama 3's frequency scaling is a tensor of divisors, rope_freqs.weight; Phi 3's long and short factors are tensors too.
#include "compiler/Import/GgufRope.h"

#include "compiler/Support/LocatedJson.h"
#include "compiler/Support/Suggest.h"

#include <cmath>

namespace mcc {

using Scaling = RopeSpec::Scaling;

static void readYarn(GgufKeys &keys, const ModelSpec &spec, RopeSpec &rope) {
  rope.scaling = Scaling::Yarn;
  rope.originalContext = keys.integer("rope.scaling.original_context_length", spec.context);
  rope.betaFast = keys.number("rope.scaling.yarn_beta_fast", 32);
  rope.betaSlow = keys.number("rope.scaling.yarn_beta_slow", 1);
  double attentionFactor =
      keys.number("rope.scaling.attn_factor", keys.number("rope.scaling.yarn_attn_factor", 1));
  if (attentionFactor != 1)
    rope.attentionFactor = attentionFactor * (1 + 0.1 * std::log(rope.factor));
  // A tenth of DeepSeek's mscale_all_dim; its mscale is the same in every published model.
  rope.mscale = rope.mscaleAllDim = 10 * keys.number("rope.scaling.yarn_log_multiplier", 0);
  if (double factor = keys.number("rope.scaling.yarn_ext_factor", 1); factor != 1)
    keys.refuse("rope.scaling.yarn_ext_factor", "is {0}; only 1 is supported", printNumber(factor));
}

static void readLongRope(GgufKeys &keys, const ModelSpec &spec, RopeSpec &rope) {
  rope.scaling = Scaling::LongRope;
  rope.shortFactors = keys.vector("rope_factors_short.weight");
  rope.longFactors = keys.vector("rope_factors_long.weight");
  rope.originalContext = keys.integer("rope.scaling.original_context_length", spec.context);
  rope.factor = rope.originalContext > 0 ? double(spec.context) / double(rope.originalContext) : 1;
  if (keys.given("rope.scaling.attn_factor"))
    rope.attentionFactor = keys.number("rope.scaling.attn_factor", 1);
}

RopeSpec readGgufRope(GgufKeys &keys, const ModelSpec &spec, RopeSpec::Pairing pairing, int64_t headDim) {
  RopeSpec rope;
  rope.pairing = pairing;
  rope.theta = keys.number("rope.freq_base", 10000);
  rope.dims = keys.integer("rope.dimension_count", headDim);
  llvm::StringRef type = keys.text("rope.scaling.type", "none");
  rope.factor = keys.number("rope.scaling.factor", keys.number("rope.scale_linear", 1));
  if (keys.tensor("rope_factors_short.weight") || keys.tensor("rope_factors_long.weight")) {
    readLongRope(keys, spec, rope);
  } else if (type == "linear" || (type == "none" && !keys.given("rope.scaling.type") && rope.factor != 1)) {
    rope.scaling = Scaling::Linear;
  } else if (type == "yarn") {
    readYarn(keys, spec, rope);
  } else if (type == "none") {
    rope.factor = 1;
    keys.ignore({"rope.scaling.original_context_length"});
  } else {
    static constexpr llvm::StringRef known[] = {"none", "linear", "yarn"};
    keys.refuse("rope.scaling.type", "is {0}, which is not supported; known are {1}{2}", quoteJson(type),
                quotedList(known), suggestName(type, known));
  }
  rope.frequencyDivisors = keys.vector("rope_freqs.weight");
  return rope;
}

RopeSpec slidingGgufRope(GgufKeys &keys, const RopeSpec &full, double absentTheta) {
  RopeSpec rope;
  rope.pairing = full.pairing;
  rope.dims = keys.integer("rope.dimension_count_swa", full.dims);
  rope.theta = keys.number("rope.freq_base_swa", absentTheta != 0 ? absentTheta : full.theta);
  return rope;
}

} // namespace mcc
