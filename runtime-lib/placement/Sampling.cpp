// Passes over the points, from small work to large, one sample each of those that are still affordable. What a point
// will take is known from its last sample, or guessed from the nearest smaller one in proportion.
#include "runtime-lib/placement/Sampling.h"

#include <algorithm>
#include <chrono>

namespace mcc::placement {

using Clock = std::chrono::steady_clock;

/// Returns how long a point should take.
static double expectedNs(const SampleFamily &family, size_t point) {
  if (!family[point].rawNs.empty())
    return family[point].rawNs.back();
  double ns = 0, nearest = 0;
  for (const SamplePoint &known : family)
    if (!known.rawNs.empty() && known.work > nearest && known.work <= family[point].work) {
      nearest = known.work;
      ns = known.rawNs.back() * family[point].work / known.work;
    }
  return ns;
}

/// Returns (family, point) from small to large work, so that a small budget reaches something of each family.
static std::vector<std::pair<size_t, size_t>> orderOf(const std::vector<SampleFamily> &families) {
  std::vector<std::pair<size_t, size_t>> order;
  for (size_t f = 0; f < families.size(); ++f)
    for (size_t p = 0; p < families[f].size(); ++p)
      if (families[f][p].possible)
        order.emplace_back(f, p);
  std::sort(order.begin(), order.end(), [&](const auto &a, const auto &b) {
    return std::pair(families[a.first][a.second].work, a) < std::pair(families[b.first][b.second].work, b);
  });
  return order;
}

void takeSamples(std::vector<SampleFamily> &families, const SampleBudget &budget,
                 const std::function<double(size_t, size_t, double)> &sample) {
  const auto end = Clock::now() + std::chrono::nanoseconds(static_cast<int64_t>(budget.budgetNs));
  const auto leftNs = [&] { return std::chrono::duration<double, std::nano>(end - Clock::now()).count(); };
  const std::vector<std::pair<size_t, size_t>> order = orderOf(families);
  // The first passes take cheap points only, for medians there; then no sample may take much of what is left.
  constexpr size_t cheapPasses = 3;
  for (size_t pass = 0, lastTaken = 0; pass < budget.mostRepeats && pass <= lastTaken + cheapPasses; ++pass)
    for (const auto &[f, p] : order) {
      SampleFamily &family = families[f];
      const bool needed =
          std::all_of(family.begin(), family.end(), [](const SamplePoint &q) { return q.rawNs.empty(); });
      const double ns = expectedNs(family, p), jobNs = budget.overheadNs + std::max(ns, budget.shortestNs);
      const double mostNs = std::min(leftNs() / 8, pass < cheapPasses ? budget.budgetNs / 1000 : leftNs());
      if (!needed && jobNs > mostNs)
        continue;
      const double taken = sample(f, p, ns);
      if (taken < 0)
        return;
      family[p].rawNs.push_back(std::max(taken, 1.0));
      lastTaken = pass;
    }
}

runtime::Result<Curve> curveOf(const SampleFamily &family) {
  std::vector<Curve::Sample> samples;
  for (const SamplePoint &point : family)
    if (!point.rawNs.empty())
      samples.push_back({point.size, point.rawNs});
  return Curve::make(std::move(samples));
}

runtime::Result<GemmTable> tableOf(std::array<GemmTable::Axis, 3> axes, const SampleFamily &family) {
  std::vector<RawNs> cells;
  for (const SamplePoint &point : family)
    cells.push_back(point.rawNs);
  return GemmTable::make(std::move(axes), std::move(cells));
}

} // namespace mcc::placement
