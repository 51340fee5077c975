// A team of spinning threads that run kernels together, and the timing of what they run.
#pragma once

#include "kernels/Step.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

/// The barrier of a bench's steps: spins, for the threads have their cores to themselves.
struct MccBarrier {
  std::atomic<int64_t> arrived{0}, phase{0};
  int64_t threads = 1;
  void wait();
};

namespace mcc::bench {

/// How long a body took. Neighbours on a shared core slow a kernel and the pace it is compared with alike, so that
/// `cycles` is the steadier figure for work that is not bound by memory.
struct Timing {
  double seconds;
  double cycles; ///< in units of two independent vector operations run just before and after
};

/// Threads that repeat one body in step.
class Team {
public:
  /// Starts threads - 1 workers; the caller is the first. Each has `scratchBytes` of scratch.
  Team(int64_t threads, int64_t scratchBytes);
  ~Team();
  Team(const Team &) = delete;

  /// Runs body(step) on every thread, with `tokens` tokens at `position`, and waits for all.
  void run(int64_t tokens, int64_t position, const std::function<void(const MccStep *)> &body);

  /// Returns the medians of `repeats` runs, after one to warm up.
  Timing time(int64_t repeats, int64_t tokens, int64_t position, const std::function<void(const MccStep *)> &body);

private:
  void work(int64_t thread);

  MccBarrier barrier;
  std::vector<MccStep> steps;
  std::vector<std::unique_ptr<uint8_t, void (*)(void *)>> scratch;
  std::vector<std::thread> workers;
  const std::function<void(const MccStep *)> *body = nullptr;
};

} // namespace mcc::bench
