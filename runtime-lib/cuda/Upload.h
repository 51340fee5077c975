// Weights to the device at the speed of the link.
#pragma once

#include "runtime-lib/src/Result.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace mcc::runtime {

/// One stretch of bytes to copy.
struct UploadPiece {
  const uint8_t *from = nullptr; ///< mapped from a file
  uint8_t *to = nullptr;         ///< on the device
  uint64_t bytes = 0;
};

/// Copies all pieces and waits. Several threads read pages into page-locked buffers while earlier ones are on their way.
/// `progress` (may be empty) is told of bytes done, of all, one call at a time.
Status upload(const std::vector<UploadPiece> &pieces, const std::function<void(uint64_t, uint64_t)> &progress);

} // namespace mcc::runtime
