// The barrier between the kernels of a step, also used to start and finish steps.
#pragma once

#include "kernels/Step.h"

#include <atomic>
#include <cstdint>

/// A reusable barrier for a fixed number of threads: spins, then sleeps in the kernel.
/// Memory written before arriveAndWait by any thread is visible to all after it.
struct MccBarrier {
  /// `spins`: how often to look before sleeping; small where threads outnumber processors.
  MccBarrier(int64_t threads, int spins) : threads(static_cast<int32_t>(threads)), spins(spins) {}

  /// Returns when all threads have called it. Returns at once for one thread.
  void arriveAndWait();

private:
  void sleepWhile(uint32_t seen);

  // Three lines: arrivals write the first while waiters read the second.
  alignas(64) std::atomic<int32_t> arrived{0};
  alignas(64) std::atomic<uint32_t> generation{0};
  alignas(64) std::atomic<int32_t> sleepers{0};
  alignas(64) const int32_t threads;
  const int spins;
};
