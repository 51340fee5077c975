// An event before each launch, and one after the last.
#include "runtime-lib/cuda/LaunchClock.h"

namespace mcc::runtime {

LaunchClock::~LaunchClock() {
  for (cudaEvent_t event : events)
    cudaEventDestroy(event);
}

Status LaunchClock::mark(cudaStream_t stream, uint32_t launch) {
  if (marks.size() == events.size()) {
    cudaEvent_t event = nullptr;
    RETURN_IF_FAILED(call("cudaEventCreate", [&] { return cudaEventCreate(&event); }));
    events.push_back(event);
  }
  marks.push_back(launch);
  return call(CUDA_NAME(cudaEventRecord), events[marks.size() - 1], stream);
}

Status LaunchClock::collect(LaunchTimes &times, int64_t tokens) {
  for (size_t i = 0; i + 1 < marks.size(); ++i) {
    if (marks[i] == noLaunch)
      continue;
    float milliseconds = 0;
    RETURN_IF_FAILED(call(CUDA_NAME(cudaEventElapsedTime), &milliseconds, events[i], events[i + 1]));
    times.add(marks[i], tokens, double(milliseconds) * 1e6);
  }
  marks.clear();
  return {};
}

} // namespace mcc::runtime
