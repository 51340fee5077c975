// The contradictions a spec can hold: each check names the field that is easiest to put right, and both numbers.
//
// Ranges of single fields are checked too, so that a spec built by an importer passes the same gate as one that was
// read from JSON. What passes here can be built and sized without overflow.
#include "compiler/Import/ModelSpec.h"

#include "compiler/Support/LocatedJson.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <set>

namespace mcc {

static constexpr int64_t maxExtent = 1 << 24;
static constexpr int64_t maxExpertTensors = 1 << 18;

namespace {

class Checker {
public:
  explicit Checker(const ModelSpec &spec) : spec(spec) {}

  std::optional<SpecProblem> run() {
    checkModel();
    for (size_t i = 0; i < spec.blocks.size() && !problem; ++i)
      checkBlock(spec.blocks[i], "blocks[" + std::to_string(i) + "]");
    if (!problem)
      checkTotals();
    if (!problem)
      checkNames();
    return problem;
  }

private:
  const ModelSpec &spec;
  std::optional<SpecProblem> problem;

  template <typename... Args>
  void report(const std::string &field, const char *format, Args &&...args) {
    if (!problem)
      problem = SpecProblem{field, llvm::formatv(format, std::forward<Args>(args)...).str()};
  }
  void require(bool holds, const std::string &field, llvm::StringRef what) {
    if (!holds)
      report(field, "{0}", what);
  }
  void inRange(int64_t value, int64_t low, const std::string &field, int64_t high = maxExtent) {
    if (value < low || value > high)
      report(field, "is {0}; expected at least {1} and at most {2}", value, low, high);
  }
  void finite(double value, const std::string &field, bool positive = false) {
    if (!std::isfinite(value) || (positive && value <= 0))
      report(field, "is {0}; expected a {1} number", printNumber(value), positive ? "positive" : "finite");
  }
  void divides(int64_t divisor, int64_t value, const std::string &field, llvm::StringRef other) {
    if (!problem && value % divisor != 0)
      report(field, "is {0}; '{1}' is {2}, not a multiple of it", divisor, other, value);
  }
  void listSize(const std::vector<double> &list, size_t size, const std::string &field) {
    if (!list.empty() && list.size() != size)
      report(field, "has {0} elements; expected {1}", list.size(), size);
    for (double value : list)
      finite(value, field);
  }

  void checkNorm(const NormSpec &norm, const std::string &path) {
    if (!std::isfinite(norm.eps) || norm.eps < 0)
      report(path + ".eps", "is {0}; expected a finite number that is not negative", printNumber(norm.eps));
    finite(norm.weightOffset, path + ".weight_offset");
    require(norm.hasWeight || !norm.hasBias, path + ".has_bias", "is true, but 'has_weight' is false");
  }
  void checkNorm(const std::optional<NormSpec> &norm, const std::string &path) {
    if (norm)
      checkNorm(*norm, path);
  }

