// Mixtures of experts, written from their definitions. See Experts.h.
#include "kernels/reference/Experts.h"

#include "kernels/reference/Reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mcc::reference {

// Returns exp(v - max) / sum.
static std::vector<double> softmax(std::vector<double> values) {
  const double most = *std::max_element(values.begin(), values.end());
  double sum = 0;
  for (double &value : values)
    sum += value = std::exp(value - most);
  for (double &value : values)
    value /= sum;
  return values;
}

// Returns which experts are in the best groups.
static std::vector<bool> eligible(const Router &router, const std::vector<double> &ranks) {
  const int64_t size = router.experts / router.groups;
  std::vector<double> groupRanks;
  for (int64_t group = 0; group < router.groups; ++group) {
    std::vector<double> members(ranks.begin() + group * size, ranks.begin() + (group + 1) * size);
    std::sort(members.rbegin(), members.rend());
    groupRanks.push_back(router.groupScore == 0 ? members[0] : members[0] + members[1]);
  }
  std::vector<int64_t> order(router.groups);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return groupRanks[a] != groupRanks[b] ? groupRanks[a] > groupRanks[b] : a < b; });
  std::vector<bool> result(router.experts, false);
  for (int64_t i = 0; i < router.groupsChosen; ++i)
    std::fill_n(result.begin() + order[i] * size, size, true);
  return result;
}

std::vector<Pick> route(const Router &router, const float *logits, const float *bias) {
  std::vector<double> scores(logits, logits + router.experts);
  if (router.scoring == 0)
    scores = softmax(scores);
  if (router.scoring == 2)
    for (double &score : scores)
      score = 1 / (1 + std::exp(-score));
  std::vector<double> ranks = scores;
  for (int64_t i = 0; bias && i < router.experts; ++i)
    ranks[i] += bias[i];
  const std::vector<bool> allowed = eligible(router, ranks);
  std::vector<int64_t> order(router.experts);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return allowed[a] != allowed[b] ? allowed[a] : ranks[a] != ranks[b] ? ranks[a] > ranks[b] : a < b;
  });

  std::vector<double> weights;
  for (int64_t slot = 0; slot < router.chosen; ++slot)
    weights.push_back(scores[order[slot]]);
  if (router.scoring == 1)
    weights = softmax(weights);
  const double sum = std::accumulate(weights.begin(), weights.end(), router.scoring == 2 ? 1e-20 : 0.0);
  std::vector<Pick> picks;
  for (int64_t slot = 0; slot < router.chosen; ++slot)
    picks.push_back({order[slot], weights[slot] / (router.normalize ? sum : 1) * router.scale});
  return picks;
}

void expert(const Expert &expert, const float *x, float *y) {
  const auto dot = [&](const float *weight, const float *bias, int64_t row) {
    double sum = bias ? bias[row] : 0;
    for (int64_t i = 0; i < expert.cols; ++i)
      sum += static_cast<double>(weight[row * expert.cols + i]) * x[i];
    return sum;
  };
  for (int64_t row = 0; row < expert.rows; ++row) {
    double value = dot(expert.weight, expert.bias, row);
    if (expert.up == nullptr) {
      y[row] = static_cast<float>(activate(value, expert.activation));
      continue;
    }
    double up = dot(expert.up, expert.upBias, row);
    if (expert.limit != 0) {
      value = std::min(value, expert.limit);
      up = std::clamp(up, -expert.limit, expert.limit);
    }
    y[row] = static_cast<float>(activate(value, expert.activation) * (up + expert.upOffset));
  }
}

void combine(const float *weights, const float *x, float *y, int64_t slots, int64_t cols) {
  for (int64_t i = 0; i < cols; ++i) {
    double sum = 0;
    for (int64_t slot = 0; slot < slots; ++slot)
      sum += static_cast<double>(weights[slot]) * x[slot * cols + i];
    y[i] = static_cast<float>(sum);
  }
}

} // namespace mcc::reference
