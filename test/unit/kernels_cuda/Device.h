// Arrays in device memory and what the tests of CUDA kernels share.
#pragma once

#include "kernels/cuda/Launch.h"

#include <doctest/doctest.h>

#include <cuda_runtime_api.h>

#include <cstring>
#include <vector>

namespace mcc::test {

/// Returns whether tests are to keep to few and small sizes that still meet every kernel: under compute-sanitizer, where a
/// launch takes a hundred times as long.
bool reduced();

/// Returns `all`, or its first `few` where reduced().
template <class T>
std::vector<T> someOf(std::vector<T> all, size_t few) {
  if (reduced() && all.size() > few)
    all.resize(few);
  return all;
}

/// An array in device memory, filled with NaN bytes where it starts without values, so that what a kernel leaves out
/// shows.
template <class T>
class DeviceArray {
public:
  explicit DeviceArray(size_t count) : count(count) {
    void *block = nullptr;
    REQUIRE(cudaMalloc(&block, bytes()) == cudaSuccess);
    data = static_cast<T *>(block);
    REQUIRE(cudaMemset(data, 0xff, bytes()) == cudaSuccess);
  }
  explicit DeviceArray(const std::vector<T> &values) : DeviceArray(values.size()) { set(values); }
  DeviceArray(const DeviceArray &) = delete;
  DeviceArray &operator=(const DeviceArray &) = delete;
  ~DeviceArray() { (void)cudaFree(data); }

  T *get() const { return data; }
  void set(const std::vector<T> &values) {
    REQUIRE(values.size() <= count);
    REQUIRE(cudaMemcpy(data, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
  }
  /// Waits for the device and returns the values.
  std::vector<T> values() const {
    std::vector<T> result(count);
    const cudaError_t error = cudaDeviceSynchronize();
    REQUIRE_MESSAGE(error == cudaSuccess, cudaGetErrorName(error));
    REQUIRE(cudaMemcpy(result.data(), data, bytes(), cudaMemcpyDeviceToHost) == cudaSuccess);
    return result;
  }
  void zero() { REQUIRE(cudaMemset(data, 0, bytes()) == cudaSuccess); }

private:
  size_t bytes() const { return (count ? count : 1) * sizeof(T); }
  size_t count;
  T *data = nullptr;
};

/// Largest |a - b|; infinite where one is NaN and the other is not.
inline double largestError(const std::vector<float> &a, const std::vector<float> &b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = a[i] > b[i] ? static_cast<double>(a[i]) - b[i] : static_cast<double>(b[i]) - a[i];
    if (difference != difference) {
      const bool both = a[i] != a[i] && b[i] != b[i];
      largest = both ? largest : __builtin_inf();
    } else if (difference > largest) {
      largest = difference;
    }
  }
  return largest;
}

inline bool equalBits(const float *a, const float *b, size_t count) {
  return std::memcmp(a, b, count * sizeof(float)) == 0;
}

} // namespace mcc::test
