// A generation barrier. The last thread to arrive resets the count and raises the generation; the others look
// at the generation `spins` times and then sleep on it with a futex.
//
// Invariant: no wake-up is lost. A waiter adds itself to `sleepers` before it asks the kernel to sleep, and the
// kernel compares the generation again under its own lock; the releaser raises the generation before it reads
// `sleepers`. Both are sequentially consistent, so either the releaser sees the sleeper, or the sleeper sees the
// new generation.
#include "runtime-lib/src/Barrier.h"

#include <climits>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t), "a futex is a plain 32-bit word");

/// Tells the processor that this is a spin loop.
static inline void pauseBriefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

static void futex(std::atomic<uint32_t> &word, int operation, uint32_t value) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), operation, value, nullptr, nullptr, 0);
}

void MccBarrier::arriveAndWait() {
  if (threads == 1)
    return;
  const uint32_t seen = generation.load(std::memory_order_relaxed);
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == threads) {
    arrived.store(0, std::memory_order_relaxed);
    generation.store(seen + 1, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) > 0)
      futex(generation, FUTEX_WAKE_PRIVATE, INT_MAX);
    return;
  }
  for (int spin = 0; spin < spins; ++spin) {
    if (generation.load(std::memory_order_acquire) != seen)
      return;
    pauseBriefly();
  }
  sleepWhile(seen);
}

void MccBarrier::sleepWhile(uint32_t seen) {
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  // A signal or a stale wake-up ends the sleep early, hence the loop.
  while (generation.load(std::memory_order_seq_cst) == seen)
    futex(generation, FUTEX_WAIT_PRIVATE, seen);
  sleepers.fetch_sub(1, std::memory_order_relaxed);
}

// C ABI; hidden visibility is enough, since the generated object is linked into the same executable.
extern "C" void mccrt_barrier(const MccStep *step) { step->barrier->arriveAndWait(); }
