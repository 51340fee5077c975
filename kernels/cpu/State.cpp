// Kernels with a state of the sequence: the causal convolution and the three scans.
//
// Lanes are channels, or the entries of a head that a scan keeps apart: 16 make a panel, which one thread takes through all
// tokens of the step. Its state, [depth][16], stays in the first-level cache meanwhile. A token's sum over the depth is four
// chains, of every fourth row each, that meet at the end; nothing depends on the number of tokens, so a prompt in one
// step, in chunks or token by token leaves the same bits.
#include "kernels/cpu/Kernels.h"
#include "kernels/cpu/Sizes.h"
#include "kernels/cpu/VectorMath.h"
#include "kernels/cpu/Work.h"

using namespace mcc::cpu;

static constexpr int64_t kChains = 4;

// Sums that take turns: row n goes to chain n % kChains.
struct Chains {
  F32x16 sums[kChains];
};

MCC_INLINE F32x16 total(const Chains &chains) {
  return (chains.sums[0] + chains.sums[1]) + (chains.sums[2] + chains.sums[3]);
}

// Returns the sum over rows [0, depth) of term(row), in chains.
template <class Term>
MCC_INLINE F32x16 sumRows(int64_t depth, Term term) {
  Chains chains = {{splat(0.0f), splat(0.0f), splat(0.0f), splat(0.0f)}};
  int64_t row = 0;
  for (; row + kChains <= depth; row += kChains)
    MCC_UNROLL
    for (int64_t i = 0; i < kChains; ++i)
      chains.sums[i] = term(row + i, chains.sums[i]);
  for (int64_t i = 0; row + i < depth; ++i)
    chains.sums[i] = term(row + i, chains.sums[i]);
  return total(chains);
}

// A function of one number, by its vector form.
template <class Function>
MCC_INLINE float scalar(float x, Function function) {
  float lanes[kLanes];
  store(lanes, function(splat(x)));
  return lanes[0];
}

MCC_INLINE float exponential(float x) {
  return scalar(x, [](F32x16 v) __attribute__((always_inline)) { return exponential(v); });
}
MCC_INLINE float softplus(float x) {
  return scalar(x, [](F32x16 v) __attribute__((always_inline)) { return softplus(v); });
}
MCC_INLINE float sigmoid(float x) {
  return scalar(x, [](F32x16 v) __attribute__((always_inline)) { return sigmoid(v); });
}

MCC_VECTOR void mcc_cpu_conv(const MccStep *step, int64_t tokens, const float *x, const float *weight,
                             const float *bias, float *state, float *y, int64_t channels, int64_t taps,
                             int64_t xStride, int64_t yStride, int64_t activation) {
  const int64_t before = taps - 1, stateRow = roundUp(channels, kLanes);
  const Range panels = shareOf(step, stateRow / kLanes);
  for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
    const int64_t first = panel * kLanes, left = channels - first;
    const float *taken = weight + first * taps;
    float *history = before > 0 ? state + first : nullptr; // one tap has no state
    // Row r of the inputs, counted from the step's first token.
    const auto input = [=](int64_t row) __attribute__((always_inline)) {
      return row < 0 ? load(history + (row + before) * stateRow) : loadPart(x + row * xStride + first, left);
    };
    for (int64_t t = 0; t < tokens; ++t) {
      F32x16 sum = bias ? loadPart(bias + first, left) : splat(0.0f);
      for (int64_t k = 0; k < taps; ++k)
        sum += load(taken + k * kLanes) * input(t - before + k);
      storePart(y + t * yStride + first, activate(sum, activation), left);
    }
    for (int64_t row = 0; row < before; ++row) // forwards: a row moves to an earlier one
      store(history + row * stateRow, input(tokens - before + row));
  }
}

MCC_VECTOR void mcc_cpu_selective_scan(const MccStep *step, int64_t tokens, const float *x, const float *dt,
                                       const float *b, const float *c, const float *a, const float *skip,
                                       float *state, float *y, int64_t channels, int64_t depth, int64_t xStride,
                                       int64_t dtStride, int64_t bStride, int64_t cStride, int64_t yStride) {
  const Range panels = shareOf(step, roundUp(channels, kLanes) / kLanes);
  for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
    const int64_t first = panel * kLanes, left = channels - first;
    const float *rates = a + first * depth;
    float *h = state + first * depth;
    const F32x16 through = loadPart(skip + first, left);
    for (int64_t t = 0; t < tokens; ++t) {
      const F32x16 value = loadPart(x + t * xStride + first, left);
      const F32x16 time = softplus(loadPart(dt + t * dtStride + first, left)), added = time * value;
      const float *in = b + t * bStride, *out = c + t * cStride;
      const F32x16 sum = sumRows(depth, [=](int64_t n, F32x16 chain) __attribute__((always_inline)) {
        const F32x16 kept = exponential(time * load(rates + n * kLanes)) * load(h + n * kLanes);
        const F32x16 next = kept + added * in[n];
        store(h + n * kLanes, next);
        return chain + next * out[n];
      });
      storePart(y + t * yStride + first, sum + through * value, left);
    }
  }
}

