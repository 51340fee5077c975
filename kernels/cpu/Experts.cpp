// Mixtures of experts: the router's choice, a linear of the chosen experts, and their weighted sum.
//
// `experts` is `linear` on the panels of one expert after the other: a thread takes its share of every expert's panels and
// meets them with the rows that chose the expert, gathered kExpertTokens at a time. An output's sum runs over the columns
// in order, as linear's does, so neither the number of tokens nor who else chose an expert changes a bit.
#include "kernels/cpu/Linear.h"

using namespace mcc::cpu;

namespace {

enum Scoring { kSoftmax, kSelectedSoftmax, kSigmoid };

/// The numbers of a `route` launch.
struct Router {
  int64_t experts, chosen, scoring, normalize, groups, groupsChosen, groupScore;
  float scale;
};

} // namespace

// Replaces values[0, count) by exp(value - their maximum) and returns the sum. count > 0.
MCC_INLINE float exponentials(float *values, int64_t count) {
  float most = values[0];
  for (int64_t i = 1; i < count; ++i)
    most = values[i] > most ? values[i] : most;
  float sum = 0.0f;
  for (int64_t first = 0; first < count; first += kLanes) {
    const int64_t left = count - first;
    storePart(values + first, exponential(loadPart(values + first, left) - most), left);
  }
  for (int64_t i = 0; i < count; ++i)
    sum += values[i];
  return sum;
}

// scores[0, experts) from the logits.
MCC_INLINE void scoresOf(const Router &router, const float *logits, float *scores) {
  for (int64_t i = 0; i < router.experts; ++i)
    scores[i] = logits[i];
  if (router.scoring == kSoftmax) {
    const float sum = exponentials(scores, router.experts);
    for (int64_t i = 0; i < router.experts; ++i)
      scores[i] = scores[i] / sum;
  } else if (router.scoring == kSigmoid) {
    for (int64_t first = 0; first < router.experts; first += kLanes) {
      const int64_t left = router.experts - first;
      storePart(scores + first, sigmoid(loadPart(scores + first, left)), left);
    }
  }
}

// Returns the first of the largest of ranks[0, count).
MCC_INLINE int64_t bestOf(const float *ranks, int64_t count) {
  int64_t best = 0;
  for (int64_t i = 1; i < count; ++i)
    best = ranks[i] > ranks[best] ? i : best;
  return best;
}

// Makes the ranks of experts outside the best groups -infinity.
MCC_INLINE void keepBestGroups(const Router &router, float *ranks) {
  const int64_t size = router.experts / router.groups;
  // A group is kept if fewer than groupsChosen groups are better, or equal and before it.
  const auto groupRank = [=](int64_t group) __attribute__((always_inline)) {
    float best = -__builtin_inff(), second = -__builtin_inff();
    for (int64_t i = group * size; i < (group + 1) * size; ++i) {
      const float rank = ranks[i];
      second = rank > best ? best : rank > second ? rank : second;
      best = rank > best ? rank : best;
    }
    return router.groupScore == 0 ? best : best + second;
  };
  uint64_t dropped[16] = {}; // up to 1024 groups
  for (int64_t group = 0; group < router.groups; ++group) {
    const float own = groupRank(group);
    int64_t better = 0;
    for (int64_t other = 0; other < router.groups; ++other) {
      const float rank = groupRank(other);
      better += rank > own || (rank == own && other < group);
    }
    if (better >= router.groupsChosen)
      dropped[group / 64] |= uint64_t(1) << group % 64;
  }
  for (int64_t i = 0; i < router.experts; ++i)
    if (dropped[i / size / 64] >> (i / size % 64) & 1)
      ranks[i] = -__builtin_inff();
}

MCC_INLINE void routeToken(const Router &router, const float *logits, const float *bias, float *y, float *scratch) {
  const int64_t aligned = roundUp(router.experts, kLanes);
  float *scores = scratch, *ranks = scratch + aligned;
  scoresOf(router, logits, scores);
  for (int64_t i = 0; i < router.experts; ++i)
    ranks[i] = bias ? scores[i] + bias[i] : scores[i];
  if (router.groups > 1)
    keepBestGroups(router, ranks);
  for (int64_t slot = 0; slot < router.chosen; ++slot) {
    const int64_t expert = bestOf(ranks, router.experts);
    y[slot] = scores[expert];
    y[router.chosen + slot] = static_cast<float>(expert);
    ranks[expert] = -__builtin_inff();
  }
  float factor = router.scale;
  if (router.scoring == kSelectedSoftmax) {
    const float sum = exponentials(y, router.chosen);
    for (int64_t slot = 0; slot < router.chosen; ++slot)
      y[slot] = y[slot] / sum;
  }
  if (router.normalize) {
    float sum = router.scoring == kSigmoid ? 1e-20f : 0.0f;
    for (int64_t slot = 0; slot < router.chosen; ++slot)
      sum += y[slot];
    factor = factor / sum;
  }
  for (int64_t slot = 0; slot < router.chosen; ++slot)
    y[slot] = y[slot] * factor;
}