  void checkModel() {
    inRange(spec.vocabulary, 1, "vocabulary");
    inRange(spec.hidden, 1, "hidden");
    inRange(spec.context, 1, "context", int64_t(1) << 40);
    inRange(spec.embeddingWidth, 0, "embedding_width");
    inRange(spec.learnedPositions, 0, "learned_positions");
    inRange(spec.positionOffset, 0, "position_offset");
    if (spec.learnedPositions != 0 && spec.context + spec.positionOffset > spec.learnedPositions)
      report("learned_positions", "is {0}; 'context' {1} and 'position_offset' {2} need {3}", spec.learnedPositions,
             spec.context, spec.positionOffset, spec.context + spec.positionOffset);
    finite(spec.embeddingScale, "embedding_scale");
    finite(spec.logitScale, "logit_scale");
    finite(spec.logitSoftcap, "logit_softcap");
    checkNorm(spec.finalNorm, "final_norm");
    checkNorm(spec.embeddingNorm, "embedding_norm");
    if (spec.bosToken < -1 || spec.bosToken >= spec.vocabulary)
      report("bos_token", "is {0}; 'vocabulary' is {1}", spec.bosToken, spec.vocabulary);
    for (size_t i = 0; i < spec.eosTokens.size(); ++i)
      if (spec.eosTokens[i] < 0 || spec.eosTokens[i] >= spec.vocabulary)
        report(llvm::formatv("eos_tokens[{0}]", i), "is {0}; 'vocabulary' is {1}", spec.eosTokens[i], spec.vocabulary);
    require(!spec.blocks.empty(), "blocks", "is empty; expected at least one block");
    require(!spec.layers.empty(), "layers", "is empty; expected at least one layer");
    inRange(spec.layers.size(), 1, "layers", 1 << 16);
    for (size_t i = 0; i < spec.layers.size(); ++i)
      if (spec.layers[i] < 0 || size_t(spec.layers[i]) >= spec.blocks.size())
        report(llvm::formatv("layers[{0}]", i), "is {0}; there are {1} blocks", spec.layers[i], spec.blocks.size());
    std::set<std::string> names;
    for (size_t i = 0; i < spec.blocks.size(); ++i)
      if (!names.insert(spec.blocks[i].name).second)
        report(llvm::formatv("blocks[{0}].name", i), "is '{0}', as an earlier block's is", spec.blocks[i].name);
  }

  void checkBlock(const BlockSpec &block, const std::string &path) {
    require(!block.name.empty(), path + ".name", "is empty");
    finite(block.residualScale, path + ".residual_scale");
    checkNorm(block.attentionNorm, path + ".attention_norm");
    checkNorm(block.mlpNorm, path + ".mlp_norm");
    checkNorm(block.attentionPostNorm, path + ".attention_post_norm");
    checkNorm(block.mlpPostNorm, path + ".mlp_post_norm");
    bool hasMixer = block.attention.heads != 0 || block.mamba || block.mamba2 || block.shortConv || block.deltaNet;
    require(hasMixer, path, "has no attention and no other mixer");
    if (block.attention.heads != 0)
      checkAttention(block.attention, path + ".attention");
    checkRecurrent(block, path);
    checkMlp(block.mlp, path + ".mlp");
    require(block.mlp.width == 0 || !block.moe, path + ".moe", "is given beside an 'mlp' that is not empty");
    if (block.moe)
      checkMoe(*block.moe, path + ".moe");
    require(block.residual == Residual::Serial || !(block.normAfterResidual || block.residualFromNorm),
            path + ".residual", "is not \"serial\", as 'norm_after_residual' and 'residual_from_norm' need");
  }

  void checkAttention(const AttentionSpec &attention, const std::string &path) {
    inRange(attention.heads, 0, path + ".heads", 1 << 16);
    inRange(attention.kvHeads, 1, path + ".kv_heads", 1 << 16);
    inRange(attention.headDim, 1, path + ".head_dim", 1 << 16);
    if (problem)
      return;
    divides(attention.kvHeads, attention.heads, path + ".kv_heads", "heads");
    finite(attention.scale, path + ".scale", /*positive=*/true);
    finite(attention.softcap, path + ".softcap");
    finite(attention.qkvClip, path + ".qkv_clip");
    finite(attention.inputScale, path + ".input_scale");
    finite(attention.outputScale, path + ".output_scale");
    inRange(attention.window, 0, path + ".window", int64_t(1) << 40);
    inRange(attention.chunk, 0, path + ".chunk", int64_t(1) << 40);
    checkNorm(attention.qkNorm, path + ".qk_norm");
    checkNorm(attention.innerNorm, path + ".inner_norm");
    require(!attention.outputGate || attention.qkvLayout == QkvLayout::Separate, path + ".output_gate",
            "is true; 'qkv_layout' is not \"separate\"");
    if (attention.alibi)
      finite(attention.alibi->maxBias, path + ".alibi.max_bias", /*positive=*/true);
    if (attention.rope)
      checkRope(*attention.rope, attention.headDim, path + ".rope");
    if (attention.latent)
      checkLatent(attention, *attention.latent, path + ".latent");
  }

