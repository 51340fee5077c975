// Where a plan's regions lie on the device, and how much they take.
#pragma once

#include "mcc/Model.h"
#include "runtime-lib/cuda/LaunchTable.h"

#include <cstdint>
#include <vector>

namespace mcc::runtime {

/// Offsets into three blocks: weights and caches hold only what launches on the GPU use, the arena is whole.
struct DeviceLayout {
  uint64_t weightBytes = 0, cacheBytes = 0, arenaBytes = 0;
  WorkspaceBytes workspace;
  std::vector<uint64_t> offsets; ///< by region, into the block of its space; ~0 where it is not on the GPU

  static constexpr uint64_t absent = ~uint64_t(0);
};

/// Lays out what the launches that are on the GPU use.
DeviceLayout layOut(const MccModel &model, const std::vector<bool> &onGpu, int prefillParts);

} // namespace mcc::runtime
