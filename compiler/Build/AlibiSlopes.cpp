// Slopes of linear position biases. See AlibiSlopes.h.
#include "compiler/Build/AlibiSlopes.h"

#include <cmath>

namespace mcc {

std::vector<float> alibiSlopes(const AlibiSpec &alibi, int64_t heads, double scale) {
  int64_t lower = 1;
  while (lower * 2 <= heads)
    lower *= 2;
  std::vector<float> slopes;
  auto push = [&](double exponent) { slopes.push_back(static_cast<float>(std::exp2(-exponent) * (alibi.scaled ? scale : 1))); };
  for (int64_t i = 1; i <= lower; ++i)
    push(alibi.maxBias * static_cast<double>(i) / static_cast<double>(lower));
  for (int64_t i = 1; static_cast<int64_t>(slopes.size()) < heads; i += 2)
    push(alibi.maxBias * static_cast<double>(i) / static_cast<double>(2 * lower));
  return slopes;
}

} // namespace mcc
