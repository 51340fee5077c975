// Weights and caches close up to each other on the device, in region order; arena offsets stay those of the host.
#include "runtime-lib/cuda/DeviceLayout.h"

#include "kernels/KernelTable.h"

namespace mcc::runtime {

static constexpr uint64_t alignment = 256;

DeviceLayout layOut(const MccModel &model, const std::vector<bool> &onGpu, int prefillParts) {
  const MccProgram &program = *model.program;
  DeviceLayout layout;
  layout.arenaBytes = model.arenaBytes;
  layout.offsets.assign(program.regionCount, DeviceLayout::absent);
  for (uint32_t i = 0; i < program.launchCount; ++i) {
    if (!onGpu[i])
      continue;
    const MccLaunch &launch = program.launches[i];
    layout.workspace.add(launch, model.chunk, prefillParts);
    for (size_t b = 0; b < kernels()[launch.kernel].buffers.size(); ++b) {
      const uint32_t index = launch.buffers[b].region;
      if (index == MCC_NO_REGION || layout.offsets[index] != DeviceLayout::absent)
        continue;
      const MccRegion &region = program.regions[index];
      if (region.space == MCC_ARENA) {
        layout.offsets[index] = region.offset;
        continue;
      }
      uint64_t &end = region.space == MCC_WEIGHTS ? layout.weightBytes : layout.cacheBytes;
      layout.offsets[index] = end;
      end += (region.bytes + alignment - 1) / alignment * alignment;
    }
  }
  return layout;
}

} // namespace mcc::runtime
