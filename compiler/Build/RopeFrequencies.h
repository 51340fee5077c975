// Inverse frequencies of rotary embeddings, with the scalings that checkpoints ask for.
#pragma once

#include "compiler/Import/ModelSpec.h"

#include <vector>

namespace mcc {

/// What mcc.rotary needs: an angle is position * frequency; cosines and sines are multiplied by `factor`.
struct RopeFrequencies {
  std::vector<float> frequencies; ///< [dims/2], or twice as many where `original` is set: of shorter and of longer sequences
  double factor = 1;
  int64_t original = 0; ///< tokens up to which the first frequencies hold
};

/// Returns the frequencies of `rope`, which is not of scaling `dynamic`: there they are another for every length.
RopeFrequencies ropeFrequencies(const RopeSpec &rope);

} // namespace mcc
