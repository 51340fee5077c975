// Dequantisation of the formats that store indices into codebooks.
#pragma once

#include <cstdint>

namespace mcc {

/// Each writes the 256 elements of a block.
void blockIq1S(const uint8_t *in, float *out);
void blockIq1M(const uint8_t *in, float *out);
void blockIq2Xxs(const uint8_t *in, float *out);
void blockIq2Xs(const uint8_t *in, float *out);
void blockIq2S(const uint8_t *in, float *out);
void blockIq3Xxs(const uint8_t *in, float *out);
void blockIq3S(const uint8_t *in, float *out);

} // namespace mcc
