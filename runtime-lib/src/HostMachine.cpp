// Steps on the CPU. A whole step is one call of generated code on every worker; some launches of one are found in the
// program's table, and the workers meet where the table says that a launch depends on those before it.
#include "runtime-lib/src/HostMachine.h"

#include "kernels/KernelTable.h"
#include "runtime-lib/src/Text.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <numeric>
#include <sys/mman.h>
#include <vector>

namespace mcc::runtime {

static constexpr uint64_t pageBytes = 4096;
static constexpr uint64_t hugePageBytes = uint64_t(2) << 20;

Result<Memory> Memory::create(uint64_t bytes, const char *purpose) {
  if (bytes == 0)
    bytes = 1; // A pointer that compares unequal to null is simpler for everyone.
  void *base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED)
    return Failure{concat("error: the ", purpose, " needs ", bytes, " bytes: ", std::strerror(errno),
                          "; a smaller --ctx when compiling makes the cache smaller")};
  if (bytes >= hugePageBytes)
    madvise(base, bytes, MADV_HUGEPAGE);
  return Memory(static_cast<uint8_t *>(base), bytes);
}

Memory::~Memory() {
  if (base != nullptr)
    munmap(base, bytes);
}

void Memory::zero() {
  // Private anonymous pages come back zeroed; locked ones are refused and cleared by hand.
  if (madvise(base, bytes, MADV_DONTNEED) != 0)
    std::memset(base, 0, bytes);
}

/// Returns the distance between two threads' scratch: whole pages, so that no line is shared.
static uint64_t scratchStride(const MccModel &model) {
  return (model.scratchBytes + pageBytes - 1) / pageBytes * pageBytes;
}

Result<std::unique_ptr<HostMachine>> HostMachine::create(const MccModel &model, const uint8_t *weights,
                                                         int64_t threads) {
  const Processors processors = usableProcessors();
  if (threads <= 0)
    threads = std::min(processors.physical, maxThreads);
  Result<Memory> arena = Memory::create(model.arenaBytes, "arena of activations");
  if (!arena.ok())
    return arena.failure();
  Result<Memory> cache = Memory::create(model.cacheBytes, "cache");
  if (!cache.ok())
    return cache.failure();
  if (model.scratchBytes > (uint64_t(1) << 40) / uint64_t(threads))
    return Failure{concat("error: ", threads, " threads need ", model.scratchBytes, " bytes of scratch each")};
  Result<Memory> scratch = Memory::create(scratchStride(model) * uint64_t(threads), "threads' scratch");
  if (!scratch.ok())
    return scratch.failure();
  Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(model.step, threads, processors);
  if (!pool.ok())
    return Failure{"error: " + pool.message()};
  return std::unique_ptr<HostMachine>(new HostMachine(model, weights, std::move(arena.value()),
                                                      std::move(cache.value()), std::move(scratch.value()),
                                                      std::move(pool.value())));
}

HostMachine::HostMachine(const MccModel &model, const uint8_t *weights, Memory arena, Memory cache, Memory scratch,
                         std::unique_ptr<ThreadPool> pool)
    : model(model), packed(weights), arena(std::move(arena)), cache(std::move(cache)), scratch(std::move(scratch)),
      pool(std::move(pool)) {}

MccStep HostMachine::stepOf(std::span<const int32_t> tokens, int64_t position, int64_t length) const {
  MccStep step{};
  step.weights = packed;
  step.arena = arena.data();
  step.cache = cache.data();
  step.scratch = scratch.data();
  step.tokens = tokens.data();
  step.count = static_cast<int64_t>(tokens.size());
  step.position = position;
  step.length = length;
  return step;
}

void HostMachine::run(std::span<const int32_t> tokens, int64_t position, int64_t length) {
  if (measured) {
    std::vector<uint32_t> all(model.program->launchCount);
    std::iota(all.begin(), all.end(), 0u);
    return runLaunches(all, tokens, position, length);
  }
  pool->run(stepOf(tokens, position, length), scratchStride(model));
}

namespace {

/// What runLaunches hands to its workers.
struct LaunchList {
  const MccProgram *program;
  std::span<const uint32_t> launches;
};

} // namespace

static constexpr size_t mostBuffers = 16;

static void runOne(const MccStep *step, const MccProgram &program, const MccLaunch &launch) {
  uint8_t *const bases[] = {step->arena, const_cast<uint8_t *>(step->weights), step->cache};
  void *pointers[mostBuffers];
  const size_t count = kernels()[launch.kernel].buffers.size();
  for (size_t i = 0; i < count; ++i) {
    const MccArgument &argument = launch.buffers[i];
    pointers[i] = nullptr;
    if (argument.region != MCC_NO_REGION) {
      const MccRegion &region = program.regions[argument.region];
      pointers[i] = bases[region.space] + region.offset + argument.offset;
    }
  }
  (step->count == 1 ? launch.decode : launch.prefill)(step, step->count, pointers);
}

/// What every worker runs for runLaunches.
static void runEach(const MccStep *step) {
  const LaunchList &list = *static_cast<const LaunchList *>(step->context);
  for (size_t i = 0; i < list.launches.size(); ++i) {
    const MccLaunch &launch = list.program->launches[list.launches[i]];
    if (i > 0 && launch.barrier)
      mccrt_barrier(step);
    runOne(step, *list.program, launch);
  }
}

void HostMachine::runList(std::span<const uint32_t> launches, MccStep step) {
  const LaunchList list{model.program, launches};
  step.context = &list;
  pool->run(step, scratchStride(model), runEach);
}

void HostMachine::runLaunches(std::span<const uint32_t> launches, std::span<const int32_t> tokens, int64_t position, int64_t length) {
  const MccStep step = stepOf(tokens, position, length);
  if (!measured)
    return runList(launches, step);
  for (const uint32_t &launch : launches) {
    const auto start = std::chrono::steady_clock::now();
    runList(std::span(&launch, 1), step);
    measured->add(launch, step.count, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
  }
}

} // namespace mcc::runtime