MCC_VECTOR void mcc_cpu_state_scan(const MccStep *step, int64_t tokens, const float *x, const float *dt,
                                   const float *b, const float *c, const float *a, const float *dtBias,
                                   const float *skip, float *state, float *y, int64_t heads, int64_t headDim,
                                   int64_t groups, int64_t depth, int64_t xStride, int64_t dtStride, int64_t bStride,
                                   int64_t cStride, int64_t yStride, float timeMin, float timeMax) {
  const int64_t panels = roundUp(headDim, kLanes) / kLanes;
  const Range share = shareOf(step, heads * panels);
  for (int64_t item = share.begin; item < share.end; ++item) {
    const int64_t head = item / panels, entry = item % panels * kLanes, left = headDim - entry;
    const int64_t column = head * headDim + entry, group = head / (heads / groups) * depth;
    float *s = state + item * depth * kLanes;
    for (int64_t t = 0; t < tokens; ++t) {
      float time = softplus(dt[t * dtStride + head] + dtBias[head]);
      time = time < timeMin ? timeMin : time;
      time = time > timeMax ? timeMax : time;
      const float decay = exponential(time * a[head]);
      const F32x16 value = loadPart(x + t * xStride + column, left), added = time * value;
      const float *in = b + t * bStride + group, *out = c + t * cStride + group;
      const F32x16 sum = sumRows(depth, [=](int64_t n, F32x16 chain) __attribute__((always_inline)) {
        const F32x16 kept = decay * load(s + n * kLanes);
        const F32x16 next = kept + added * in[n];
        store(s + n * kLanes, next);
        return chain + next * out[n];
      });
      storePart(y + t * yStride + column, sum + skip[head] * value, left);
    }
  }
}

// Returns 1 / the Euclidean length of x[0, count), as the delta rule takes it.
MCC_INLINE float inverseLength(const float *x, int64_t count) {
  F32x16 squares = splat(0.0f);
  for (int64_t i = 0; i < count; i += kLanes) {
    const F32x16 value = loadPart(x + i, count - i);
    squares += value * value;
  }
  return 1.0f / __builtin_sqrtf(sumLanes(squares) + 1e-6f);
}

// One token of the delta rule on a panel: s is [keyDim][16]; the lengths of key and query are factors.
MCC_INLINE F32x16 deltaToken(const float *query, float queryFactor, const float *key, float keyFactor, F32x16 value,
                             float beta, float decay, int64_t keyDim, float *s) {
  const F32x16 known = sumRows(keyDim, [=](int64_t i, F32x16 chain) __attribute__((always_inline)) {
    const F32x16 kept = decay * load(s + i * kLanes);
    store(s + i * kLanes, kept);
    return chain + kept * (key[i] * keyFactor);
  });
  const F32x16 change = (value - known) * beta;
  return sumRows(keyDim, [=](int64_t i, F32x16 chain) __attribute__((always_inline)) {
    const F32x16 next = load(s + i * kLanes) + change * (key[i] * keyFactor);
    store(s + i * kLanes, next);
    return chain + next * (query[i] * queryFactor);
  });
}

MCC_VECTOR void mcc_cpu_delta_scan(const MccStep *step, int64_t tokens, const float *q, const float *k, const float *v,
                                   const float *beta, const float *decay, const float *a, const float *dtBias,
                                   float *state, float *y, int64_t keyHeads, int64_t valueHeads, int64_t keyDim,
                                   int64_t valueDim, int64_t qStride, int64_t kStride, int64_t vStride,
                                   int64_t betaStride, int64_t decayStride, int64_t yStride) {
  const int64_t panels = roundUp(valueDim, kLanes) / kLanes;
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(keyDim));
  const Range share = shareOf(step, valueHeads * panels);
  for (int64_t item = share.begin; item < share.end; ++item) {
    const int64_t head = item / panels, entry = item % panels * kLanes, left = valueDim - entry;
    const int64_t column = head * valueDim + entry, keyColumn = head / (valueHeads / keyHeads) * keyDim;
    float *s = state + item * keyDim * kLanes;
    for (int64_t t = 0; t < tokens; ++t) {
      const float *query = q + t * qStride + keyColumn, *key = k + t * kStride + keyColumn;
      const float rate = softplus(decay[t * decayStride + head] + dtBias[head]);
      const F32x16 sum = deltaToken(query, inverseLength(query, keyDim) * scale, key, inverseLength(key, keyDim),
                                    loadPart(v + t * vStride + column, left), sigmoid(beta[t * betaStride + head]),
                                    exponential(a[head] * rate), keyDim, s);
      storePart(y + t * yStride + column, sum, left);
    }
  }
}