MCC_VECTOR void mcc_cpu_route(const MccStep *step, int64_t tokens, const float *x, const float *bias, float *y,
                              int64_t experts, int64_t chosen, int64_t scoring, int64_t normalize, int64_t groups,
                              int64_t groupsChosen, int64_t groupScore, int64_t xStride, int64_t yStride, float scale) {
  const Router router = {experts, chosen, scoring, normalize, groups, groupsChosen, groupScore, scale};
  const Range share = shareOf(step, tokens);
  for (int64_t t = share.begin; t < share.end; ++t)
    routeToken(router, x + t * xStride, bias, y + t * yStride, reinterpret_cast<float *>(step->scratch));
}

namespace {

/// One launch of `experts` but for its format.
struct ExpertsLaunch {
  LinearLaunch linear; ///< of expert 0, for no tokens; `scratch` after the gathered rows
  const float *picks;
  int64_t experts, chosen, ownRows, picksStride;
  float *gathered; ///< [kExpertTokens][rowStride(cols)]
};

} // namespace

// The rows that chose one expert, up to kExpertTokens of them.
template <class PanelFormat>
MCC_INLINE void multiplyGathered(const ExpertsLaunch &launch, int64_t expert, int64_t count, const int64_t *places) {
  LinearLaunch linear = launch.linear;
  const int64_t perUnit = linear.epilogue.gated ? 2 : 1, outputs = linear.epilogue.rows * perUnit;
  linear.tokens = count;
  linear.x = launch.gathered;
  linear.xStride = rowStride(linear.cols);
  linear.weight += expert * (outputs / kLanes) * panelBytes<PanelFormat>(linear.cols);
  if (linear.epilogue.bias)
    linear.epilogue.bias += expert * outputs;
  linear.epilogue.places = places;
  multiply<PanelFormat>(linear);
}

template <class PanelFormat>
MCC_INLINE void runExperts(const ExpertsLaunch &launch, int64_t tokens) {
  const int64_t cols = launch.linear.cols, stride = rowStride(cols);
  int64_t places[kExpertTokens];
  for (int64_t expert = 0; expert < launch.experts; ++expert) {
    int64_t count = 0;
    for (int64_t t = 0; t < tokens; ++t) {
      const float *numbers = launch.picks + t * launch.picksStride + launch.chosen;
      for (int64_t slot = 0; slot < launch.chosen; ++slot) {
        if (static_cast<int64_t>(numbers[slot]) != expert)
          continue;
        const float *from = launch.linear.x + t * launch.linear.xStride + (launch.ownRows ? slot * cols : 0);
        for (int64_t i = 0; i < cols; i += kLanes)
          storePart(launch.gathered + count * stride + i, loadPart(from + i, cols - i), cols - i);
        places[count++] = t * launch.linear.epilogue.yStride + slot * launch.linear.epilogue.rows;
        if (count == kExpertTokens) {
          multiplyGathered<PanelFormat>(launch, expert, count, places);
          count = 0;
        }
      }
    }
    if (count > 0)
      multiplyGathered<PanelFormat>(launch, expert, count, places);
  }
}

#define MCC_DEFINE(enumerator, suffix)                                                                                 \
  MCC_VECTOR void mcc_cpu_experts_##suffix(                                                                            \
      const MccStep *step, int64_t tokens, const float *x, const float *picks, const uint8_t *weight,                  \
      const float *bias, float *y, int64_t experts, int64_t chosen, int64_t rows, int64_t cols, int64_t ownRows,       \
      int64_t xStride, int64_t picksStride, int64_t yStride, int64_t activation, int64_t gated, float limit,           \
      float upOffset) {                                                                                                \
    float *gathered = reinterpret_cast<float *>(step->scratch);                                                        \
    const Epilogue epilogue = {bias, nullptr, y, rows, yStride, 0, activation, gated != 0, 1.0f, limit, upOffset};     \
    const LinearLaunch linear = {step,    0,      x,       weight,                                                     \
                                 cols,    xStride, gathered + kExpertTokens * rowStride(cols), epilogue};              \
    runExperts<Panel##enumerator>({linear, picks, experts, chosen, ownRows, picksStride, gathered}, tokens);           \
  }
MCC_FOR_EACH_FORMAT(MCC_DEFINE)
#undef MCC_DEFINE

MCC_VECTOR void mcc_cpu_combine(const MccStep *step, int64_t tokens, const float *weights, const float *x, float *y,
                                int64_t slots, int64_t cols, int64_t weightsStride, int64_t xStride, int64_t yStride) {
  // One token's columns are split too: decode has but one.
  const int64_t panels = roundUp(cols, kLanes) / kLanes;
  const Range share = shareOf(step, tokens * panels);
  for (int64_t item = share.begin; item < share.end; ++item) {
    const int64_t t = item / panels, column = item % panels * kLanes, left = cols - column;
    F32x16 sum = splat(0.0f);
    for (int64_t slot = 0; slot < slots; ++slot)
      sum += loadPart(x + t * xStride + slot * cols + column, left) * weights[t * weightsStride + slot];
    storePart(y + t * yStride + column, sum, left);
  }
}
