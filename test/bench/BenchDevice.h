// What benches of CUDA kernels share: device memory, random weights, the time of a replayed graph.
#pragma once

#include "kernels/Format.h"
#include "kernels/cuda/Launch.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <vector>

namespace mcc::bench {

/// Ends the bench where a CUDA call or a launch failed.
inline void check(int status, const char *what) {
  if (status == 0)
    return;
  std::printf("%s: %s\n", what, cudaGetErrorName(static_cast<cudaError_t>(status)));
  std::exit(1);
}
#define BENCH_CHECK(call) mcc::bench::check(static_cast<int>(call), #call)

/// Device memory that lives as long as the pool, zeros at first.
class Pool {
public:
  Pool() = default;
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;
  ~Pool() {
    for (void *block : blocks)
      (void)cudaFree(block);
  }
  template <class T>
  T *take(int64_t count) {
    void *block;
    BENCH_CHECK(cudaMalloc(&block, static_cast<size_t>(count) * sizeof(T)));
    BENCH_CHECK(cudaMemset(block, 0, static_cast<size_t>(count) * sizeof(T)));
    blocks.push_back(block);
    return static_cast<T *>(block);
  }
  /// Numbers uniform in [-1, 1), the same 2^20 again and again.
  float *randomFloats(int64_t count) {
    static const std::vector<float> values = [] {
      std::mt19937 random(2);
      std::uniform_real_distribution<float> uniform(-1, 1);
      std::vector<float> numbers(size_t{1} << 20);
      for (float &value : numbers)
        value = uniform(random);
      return numbers;
    }();
    float *to = take<float>(count);
    fill(reinterpret_cast<uint8_t *>(to), count * 4, values.data(), static_cast<int64_t>(values.size()) * 4);
    return to;
  }
  /// `bytes` of packed weights: random quants, small scales; numbers of magnitude 2^-7 to 2^-5.
  uint8_t *randomWeights(Format format, int64_t bytes) {
    static std::map<Format, std::vector<uint8_t>> patterns;
    std::vector<uint8_t> &pattern = patterns[format];
    if (pattern.empty())
      pattern = patternOf(format);
    uint8_t *to = take<uint8_t>(bytes);
    fill(to, bytes, pattern.data(), static_cast<int64_t>(pattern.size()));
    return to;
  }

private:
  // 32 MiB or so of a format's packed blocks.
  static std::vector<uint8_t> patternOf(Format format) {
    const FormatInfo &info = formatInfo(format);
    const size_t block = static_cast<size_t>(info.blockBytes) * 16;
    std::vector<uint8_t> bytes((size_t{1} << 25) / block * block);
    std::mt19937_64 random(1);
    for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
      const uint64_t word = random();
      std::memcpy(&bytes[i], &word, 8);
    }
    if (info.blockElems == 1) {
      for (size_t i = 0; i < bytes.size(); i += static_cast<size_t>(info.blockBytes)) {
        const uint8_t top = format == Format::F16 ? 0x24 : 0x3c;
        uint8_t &last = bytes[i + static_cast<size_t>(info.blockBytes) - 1];
        last = static_cast<uint8_t>(top | (last & 0x80));
      }
      return bytes;
    }
    for (size_t i = 0; i < bytes.size(); i += block)
      for (size_t lane = 0; lane < 16; ++lane)
        bytes[i + 2 * lane + 1] = 0x10; // scales of about 2^-11
    return bytes;
  }

  static void fill(uint8_t *to, int64_t bytes, const void *pattern, int64_t size) {
    for (int64_t at = 0; at < bytes; at += size) {
      const size_t part = static_cast<size_t>(std::min(size, bytes - at));
      BENCH_CHECK(at == 0 ? cudaMemcpy(to, pattern, part, cudaMemcpyHostToDevice)
                          : cudaMemcpy(to + at, to, part, cudaMemcpyDeviceToDevice));
    }
  }

  std::vector<void *> blocks;
};

/// Median milliseconds of a replay of what `record` launches on `stream`.
inline double replay(cudaStream_t stream, const std::function<void()> &record, int repeats) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  BENCH_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  record();
  BENCH_CHECK(cudaStreamEndCapture(stream, &graph));
  BENCH_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  cudaEvent_t begin, end;
  BENCH_CHECK(cudaEventCreate(&begin));
  BENCH_CHECK(cudaEventCreate(&end));
  std::vector<double> times;
  for (int i = 0; i < repeats + 2; ++i) {
    BENCH_CHECK(cudaEventRecord(begin, stream));
    BENCH_CHECK(cudaGraphLaunch(executable, stream));
    BENCH_CHECK(cudaEventRecord(end, stream));
    BENCH_CHECK(cudaStreamSynchronize(stream));
    float milliseconds;
    BENCH_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    if (i >= 2)
      times.push_back(milliseconds);
  }
  BENCH_CHECK(cudaEventDestroy(begin));
  BENCH_CHECK(cudaEventDestroy(end));
  BENCH_CHECK(cudaGraphExecDestroy(executable));
  BENCH_CHECK(cudaGraphDestroy(graph));
  std::nth_element(times.begin(), times.begin() + static_cast<int64_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

} // namespace mcc::bench