  void checkRope(const RopeSpec &rope, int64_t headDim, const std::string &path) {
    using Scaling = RopeSpec::Scaling;
    finite(rope.theta, path + ".theta", /*positive=*/true);
    finite(rope.factor, path + ".factor", /*positive=*/true);
    if (rope.dims < 2 || rope.dims % 2 != 0 || rope.dims > headDim)
      report(path + ".dims", "is {0}; expected an even number from 2 to the head's {1} dimensions", rope.dims, headDim);
    if (problem)
      return;
    bool needsContext = rope.scaling != Scaling::None && rope.scaling != Scaling::Linear;
    inRange(rope.originalContext, needsContext ? 1 : 0, path + ".original_context", int64_t(1) << 40);
    if (rope.scaling == Scaling::Llama3 && !(rope.highFreqFactor > rope.lowFreqFactor && rope.lowFreqFactor > 0))
      report(path + ".high_freq_factor", "is {0}; 'low_freq_factor' is {1}, not less", printNumber(rope.highFreqFactor),
             printNumber(rope.lowFreqFactor));
    if (rope.scaling == Scaling::Yarn && !(rope.betaFast >= rope.betaSlow && rope.betaSlow > 0))
      report(path + ".beta_fast", "is {0}; 'beta_slow' is {1}, more than that", printNumber(rope.betaFast),
             printNumber(rope.betaSlow));
    if (rope.scaling == Scaling::LongRope) {
      require(!rope.shortFactors.empty(), path + ".short_factors", "is missing; \"longrope\" needs it");
      require(!rope.longFactors.empty(), path + ".long_factors", "is missing; \"longrope\" needs it");
    }
    listSize(rope.shortFactors, rope.dims / 2, path + ".short_factors");
    listSize(rope.longFactors, rope.dims / 2, path + ".long_factors");
    listSize(rope.frequencyDivisors, rope.dims / 2, path + ".frequency_divisors");
    if (rope.attentionFactor)
      finite(*rope.attentionFactor, path + ".attention_factor");
  }

  void checkLatent(const AttentionSpec &attention, const LatentSpec &latent, const std::string &path) {
    inRange(latent.queryRank, 0, path + ".query_rank");
    inRange(latent.kvRank, 1, path + ".kv_rank");
    inRange(latent.nopeDim, 0, path + ".nope_dim", 1 << 16);
    inRange(latent.ropeDim, 0, path + ".rope_dim", 1 << 16);
    inRange(latent.valueDim, 1, path + ".value_dim", 1 << 16);
    if (!problem && latent.nopeDim + latent.ropeDim != attention.headDim)
      report(path + ".nope_dim", "is {0} and 'rope_dim' is {1}; their sum is not the attention's 'head_dim' {2}",
             latent.nopeDim, latent.ropeDim, attention.headDim);
    if (attention.rope && attention.rope->dims != latent.ropeDim)
      report(path + ".rope_dim", "is {0}; the rope's 'dims' is {1}", latent.ropeDim, attention.rope->dims);
    require(attention.qkvLayout == QkvLayout::Separate, path, "is given; 'qkv_layout' is not \"separate\"");
    require(!attention.qkNorm && !attention.outputGate, path, "is given beside 'qk_norm' or 'output_gate'");
  }

  void checkMlp(const MlpSpec &mlp, const std::string &path) {
    inRange(mlp.width, 0, path + ".width");
    finite(mlp.clamp, path + ".clamp");
    finite(mlp.upOffset, path + ".up_offset");
    finite(mlp.gateScale, path + ".gate_scale");
    finite(mlp.outputScale, path + ".output_scale");
    checkNorm(mlp.innerNorm, path + ".inner_norm");
    require(mlp.gated || mlp.gateUpLayout == GateUpLayout::Separate, path + ".gate_up_layout",
            "is given, but 'gated' is false");
  }

