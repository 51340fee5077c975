// Slopes of linear position biases (ALiBi).
#pragma once

#include "compiler/Import/ModelSpec.h"

#include <vector>

namespace mcc {

/// Returns the slope of every head. For `heads` that is no power of two, the slopes of the next lower power come first, then
/// every other slope of the next higher (Press et al. 2022). A `scaled` bias is multiplied by `scale`, the scale of the scores.
std::vector<float> alibiSlopes(const AlibiSpec &alibi, int64_t heads, double scale);

} // namespace mcc
