// The thread pool: one barrier serves for starting a step, for the step's own waits, and for finishing it, since
// every thread passes the same sequence of them. A worker's life is: wait (start), run its share, wait (finish).
//
// The system may put two workers on one processor and leave them there: each then spins in vain for the other, sleeps,
// and wakes it on the same processor (measured on two busy processors: 100 microseconds per barrier instead of 1).
// So workers look where they are once per step, and one that shares a processor moves to a free core. They are not
// bound: a core that another program keeps busy can be left.
//
// Plain pthreads rather than std::thread: a refusal of the system (EAGAIN) is an error to report, not an exception.
#include "runtime-lib/src/ThreadPool.h"

#include "runtime-lib/src/Text.h"

#include <algorithm>
#include <cstring>
#include <sched.h>

namespace mcc::runtime {

// About 50 microseconds on current processors: longer than the serial gaps inside and between decode steps,
// shorter than anything a user could notice as load.
static constexpr int spinsNormally = 2000;
// Where a spinning thread may keep the thread it waits for from running.
static constexpr int spinsOversubscribed = 16;

ThreadPool::ThreadPool(StepFunction step, int64_t threads, const Processors &processors)
    : barrier(threads, threads <= processors.logical ? spinsNormally : spinsOversubscribed), step(step),
      threadCount(threads), cores(processors.cores), seats(threads) {}

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(StepFunction step, int64_t threads,
                                                       const Processors &processors) {
  std::unique_ptr<ThreadPool> pool(new ThreadPool(step, threads, processors));
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

void ThreadPool::takeSeat(int64_t thread) {
  const int here = sched_getcpu();
  seats[thread].processor.store(here, std::memory_order_relaxed);
  // Lower threads keep their seats; with more threads than cores there is nothing to gain.
  if (thread == 0 || threadCount > static_cast<int64_t>(cores.size()))
    return;
  const auto taken = [this, thread](int processor) {
    return std::any_of(seats.begin(), seats.begin() + thread, [processor](const Seat &seat) {
      return seat.processor.load(std::memory_order_relaxed) == processor;
    });
  };
  if (!taken(here))
    return;
  for (int core : cores)
    if (!taken(core))
      return moveToProcessor(core);
}

void ThreadPool::runShare(int64_t thread) {
  takeSeat(thread);
  MccStep own = job;
  own.scratch = job.scratch + static_cast<uint64_t>(thread) * scratchStride;
  own.thread = thread;
  own.threads = threadCount;
  own.barrier = &barrier;
  work(&own);
}

void ThreadPool::run(const MccStep &shared, uint64_t stride, StepFunction function) {
  job = shared;
  work = function;
  scratchStride = stride;
  barrier.arriveAndWait();
  runShare(0);
  barrier.arriveAndWait();
}

} // namespace mcc::runtime
