// Runs a plan: GPU segments as launches or as captured graphs, host segments on the host, copies in between.
#pragma once

#include "runtime-lib/cuda/DeviceLayout.h"
#include "runtime-lib/cuda/Devices.h"
#include "runtime-lib/cuda/LaunchClock.h"
#include "runtime-lib/src/Schedule.h"
#include "runtime-lib/src/Gpu.h"

#include <map>
#include <memory>
#include <vector>

namespace mcc::runtime {

/// See GpuMachine. A step of one token whose launches are all on the GPU is one graph that reads its token and position
/// on the device and leaves the next there: steps can be started ahead of the host, which learns the tokens from a ring
/// in its own memory.
class Machine final : public GpuMachine {
public:
  static Result<std::unique_ptr<GpuMachine>> create(GpuRequest request);
  ~Machine() override;

  Status reset() override;
  Status step(std::span<const int32_t> tokens, int64_t position, int64_t length, int64_t ahead) override;
  int32_t token() const override { return chosen; }
  Status fetchLogits() override;
  int64_t launchesOnGpu() const override { return gpuLaunches; }
  double uploadSeconds() const override { return secondsOfUpload; }
  uint64_t uploadedBytes() const override { return layout.weightBytes; }

private:
  explicit Machine(GpuRequest request);
  Status takeMemory(const GpuInfo &info);
  Status uploadWeights();
  std::vector<uint8_t *> pointersOf(const MccLaunch &launch) const;
  LaunchContext contextOf(int64_t tokens) const;
  Status startLaunches(const Segment &segment, int64_t tokens);
  Status runOnGpu(size_t segment, int64_t tokens);
  Status capture(size_t segment, int64_t tokens, cudaGraphExec_t &graph);
  Status copyRegions(const Segment &segment, int64_t tokens);
  Status setInputs(std::span<const int32_t> tokens, int64_t position, int64_t length);
  Status runSegments(std::span<const int32_t> tokens, int64_t position, int64_t length);
  Status runAhead(int32_t token, int64_t position, int64_t length, int64_t ahead);
  Status waitForToken(int64_t position);
  Status loseContextIfAsked();
  bool allOnGpu() const { return segments.size() == 1 && segments[0].onGpu; }
  int32_t &slotOf(int64_t position) const { return ring[position & ringMask]; }

  GpuRequest request;
  const MccModel &model;
  DeviceLayout layout;
  std::vector<Segment> segments;
  bool argmaxOnGpu = false, logitsOnGpu = false;
  int64_t gpuLaunches = 0;
  int prefillParts = 0;
  double secondsOfUpload = 0;

  Stream stream;
  LaunchClock clock; ///< in use where request.times is set
  DeviceMemory weights, cache, arena, linearWorkspace, attentionWorkspace, partials, inputs;
  PinnedMemory shared; ///< the ring, then inputs on their way
  int32_t *ring = nullptr, *staged = nullptr;
  int32_t *deviceIds = nullptr, *devicePosition = nullptr;
  bool arenaLocked = false; ///< the host's arena is page-locked
  std::map<std::pair<size_t, int64_t>, cudaGraphExec_t> graphs; ///< by segment and tokens

  static constexpr int64_t ringSize = 1024;
  static constexpr int64_t ringMask = ringSize - 1;
  static constexpr int64_t mostAhead = 16;
  int32_t chosen = -1;
  int64_t issued = 0; ///< steps are started for positions below this
};

} // namespace mcc::runtime
