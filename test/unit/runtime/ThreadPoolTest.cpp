// The pool and its barrier under stress, with more threads than processors too; and counting processors.
#include "runtime-lib/src/ThreadPool.h"
#include "runtime-lib/src/Processors.h"

#include <atomic>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <unistd.h>

using namespace mcc::runtime;

namespace {

/// What the stress step works on, reached through MccStep::arena.
struct Shared {
  static constexpr int64_t mostThreads = 8;
  static constexpr int phases = 5;
  int64_t slots[mostThreads];
  std::atomic<int64_t> faults;
};

/// Every phase each thread reads all slots, which must be of the phase before, and then writes its own. A barrier
/// that lets anyone through early, or that lacks ordering, shows a wrong slot.
void stressStep(const MccStep *step) {
  Shared &shared = *reinterpret_cast<Shared *>(step->arena);
  if (step->scratch != reinterpret_cast<uint8_t *>(step->thread * 64 + 4096))
    ++shared.faults;
  for (int phase = 0; phase < Shared::phases; ++phase) {
    const int64_t expected = step->position * Shared::phases + phase;
    for (int64_t other = 0; other < step->threads; ++other)
      if (shared.slots[other] != expected)
        ++shared.faults;
    mccrt_barrier(step);
    shared.slots[step->thread] = expected + 1;
    mccrt_barrier(step);
  }
}

void stress(int64_t threads, int64_t steps, int64_t usableProcessors, int64_t pauseEvery) {
  Processors processors = mcc::runtime::usableProcessors();
  processors.logical = usableProcessors;
  auto pool = ThreadPool::create(stressStep, threads, processors);
  REQUIRE(pool.ok());
  Shared shared{};
  MccStep step{};
  step.arena = reinterpret_cast<uint8_t *>(&shared);
  step.scratch = reinterpret_cast<uint8_t *>(4096);
  for (int64_t i = 0; i < steps; ++i) {
    step.position = i;
    pool.value()->run(step, 64);
    if (pauseEvery > 0 && i % pauseEvery == 0)
      usleep(300); // Long enough that the workers sleep.
  }
  CHECK(shared.faults == 0);
  for (int64_t thread = 0; thread < threads; ++thread)
    CHECK(shared.slots[thread] == steps * Shared::phases);
}

} // namespace

TEST_CASE("barrier orders every phase, for 1 to 8 threads") {
  for (int64_t threads = 1; threads <= 8; ++threads) {
    CAPTURE(threads);
    stress(threads, 300, 2, 0);
    stress(threads, 60, 2, 3);
  }
}

TEST_CASE("barrier works where spinning threads outnumber processors") { stress(4, 60, 64, 5); }

TEST_CASE("a pool that never ran a step stops") {
  for (int64_t threads : {1, 2, 8})
    CHECK(ThreadPool::create(stressStep, threads, Processors()).ok());
}

TEST_CASE("moving to a processor binds nothing") {
  cpu_set_t before, after;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  for (int processor : mcc::runtime::usableProcessors().cores)
    moveToProcessor(processor);
  moveToProcessor(-1);
  moveToProcessor(1 << 30);
  REQUIRE(sched_getaffinity(0, sizeof after, &after) == 0);
  CHECK(CPU_EQUAL(&before, &after));
}

namespace {

/// A folder that looks like / to usableProcessors.
struct FakeRoot {
  FakeRoot() {
    char name[] = "/tmp/mcc-root-XXXXXX";
    path = mkdtemp(name);
  }
  ~FakeRoot() { std::filesystem::remove_all(path); }
  void write(const std::string &name, const std::string &content) const {
    std::filesystem::create_directories(std::filesystem::path(path + name).parent_path());
    std::ofstream(path + name) << content << "\n";
  }
  void siblings(int cpu, const std::string &list) const {
    write("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list", list);
  }
  std::string path;
};

} // namespace

TEST_CASE("hyper-thread siblings count once") {
  FakeRoot root;
  for (int cpu = 0; cpu < 8; ++cpu)
    root.siblings(cpu, std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4));
  const Processors all = usableProcessors({0, 1, 2, 3, 4, 5, 6, 7}, root.path);
  CHECK(all.logical == 8);
  CHECK(all.physical == 4);
  CHECK(all.cores == std::vector<int>{0, 1, 2, 3});
  const Processors some = usableProcessors({0, 4, 5}, root.path);
  CHECK(some.logical == 3);
  CHECK(some.physical == 2);
}

TEST_CASE("unreadable topology counts every processor") {
  CHECK(usableProcessors({0, 1, 2}, "/nowhere").physical == 3);
  CHECK(usableProcessors({}, "/nowhere").physical == 1);
}

TEST_CASE("control groups v2: the smallest quota on the way up counts") {
  FakeRoot root;
  root.write("/proc/self/cgroup", "0::/a/b");
  root.write("/sys/fs/cgroup/a/b/cpu.max", "max 100000");
  CHECK(!processorQuota(root.path));
  root.write("/sys/fs/cgroup/a/cpu.max", "250000 100000");
  CHECK(*processorQuota(root.path) == 2.5);
  CHECK(usableProcessors({0, 1, 2, 3}, root.path).physical == 2);
  root.write("/sys/fs/cgroup/a/b/cpu.max", "50000 100000");
  CHECK(usableProcessors({0, 1, 2, 3}, root.path).physical == 1);
}

TEST_CASE("control groups v2 in a container: the group is the root of the mount") {
  FakeRoot root;
  root.write("/proc/self/cgroup", "0::/");
  root.write("/sys/fs/cgroup/cpu.max", "300000 100000");
  CHECK(*processorQuota(root.path) == 3);
}

TEST_CASE("control groups v1") {
  FakeRoot root;
  root.write("/proc/self/cgroup", "5:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n0::/");
  root.write("/sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us", "-1");
  root.write("/sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us", "100000");
  CHECK(!processorQuota(root.path));
  root.write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000");
  root.write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  CHECK(*processorQuota(root.path) == 4);
}
