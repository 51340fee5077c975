// Times launches as a generating program runs them: captured into a graph, replayed, between two events.
#pragma once

#include "kernels/cuda/Launch.h"
#include "runtime-lib/cuda/Devices.h"

#include <functional>

namespace mcc::runtime {

/// A captured graph that can be launched; destroyed with its owner.
class Graph {
public:
  Graph() = default;
  explicit Graph(cudaGraphExec_t handle) : handle(handle) {}
  Graph(Graph &&other) noexcept : handle(other.handle) { other.handle = nullptr; }
  Graph &operator=(Graph &&other) noexcept {
    std::swap(handle, other.handle);
    return *this;
  }
  ~Graph();
  cudaGraphExec_t get() const { return handle; }

private:
  cudaGraphExec_t handle = nullptr;
};

/// What is in the second-level cache when a graph begins.
enum class Cached : uint8_t { Anything, Nothing };

/// A stream, two events, and memory to sweep the cache with.
class GraphTimer {
public:
  static Result<GraphTimer> create();
  GraphTimer(GraphTimer &&other) noexcept;
  ~GraphTimer();

  cudaStream_t stream() const { return queue.get(); }
  /// Captures what `record` starts on stream().
  Result<Graph> capture(const std::function<cuda::Status()> &record);
  /// Runs a graph and returns the ns that the device took from its start to its end.
  Result<double> deviceNs(const Graph &graph, Cached cached);
  /// Runs a graph and returns the ns that the host took until it knew the end.
  Result<double> hostNs(const Graph &graph);
  /// Returns the ns that the device took for what `start` puts on stream().
  Result<double> deviceNs(const std::function<Status()> &start);

private:
  GraphTimer() = default;
  Stream queue;
  cudaEvent_t begin = nullptr, end = nullptr;
  DeviceMemory sweep;
  uint64_t sweepBytes = 0;
};

} // namespace mcc::runtime
