// The numbers behind `random:SEED`: a counter-based generator that fills rows of any storage format.
#pragma once

#include "kernels/Format.h"

#include <cstdint>

namespace mcc {

/// How the elements of one tensor are drawn: `mean + deviation * n`, n roughly standard normal (plain formats) or
/// uniform of that deviation within a block (block formats, which ignore `mean`).
struct RandomRecipe {
  uint64_t key = 0; ///< from the seed and the tensor's name
  double mean = 0, deviation = 1;
};

/// Writes `count` whole blocks of `format` to `out`, those with the numbers first, first + 1, ... of the tensor.
/// Every block depends on the key and its number alone (plain formats: every element). Needs no floating-point
/// property beyond IEEE single operations, so all machines write the same bytes.
void fillRandomBlocks(Format format, const RandomRecipe &recipe, uint64_t first, uint64_t count, uint8_t *out);

} // namespace mcc
