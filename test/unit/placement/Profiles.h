// A made-up machine for tests: a two-core CPU beside a large GPU.
#pragma once

#include "runtime-lib/placement/Profile.h"

namespace mcc::placement::test {

/// Returns a profile with both devices, times following simple laws: CPU 20 GB/s and 100 GFLOP/s, GPU 4 TB/s and
/// 400 TFLOP/s, launches of 1 and 2 us, copies of 10 us and 50 GB/s (pageable 7 GB/s).
Profile makeProfile();

} // namespace mcc::placement::test