  void checkMoe(const MoeSpec &moe, const std::string &path) {
    inRange(moe.experts, 1, path + ".experts", 1 << 16);
    inRange(moe.expertsPerToken, 1, path + ".experts_per_token", 1 << 16);
    inRange(moe.groups, 1, path + ".groups", 1 << 16);
    inRange(moe.groupsPerToken, 1, path + ".groups_per_token", 1 << 16);
    if (problem)
      return;
    divides(moe.groups, moe.experts, path + ".groups", "experts");
    if (moe.groupsPerToken > moe.groups)
      report(path + ".groups_per_token", "is {0}; 'groups' is {1}", moe.groupsPerToken, moe.groups);
    int64_t eligible = moe.experts / moe.groups * moe.groupsPerToken;
    if (moe.expertsPerToken > eligible)
      report(path + ".experts_per_token", "is {0}; {1} experts can be selected", moe.expertsPerToken, eligible);
    if (!problem && moe.groupScore == MoeSpec::GroupScore::TopTwoSum && moe.experts / moe.groups < 2)
      report(path + ".group_score", "is \"top_two_sum\"; a group has {0} expert", moe.experts / moe.groups);
    finite(moe.scale, path + ".scale");
    inRange(moe.expert.width, 1, path + ".expert.width");
    checkMlp(moe.expert, path + ".expert");
    checkMlp(moe.shared, path + ".shared");
    require(!moe.sharedGate || moe.shared.width != 0, path + ".shared_gate", "is true, but 'shared' is empty");
    require(!moe.expert.innerNorm || moe.storage == MoeSpec::Storage::Separate, path + ".expert.inner_norm",
            "is given, but 'storage' is not \"separate\"");
  }

  void checkRecurrent(const BlockSpec &block, const std::string &path) {
    if (block.mamba) {
      inRange(block.mamba->inner, 1, path + ".mamba.inner");
      inRange(block.mamba->state, 1, path + ".mamba.state", 1 << 16);
      inRange(block.mamba->timeRank, 1, path + ".mamba.time_rank");
      inRange(block.mamba->kernel, 1, path + ".mamba.kernel", 1 << 16);
    }
    if (block.mamba2)
      checkMamba2(*block.mamba2, path + ".mamba2");
    if (block.shortConv)
      inRange(block.shortConv->kernel, 1, path + ".short_conv.kernel", 1 << 16);
    if (block.deltaNet)
      checkDeltaNet(*block.deltaNet, path + ".delta_net");
  }

  void checkMamba2(const Mamba2Spec &mamba, const std::string &path) {
    inRange(mamba.inner, 1, path + ".inner");
    inRange(mamba.heads, 1, path + ".heads", 1 << 16);
    inRange(mamba.headDim, 1, path + ".head_dim", 1 << 16);
    inRange(mamba.groups, 1, path + ".groups", 1 << 16);
    inRange(mamba.state, 1, path + ".state", 1 << 16);
    inRange(mamba.kernel, 1, path + ".kernel", 1 << 16);
    inRange(mamba.normGroups, 1, path + ".norm_groups", 1 << 16);
    if (problem)
      return;
    if (mamba.heads * mamba.headDim != mamba.inner)
      report(path + ".inner", "is {0}; 'heads' {1} times 'head_dim' {2} is {3}", mamba.inner, mamba.heads,
             mamba.headDim, mamba.heads * mamba.headDim);
    divides(mamba.groups, mamba.heads, path + ".groups", "heads");
    divides(mamba.normGroups, mamba.inner, path + ".norm_groups", "inner");
    checkNorm(mamba.norm, path + ".norm");
    finite(mamba.timeMin, path + ".time_min");
    if (mamba.timeMax && !(*mamba.timeMax >= mamba.timeMin))
      report(path + ".time_max", "is {0}; 'time_min' is {1}", printNumber(*mamba.timeMax), printNumber(mamba.timeMin));
    finite(mamba.inputScale, path + ".input_scale");
    finite(mamba.outputScale, path + ".output_scale");
    listSize(mamba.partScales, 5, path + ".part_scales");
  }

