// Spinning threads for benches: the cost of waking a thread must not be part of a kernel's time.
#include "BenchTeam.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>

void MccBarrier::wait() {
  const int64_t current = phase.load(std::memory_order_acquire);
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == threads) {
    arrived.store(0, std::memory_order_relaxed);
    phase.store(current + 1, std::memory_order_release);
    return;
  }
  for (int64_t spins = 0; phase.load(std::memory_order_acquire) == current; ++spins)
    if (spins > 20000) // a busy neighbour may hold the other core
      std::this_thread::yield();
}

extern "C" void mccrt_barrier(const MccStep *step) { step->barrier->wait(); }

namespace mcc::bench {

Team::Team(int64_t threads, int64_t scratchBytes) : steps(static_cast<size_t>(threads)) {
  barrier.threads = threads;
  for (int64_t i = 0; i < threads; ++i) {
    scratch.emplace_back(static_cast<uint8_t *>(std::aligned_alloc(64, static_cast<size_t>((scratchBytes + 63) / 64 * 64))), std::free);
    MccStep &step = steps[static_cast<size_t>(i)];
    step = {};
    step.scratch = scratch.back().get();
    step.thread = i;
    step.threads = threads;
    step.barrier = &barrier;
  }
  for (int64_t i = 1; i < threads; ++i)
    workers.emplace_back([this, i] { work(i); });
}

Team::~Team() {
  body = nullptr;
  barrier.wait();
  for (std::thread &worker : workers)
    worker.join();
}

void Team::work(int64_t thread) {
  while (true) {
    barrier.wait();
    if (!body)
      return;
    (*body)(&steps[static_cast<size_t>(thread)]);
    barrier.wait();
  }
}

void Team::run(int64_t tokens, int64_t position, const std::function<void(const MccStep *)> &newBody) {
  for (MccStep &step : steps) {
    step.count = tokens;
    step.position = position;
  }
  body = &newBody;
  barrier.wait();
  newBody(&steps[0]);
  barrier.wait();
}

// A lone thread is timed by its own CPU clock, so that being descheduled for a neighbour does not count.
static double secondsNow(bool alone) {
  timespec now;
  clock_gettime(alone ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Runs 2^16 independent additions and multiplications, which take half a cycle each on the processors of today.
static void pace() {
  typedef float Four __attribute__((vector_size(16)));
  Four values[12] = {};
  for (int64_t i = 0; i < (1 << 16) / 24; ++i)
    for (Four &value : values) {
      value = value * 0.5f + 1.0f;
      __asm__ volatile("" : "+x"(value));
    }
}

static double median(std::vector<double> &values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Timing Team::time(int64_t repeats, int64_t tokens, int64_t position, const std::function<void(const MccStep *)> &newBody) {
  const bool alone = steps.size() == 1;
  run(tokens, position, newBody);
  std::vector<double> seconds, cycles;
  for (int64_t i = 0; i < repeats; ++i) {
    const double start = secondsNow(alone);
    pace();
    const double middle = secondsNow(alone);
    run(tokens, position, newBody);
    const double end = secondsNow(alone);
    pace();
    const double paced = (secondsNow(alone) - end + middle - start) / 2;
    seconds.push_back(end - middle);
    cycles.push_back((end - middle) / paced * (1 << 15));
  }
  return {median(seconds), median(cycles)};
}

} // namespace mcc::bench
