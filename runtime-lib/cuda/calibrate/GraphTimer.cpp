// Events are on the stream beside the graph, so that what they measure includes the graph's start; callers measure that
// with a graph of one small node, and take it off.
#include "runtime-lib/cuda/calibrate/GraphTimer.h"

#include <chrono>

namespace mcc::runtime {

Graph::~Graph() {
  if (handle != nullptr)
    cudaGraphExecDestroy(handle);
}

GraphTimer::GraphTimer(GraphTimer &&other) noexcept
    : queue(std::move(other.queue)), begin(std::exchange(other.begin, nullptr)), end(std::exchange(other.end, nullptr)),
      sweep(std::move(other.sweep)), sweepBytes(other.sweepBytes) {}

GraphTimer::~GraphTimer() {
  for (cudaEvent_t event : {begin, end})
    if (event != nullptr)
      cudaEventDestroy(event);
}

Result<GraphTimer> GraphTimer::create() {
  GraphTimer timer;
  Result<Stream> stream = Stream::create();
  if (!stream.ok())
    return stream.failure();
  timer.queue = std::move(stream.value());
  for (cudaEvent_t *event : {&timer.begin, &timer.end})
    RETURN_IF_FAILED(call("cudaEventCreate", [&] { return cudaEventCreate(event); }));
  int cacheBytes = 0;
  RETURN_IF_FAILED(call(CUDA_NAME(cudaDeviceGetAttribute), &cacheBytes, cudaDevAttrL2CacheSize, 0));
  timer.sweepBytes = 2 * static_cast<uint64_t>(cacheBytes);
  Result<DeviceMemory> sweep = DeviceMemory::create(timer.sweepBytes);
  if (!sweep.ok())
    return sweep.failure();
  timer.sweep = std::move(sweep.value());
  return timer;
}

Result<Graph> GraphTimer::capture(const std::function<cuda::Status()> &record) {
  cudaGraph_t captured = nullptr;
  RETURN_IF_FAILED(call(CUDA_NAME(cudaStreamBeginCapture), stream(), cudaStreamCaptureModeThreadLocal));
  const cudaError_t recorded = static_cast<cudaError_t>(record());
  const Status ended = call(CUDA_NAME(cudaStreamEndCapture), stream(), &captured);
  RETURN_IF_FAILED(statusOf("kernel", recorded));
  RETURN_IF_FAILED(ended);
  cudaGraphExec_t handle = nullptr;
  const Status made = call("cudaGraphInstantiate", [&] { return cudaGraphInstantiate(&handle, captured, 0); });
  cudaGraphDestroy(captured);
  RETURN_IF_FAILED(made);
  return Graph(handle);
}

Result<double> GraphTimer::deviceNs(const std::function<Status()> &start) {
  RETURN_IF_FAILED(call(CUDA_NAME(cudaEventRecord), begin, stream()));
  RETURN_IF_FAILED(start());
  RETURN_IF_FAILED(call(CUDA_NAME(cudaEventRecord), end, stream()));
  RETURN_IF_FAILED(queue.wait());
  float milliseconds = 0;
  RETURN_IF_FAILED(call(CUDA_NAME(cudaEventElapsedTime), &milliseconds, begin, end));
  return static_cast<double>(milliseconds) * 1e6;
}

Result<double> GraphTimer::deviceNs(const Graph &graph, Cached cached) {
  if (cached == Cached::Nothing)
    RETURN_IF_FAILED(call(CUDA_NAME(cudaMemsetAsync), sweep.data(), 0, sweepBytes, stream()));
  return deviceNs([&] { return call(CUDA_NAME(cudaGraphLaunch), graph.get(), stream()); });
}

Result<double> GraphTimer::hostNs(const Graph &graph) {
  const auto start = std::chrono::steady_clock::now();
  RETURN_IF_FAILED(call(CUDA_NAME(cudaGraphLaunch), graph.get(), stream()));
  RETURN_IF_FAILED(queue.wait());
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

} // namespace mcc::runtime
