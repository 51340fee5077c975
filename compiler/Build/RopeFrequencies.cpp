// Inverse frequencies of rotary embeddings.
//
// Base: f_i = theta^(-2i/d) (Su et al. 2021). `linear` divides all by the factor; `llama3` divides the low frequencies and
// blends in between (Meta's Llama 3.1 release); `yarn` blends interpolation and extrapolation over a ramp of dimensions and
// scales attention (Peng et al. 2023). `longrope` divides every frequency by a number of its own, of one set up to the original context
// and of another beyond it, and scales attention (Ding et al. 2024). Each is computed as transformers' modeling_rope_utils defines it.
#include "compiler/Build/RopeFrequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace mcc {

static double baseFrequency(const RopeSpec &rope, size_t i) {
  return 1.0 / std::pow(rope.theta, static_cast<double>(2 * i) / static_cast<double>(rope.dims));
}

static double llama3Frequency(const RopeSpec &rope, double frequency) {
  double original = static_cast<double>(rope.originalContext);
  double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength < original / rope.highFreqFactor)
    return frequency;
  if (wavelength > original / rope.lowFreqFactor)
    return frequency / rope.factor;
  double smooth = (original / wavelength - rope.lowFreqFactor) / (rope.highFreqFactor - rope.lowFreqFactor);
  return (1 - smooth) * frequency / rope.factor + smooth * frequency;
}

// The dimension whose wavelength makes `rotations` turns over the original context.
static double yarnDimension(const RopeSpec &rope, double rotations) {
  return static_cast<double>(rope.dims) * std::log(static_cast<double>(rope.originalContext) / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(rope.theta));
}

static double yarnFrequency(const RopeSpec &rope, size_t i) {
  double low = yarnDimension(rope, rope.betaFast), high = yarnDimension(rope, rope.betaSlow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(rope.dims - 1));
  if (low == high)
    high += 0.001;
  double interpolated = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
  double frequency = baseFrequency(rope, i);
  return frequency / rope.factor * interpolated + frequency * (1 - interpolated);
}

static double yarnScale(double factor, double mscale) { return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1; }

static double attentionFactor(const RopeSpec &rope) {
  if (rope.attentionFactor)
    return *rope.attentionFactor;
  if (rope.scaling == RopeSpec::Scaling::LongRope && rope.factor > 1)
    return std::sqrt(1 + std::log(rope.factor) / std::log(static_cast<double>(rope.originalContext)));
  if (rope.scaling != RopeSpec::Scaling::Yarn)
    return 1;
  if (rope.mscale != 0 && rope.mscaleAllDim != 0)
    return yarnScale(rope.factor, rope.mscale) / yarnScale(rope.factor, rope.mscaleAllDim);
  return yarnScale(rope.factor, 1);
}

// Both sets of longrope, one after the other.
static void addLongRope(const RopeSpec &rope, RopeFrequencies &result) {
  result.original = rope.originalContext;
  for (const std::vector<double> *divisors : {&rope.shortFactors, &rope.longFactors})
    for (size_t i = 0; i < static_cast<size_t>(rope.dims / 2); ++i)
      result.frequencies.push_back(static_cast<float>(baseFrequency(rope, i) / (*divisors)[i]));
}

RopeFrequencies ropeFrequencies(const RopeSpec &rope) {
  RopeFrequencies result;
  result.factor = attentionFactor(rope);
  if (rope.scaling == RopeSpec::Scaling::LongRope) {
    addLongRope(rope, result);
    return result;
  }
  for (size_t i = 0; i < static_cast<size_t>(rope.dims / 2); ++i) {
    double frequency = baseFrequency(rope, i);
    if (rope.scaling == RopeSpec::Scaling::Linear)
      frequency /= rope.factor;
    else if (rope.scaling == RopeSpec::Scaling::Llama3)
      frequency = llama3Frequency(rope, frequency);
    else if (rope.scaling == RopeSpec::Scaling::Yarn)
      frequency = yarnFrequency(rope, i);
    if (!rope.frequencyDivisors.empty())
      frequency /= rope.frequencyDivisors[i];
    result.frequencies.push_back(static_cast<float>(frequency));
  }
  return result;
}

} // namespace mcc
