// The schedule: a walk over the launches that remembers on which devices each region's bytes are current.
#include "runtime-lib/src/Schedule.h"

#include "kernels/KernelTable.h"

#include <numeric>
#include <string>

namespace mcc::runtime {

std::vector<Segment> scheduleOf(const MccProgram &program, const std::vector<bool> &onGpu) {
  std::vector<Segment> segments;
  // By region: bit 0 current on the host, bit 1 on the GPU; 0: not written in this step.
  std::vector<uint8_t> current(program.regionCount, 0);
  for (uint32_t i = 0; i < program.launchCount; ++i) {
    const MccLaunch &launch = program.launches[i];
    if (segments.empty() || segments.back().onGpu != onGpu[i])
      segments.push_back({onGpu[i], {}, {}});
    Segment &segment = segments.back();
    const uint8_t here = onGpu[i] ? 2 : 1;
    const size_t count = kernels()[launch.kernel].buffers.size();
    for (size_t b = 0; b < count; ++b) {
      const uint32_t region = launch.buffers[b].region;
      if (region == MCC_NO_REGION || program.regions[region].space != MCC_ARENA || current[region] == 0 || (current[region] & here))
        continue;
      segment.copies.push_back(region);
      current[region] |= here;
    }
    for (size_t b = 0; b < count; ++b)
      if (launch.buffers[b].region != MCC_NO_REGION && launch.buffers[b].written)
        current[launch.buffers[b].region] = here;
    segment.launches.push_back(i);
  }
  return segments;
}

/// Returns whether launches that touch the region must share a device.
static bool isState(const MccProgram &program, const MccLaunch &launch, size_t buffer) {
  const uint32_t region = launch.buffers[buffer].region;
  if (region == MCC_NO_REGION)
    return false;
  // What logits leaves for argmax has a form of its own on each device.
  return program.regions[region].space == MCC_CACHE || kernels()[launch.kernel].buffers[buffer].name == "partials";
}

/// Returns by launch the lowest launch of its group.
static std::vector<uint32_t> groupsOf(const MccProgram &program) {
  std::vector<uint32_t> leader(program.launchCount), first(program.regionCount, MCC_NO_REGION);
  std::iota(leader.begin(), leader.end(), 0u);
  const auto find = [&leader](uint32_t launch) {
    while (leader[launch] != launch)
      launch = leader[launch];
    return launch;
  };
  for (uint32_t i = 0; i < program.launchCount; ++i)
    for (size_t b = 0; b < kernels()[program.launches[i].kernel].buffers.size(); ++b) {
      if (!isState(program, program.launches[i], b))
        continue;
      uint32_t &user = first[program.launches[i].buffers[b].region];
      if (user == MCC_NO_REGION)
        user = i;
      const uint32_t one = find(user), other = find(i);
      leader[std::max(one, other)] = std::min(one, other);
    }
  for (uint32_t i = 0; i < program.launchCount; ++i)
    leader[i] = find(i);
  return leader;
}

bool keepsStatesTogether(const MccProgram &program, const std::vector<bool> &onGpu) {
  std::vector<bool> joined = onGpu;
  joinStates(program, joined);
  return joined == onGpu;
}

void joinStates(const MccProgram &program, std::vector<bool> &onGpu) {
  const std::vector<uint32_t> groups = groupsOf(program);
  for (uint32_t i = 0; i < program.launchCount; ++i)
    onGpu[i] = onGpu[groups[i]];
}

} // namespace mcc::runtime
