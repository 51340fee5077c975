// Rotary parameters from GGUF metadata.
#pragma once

#include "compiler/Import/GgufKeys.h"
#include "compiler/Import/ModelSpec.h"

namespace mcc {

/// Reads the rotary embedding of heads of `headDim` dimensions. Errors are left in `keys`.
RopeSpec readGgufRope(GgufKeys &keys, const ModelSpec &spec, RopeSpec::Pairing pairing, int64_t headDim);

/// Returns the unscaled rotation of sliding layers where it is not that of the `full` ones: of base `rope.freq_base_swa`, where
/// absent `absentTheta`, where 0 the full layers'.
RopeSpec slidingGgufRope(GgufKeys &keys, const RopeSpec &full, double absentTheta);

} // namespace mcc
