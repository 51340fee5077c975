// A GPU made of a second set of the processor's memory: tests run mixed plans with it where there is no GPU. What the plan
// puts on the GPU runs in an arena and caches of its own, so that a copy too few between the devices gives wrong tokens.
//
// TWIN_GPU_NS_PER_UNIT=X is what its calibration measures. TWIN_GPU_FAIL_AT=N makes the N-th step fail, as an error of a real one would.
#include "runtime-lib/calibrate/GpuCalibrator.h"
#include "runtime-lib/src/Gpu.h"
#include "runtime-lib/src/Schedule.h"

#include <cstdlib>
#include <cstring>

namespace mcc::runtime {
namespace {

class Twin final : public GpuMachine {
public:
  static Result<std::unique_ptr<GpuMachine>> create(GpuRequest request) {
    Result<std::unique_ptr<HostMachine>> own = HostMachine::create(*request.model, request.host->weights(), 1);
    if (!own.ok())
      return own.failure();
    if (request.mostMemory && request.model->arenaBytes > *request.mostMemory)
      return Failure{"twinMalloc: twinErrorNoMemory (more than permitted)"};
    own.value()->measure(request.times);
    return std::unique_ptr<GpuMachine>(new Twin(std::move(request), std::move(own.value())));
  }

  Status reset() override {
    own->clear();
    return {};
  }

  Status step(std::span<const int32_t> tokens, int64_t position, int64_t length, int64_t) override {
    if (const char *text = std::getenv("TWIN_GPU_FAIL_AT"); text != nullptr && ++steps == std::atoll(text))
      return Failure{"twinStep: twinErrorAsAsked (told to fail)"};
    uint8_t *const host = request.host->arenaMemory().data(), *const twin = own->arenaMemory().data();
    for (const Segment &segment : segments) {
      for (uint32_t index : segment.copies) {
        const MccRegion &region = request.model->program->regions[index];
        const uint64_t bytes = region.rowBytes ? region.rowBytes * tokens.size() : region.bytes;
        std::memcpy((segment.onGpu ? twin : host) + region.offset, (segment.onGpu ? host : twin) + region.offset, bytes);
      }
      (segment.onGpu ? own.get() : request.host)->runLaunches(segment.launches, tokens, position, length);
    }
    std::memcpy(&chosen, (segments.back().onGpu ? twin : host) + request.model->tokenOffset, sizeof chosen);
    return {};
  }

  int32_t token() const override { return chosen; }

  Status fetchLogits() override {
    // logits and argmax share a device, and argmax is the last launch.
    if (segments.back().onGpu)
      std::memcpy(request.host->arenaMemory().data() + request.model->logitsOffset, own->arenaMemory().data() + request.model->logitsOffset,
                  request.model->vocabulary * sizeof(float));
    return {};
  }

  int64_t launchesOnGpu() const override {
    int64_t count = 0;
    for (bool there : request.onGpu)
      count += there;
    return count;
  }
  double uploadSeconds() const override { return 0; }
  uint64_t uploadedBytes() const override { return 0; }

private:
  Twin(GpuRequest wanted, std::unique_ptr<HostMachine> machine)
      : request(std::move(wanted)), own(std::move(machine)), segments(scheduleOf(*request.model->program, request.onGpu)) {}

  GpuRequest request;
  std::unique_ptr<HostMachine> own;
  std::vector<Segment> segments;
  int32_t chosen = -1;
  int64_t steps = 0;
};

} // namespace
} // namespace mcc::runtime

namespace mcc::placement {

/// Returns a curve of a few ns and `nsPerUnit` a unit.
static Curve line(double nsPerUnit) {
  std::vector<Curve::Sample> samples;
  for (const double size : {1e3, 1e6, 1e9})
    samples.push_back({size, {1 + size * nsPerUnit}});
  return Curve::make(std::move(samples)).value();
}

/// A measurement made up: everything takes TWIN_GPU_NS_PER_UNIT; without it there is nothing to measure.
static Result<GpuMeasurements> calibrateTwin(const GpuCalibration &options) {
  const char *text = std::getenv("TWIN_GPU_NS_PER_UNIT");
  if (text == nullptr)
    return Failure{"twinCalibrate: twinErrorNotMeasured (nothing to measure)"};
  const Curve curve = line(std::atof(text));
  GpuMeasurements twin;
  twin.device.launch = twin.device.sync = {1};
  twin.device.rows = twin.device.attentionKeys = twin.device.attentionMacs = curve;
  for (const Format format : options.formats)
    twin.device.matrices.push_back({format, curve, GemmTable()});
  twin.link = {{curve, curve}, {curve, curve}};
  twin.name = "Twin";
  return twin;
}

} // namespace mcc::placement

extern "C" const MccGpuCalibrator mccrt_gpu_calibrator = {mcc::placement::calibrateTwin};
extern "C" const MccGpuRuntime mccrt_gpu_runtime = {mcc::runtime::Twin::create};
