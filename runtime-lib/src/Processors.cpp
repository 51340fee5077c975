// Counting usable cores: sched_getaffinity, then hyper-thread siblings folded together by
// /sys/devices/system/cpu/cpuN/topology, then the quota of every control group above this process.
//
// The quota is rounded down: with barriers between kernels, threads beyond it are throttled together and the whole
// step waits for the next period.
#include "runtime-lib/src/Processors.h"

#include "runtime-lib/src/Files.h"
#include "runtime-lib/src/Text.h"

#include <algorithm>
#include <cstdlib>
#include <sched.h>
#include <set>
#include <string_view>
#include <unistd.h>

namespace mcc::runtime {

// Affinity masks are as wide as the kernel was built for; a narrower buffer is refused.
static constexpr int mostProcessors = 65536;

static std::vector<int> affinityMask() {
  std::vector<int> mask;
  for (int capacity = 1024; capacity <= mostProcessors; capacity *= 4) {
    cpu_set_t *set = CPU_ALLOC(capacity);
    if (set == nullptr)
      break;
    const size_t bytes = CPU_ALLOC_SIZE(capacity);
    if (sched_getaffinity(0, bytes, set) == 0) {
      for (int cpu = 0; cpu < capacity; ++cpu)
        if (CPU_ISSET_S(cpu, bytes, set))
          mask.push_back(cpu);
    }
    CPU_FREE(set);
    if (!mask.empty())
      return mask;
  }
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  for (int cpu = 0; cpu < std::max(1L, online); ++cpu)
    mask.push_back(cpu);
  return mask;
}

void moveToProcessor(int processor) {
  if (processor < 0 || processor >= mostProcessors)
    return;
  const size_t bytes = CPU_ALLOC_SIZE(mostProcessors);
  cpu_set_t *before = CPU_ALLOC(mostProcessors), *only = CPU_ALLOC(mostProcessors);
  if (before != nullptr && only != nullptr) {
    CPU_ZERO_S(bytes, before);
    CPU_ZERO_S(bytes, only);
    CPU_SET_S(processor, bytes, only);
    // Binding moves the thread at once; the old mask right after leaves later moves to the scheduler.
    if (sched_getaffinity(0, bytes, before) == 0 && sched_setaffinity(0, bytes, only) == 0)
      sched_setaffinity(0, bytes, before);
  }
  CPU_FREE(before);
  CPU_FREE(only);
}

static std::vector<int> distinctCores(const std::vector<int> &mask, const std::string &root) {
  std::set<std::string> seen;
  std::vector<int> cores;
  for (int cpu : mask) {
    const std::string topology = concat(root, "/sys/devices/system/cpu/cpu", cpu, "/topology/");
    std::optional<std::string> siblings = readSmallFile(topology + "thread_siblings_list");
    if (!siblings)
      siblings = readSmallFile(topology + "core_cpus_list");
    if (seen.insert(siblings ? *siblings : concat("processor ", cpu)).second)
      cores.push_back(cpu);
  }
  return cores;
}

/// Returns quota / period of "QUOTA PERIOD", where QUOTA may be "max" or negative for none.
static std::optional<double> quotaFrom(const std::string &quota, const std::string &period) {
  const double allowed = std::strtod(quota.c_str(), nullptr);
  const double unit = std::strtod(period.c_str(), nullptr);
  if (allowed <= 0 || unit <= 0)
    return std::nullopt;
  return allowed / unit;
}

static std::optional<double> quotaOfFolder(const std::string &folder, bool unified) {
  if (unified) {
    const std::optional<std::string> line = readSmallFile(folder + "/cpu.max");
    if (!line)
      return std::nullopt;
    const size_t space = line->find(' ');
    return space == std::string::npos ? std::nullopt : quotaFrom(line->substr(0, space), line->substr(space + 1));
  }
  const std::optional<std::string> quota = readSmallFile(folder + "/cpu.cfs_quota_us");
  const std::optional<std::string> period = readSmallFile(folder + "/cpu.cfs_period_us");
  return quota && period ? quotaFrom(*quota, *period) : std::nullopt;
}

/// Returns the smallest quota of `path` and the groups above it, below `base`.
static std::optional<double> smallestQuota(const std::string &base, std::string path, bool unified) {
  std::optional<double> smallest;
  while (true) {
    const std::optional<double> quota = quotaOfFolder(base + path, unified);
    if (quota && (!smallest || *quota < *smallest))
      smallest = quota;
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos)
      return smallest;
    path.resize(slash);
  }
}

std::optional<double> processorQuota(const std::string &root) {
  // Lines of /proc/self/cgroup: "0::/path" (v2) or "4:cpu,cpuacct:/path" (v1).
  const std::string groups = readSmallFile(root + "/proc/self/cgroup").value_or("");
  std::optional<double> smallest;
  for (size_t begin = 0; begin < groups.size();) {
    const size_t end = std::min(groups.find('\n', begin), groups.size());
    const std::string line = groups.substr(begin, end - begin);
    begin = end + 1;
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    const bool unified = controllers.empty();
    if (!unified && concat(',', controllers, ',').find(",cpu,") == std::string::npos)
      continue;
    const std::string base = concat(root, "/sys/fs/cgroup", unified ? "" : "/cpu");
    const std::optional<double> quota = smallestQuota(base, path == "/" ? "" : path, unified);
    if (quota && (!smallest || *quota < *smallest))
      smallest = quota;
  }
  return smallest;
}

Processors usableProcessors(const std::vector<int> &mask, const std::string &root) {
  Processors found;
  found.logical = std::max<int64_t>(1, static_cast<int64_t>(mask.size()));
  found.cores = distinctCores(mask, root);
  found.physical = std::max<int64_t>(1, static_cast<int64_t>(found.cores.size()));
  if (const std::optional<double> quota = processorQuota(root)) {
    const int64_t most = *quota >= mostProcessors ? mostProcessors : std::max<int64_t>(1, static_cast<int64_t>(*quota));
    found.logical = std::min(found.logical, most);
    found.physical = std::min(found.physical, most);
  }
  return found;
}

Processors usableProcessors() { return usableProcessors(affinityMask(), ""); }

} // namespace mcc::runtime
