// Inverse frequencies of rotary embeddings, with the scalings that checkpoints ask for.
#pragma once

#include "compiler/Import/ModelSpec.h"

#include <vector>

namespace mcc {

/// What mcc.rotary needs: an angle is position * frequency; cosines and sines are multiplied by `factor`.
struct RopeFrequencies {
  std::vector<float> frequencies; ///< [dims/2]
  double factor = 1;
};

/// Returns the frequencies of `rope`. Scalings that depend on the length at run time (dynamic, longrope) are not handled here.
RopeFrequencies ropeFrequencies(const RopeSpec &rope);

} // namespace mcc
