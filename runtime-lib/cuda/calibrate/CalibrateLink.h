// Copies between host and device, and what names the link has.
#pragma once

#include "runtime-lib/cuda/calibrate/GraphTimer.h"
#include "runtime-lib/placement/Profile.h"

namespace mcc::placement {

/// Measures copies both ways, from and to pinned and pageable memory, for about `budgetNs`. `device` is memory of
/// `bytes` to copy with.
Result<Link> calibrateLink(runtime::GraphTimer &timer, uint8_t *device, uint64_t bytes, double budgetNs);

/// Returns "32.0 GT/s PCIe x16", what the system says of device 0's slot; "unknown" where it does not.
std::string linkName();

/// Returns the version of the driver as the system knows it ("580.159.04"), or the CUDA version that it supports.
std::string driverName(int cudaVersion);

} // namespace mcc::placement
