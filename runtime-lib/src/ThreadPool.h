// The worker threads that run steps.
#pragma once

#include "kernels/Step.h"
#include "runtime-lib/src/Barrier.h"
#include "runtime-lib/src/Processors.h"
#include "runtime-lib/src/Result.h"

#include <memory>
#include <pthread.h>
#include <vector>

namespace mcc::runtime {

/// Most threads a pool may have: past it, a typing error is likelier than a machine.
inline constexpr int64_t maxThreads = 1024;

/// Runs a step function on a fixed number of threads; the caller of run() is worker 0.
/// Workers spin briefly between steps, then sleep. Not thread-safe: one caller at a time.
class ThreadPool {
public:
  using StepFunction = void (*)(const MccStep *);

  /// Starts `threads` - 1 workers, 1 <= threads <= maxThreads. `processors` tells whether spinning pays, and where
  /// workers may go.
  static Result<std::unique_ptr<ThreadPool>> create(StepFunction step, int64_t threads, const Processors &processors);
  /// Stops and joins the workers.
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  /// Runs one step on every worker and returns when all have finished. Each gets a copy of `shared` with its own
  /// `thread`, `threads`, `barrier`, and `scratch` moved on by `scratchStride` bytes per worker.
  void run(const MccStep &shared, uint64_t scratchStride) { run(shared, scratchStride, step); }
  /// The same with another function than the pool's own.
  void run(const MccStep &shared, uint64_t scratchStride, StepFunction function);

  int64_t threads() const { return threadCount; }

private:
  ThreadPool(StepFunction step, int64_t threads, const Processors &processors);
  static void *workerMain(void *argument);
  void runShare(int64_t thread);
  void takeSeat(int64_t thread);

  /// The processor on which a thread began its share of the step, on a line of its own.
  struct alignas(64) Seat {
    std::atomic<int> processor{-1};
  };

  struct Worker {
    ThreadPool *pool;
    int64_t thread;
    pthread_t handle;
  };

  MccBarrier barrier;
  const StepFunction step;
  const int64_t threadCount;
  const std::vector<int> cores;
  std::vector<Seat> seats;
  // Written by the caller before the starting barrier, read by workers after it.
  MccStep job{};
  StepFunction work = nullptr;
  uint64_t scratchStride = 0;
  bool stopping = false;
  std::vector<Worker> workers;
  // Workers wait here until all exist: a barrier cannot be left by fewer threads than it was made for.
  pthread_mutex_t startLock = PTHREAD_MUTEX_INITIALIZER;
  bool abandoned = false;
};

} // namespace mcc::runtime