  void checkDeltaNet(const DeltaNetSpec &delta, const std::string &path) {
    inRange(delta.keyHeads, 1, path + ".key_heads", 1 << 16);
    inRange(delta.valueHeads, 1, path + ".value_heads", 1 << 16);
    inRange(delta.keyDim, 1, path + ".key_dim", 1 << 16);
    inRange(delta.valueDim, 1, path + ".value_dim", 1 << 16);
    inRange(delta.kernel, 1, path + ".kernel", 1 << 16);
    if (!problem)
      divides(delta.keyHeads, delta.valueHeads, path + ".key_heads", "value_heads");
    checkNorm(delta.norm, path + ".norm");
  }

  /// Elements of a block's weights, in floating point, from above.
  double blockElements(const BlockSpec &block) const {
    double hidden = spec.hidden, elems = 8 * hidden;
    const AttentionSpec &attention = block.attention;
    elems += 8.0 * attention.heads * attention.headDim * hidden;
    if (const auto &latent = attention.latent)
      elems += double(latent->queryRank + latent->kvRank + latent->ropeDim) *
                   (hidden + double(attention.heads) * (attention.headDim + latent->valueDim + latent->nopeDim)) +
               double(attention.heads) * latent->valueDim * hidden;
    if (const auto &mamba = block.mamba)
      elems += double(mamba->inner) * (3 * hidden + 3.0 * mamba->state + 2.0 * mamba->timeRank + mamba->kernel);
    if (const auto &mamba = block.mamba2)
      elems += (2.0 * mamba->inner + 2.0 * mamba->groups * mamba->state + mamba->heads) * (2 * hidden + mamba->kernel);
    if (const auto &conv = block.shortConv)
      elems += 4 * hidden * hidden + hidden * conv->kernel;
    if (const auto &delta = block.deltaNet)
      elems += (2.0 * delta->keyHeads * delta->keyDim + 3.0 * delta->valueHeads * (delta->valueDim + 1)) *
               (hidden + delta->kernel);
    elems += 4.0 * block.mlp.width * hidden;
    if (const auto &moe = block.moe)
      elems += (4.0 * moe->expert.width + 2) * hidden * moe->experts + 4.0 * moe->shared.width * hidden;
    return elems;
  }

  void checkTotals() {
    double elems =
        2.0 * spec.vocabulary * (spec.embeddingWidth + spec.hidden) + double(spec.learnedPositions) * spec.hidden;
    double expertTensors = 0;
    for (int32_t index : spec.layers) {
      const BlockSpec &block = spec.blocks[index];
      elems += blockElements(block);
      if (block.moe && block.moe->storage == MoeSpec::Storage::Separate)
        expertTensors += block.moe->experts;
      if (block.attention.qkNormScope == AttentionSpec::NormScope::HeadOwnTensors)
        expertTensors += block.attention.heads;
    }
    if (elems > 0x1p56)
      report("layers", "make about {0:f0} parameters; at most 2^56 are supported", elems);
    if (expertTensors > maxExpertTensors)
      report("layers", "have {0:f0} experts with tensors of their own; at most {1} are supported", expertTensors,
             maxExpertTensors);
  }

  void checkNames() {
    std::set<std::string> names;
    for (const RequiredTensor &tensor : requiredTensors(spec)) {
      if (tensor.name.empty())
        return report("tensors", "has no name for '{0}'", tensor.role);
      if (!names.insert(tensor.name).second)
        return report("tensors." + tensor.role, "gives the name '{0}', which another weight has", tensor.name);
    }
  }
};

} // namespace

std::optional<SpecProblem> findProblem(const ModelSpec &spec) { return Checker(spec).run(); }

} // namespace mcc
