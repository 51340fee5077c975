// The thread pool: one barrier serves for starting a step, for the step's own waits, and for finishing it, since
// every thread passes the same sequence of them. A worker's life is: wait (start), run its share, wait (finish).
//
// Plain pthreads rather than std::thread: a refusal of the system (EAGAIN) is an error to report, not an exception.
#include "runtime-lib/src/ThreadPool.h"

#include "runtime-lib/src/Text.h"

#include <cstring>

namespace mcc::runtime {

// About 50 microseconds on current processors: longer than the serial gaps inside and between decode steps,
// shorter than anything a user could notice as load.
static constexpr int spinsNormally = 2000;
// Where a spinning thread may keep the thread it waits for from running.
static constexpr int spinsOversubscribed = 16;

ThreadPool::ThreadPool(StepFunction step, int64_t threads, int spins)
    : barrier(threads, spins), step(step), threadCount(threads) {}

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(StepFunction step, int64_t threads, int64_t usableProcessors) {
  const int spins = threads <= usableProcessors ? spinsNormally : spinsOversubscribed;
  std::unique_ptr<ThreadPool> pool(new ThreadPool(step, threads, spins));
  pool->workers.resize(threads - 1);
  pthread_mutex_lock(&pool->startLock);
  size_t started = 0;
  int error = 0;
  for (; started < pool->workers.size(); ++started) {
    Worker &worker = pool->workers[started];
    worker.pool = pool.get();
    worker.thread = static_cast<int64_t>(started) + 1;
    error = pthread_create(&worker.handle, nullptr, workerMain, &worker);
    if (error != 0)
      break;
  }
  pool->abandoned = error != 0;
  pthread_mutex_unlock(&pool->startLock);
  if (error == 0)
    return pool;
  for (size_t i = 0; i < started; ++i)
    pthread_join(pool->workers[i].handle, nullptr);
  pool->workers.clear();
  return Failure{concat("the system gave ", started + 1, " of ", threads, " threads: ", std::strerror(error),
                        "; use fewer with --threads")};
}

ThreadPool::~ThreadPool() {
  if (workers.empty())
    return;
  stopping = true;
  barrier.arriveAndWait();
  for (Worker &worker : workers)
    pthread_join(worker.handle, nullptr);
}

void *ThreadPool::workerMain(void *argument) {
  const Worker *worker = static_cast<Worker *>(argument);
  ThreadPool &pool = *worker->pool;
  pthread_mutex_lock(&pool.startLock);
  const bool abandoned = pool.abandoned;
  pthread_mutex_unlock(&pool.startLock);
  if (abandoned)
    return nullptr;
  while (true) {
    pool.barrier.arriveAndWait();
    if (pool.stopping)
      return nullptr;
    pool.runShare(worker->thread);
    pool.barrier.arriveAndWait();
  }
}

void ThreadPool::runShare(int64_t thread) {
  MccStep own = job;
  own.scratch = job.scratch + static_cast<uint64_t>(thread) * scratchStride;
  own.thread = thread;
  own.threads = threadCount;
  own.barrier = &barrier;
  step(&own);
}

void ThreadPool::run(const MccStep &shared, uint64_t stride) {
  job = shared;
  scratchStride = stride;
  barrier.arriveAndWait();
  runShare(0);
  barrier.arriveAndWait();
}

} // namespace mcc::runtime
