// The GPU of this process, and memory of it.
#pragma once

#include "runtime-lib/cuda/Calls.h"

#include <cstdint>
#include <string>

namespace mcc::runtime {

/// What is known of the GPU.
struct GpuInfo {
  std::string name;
  int computeMajor = 0, computeMinor = 0;
  int driver = 0;         ///< as CUDA numbers it, 13000
  uint64_t freeBytes = 0, totalBytes = 0;
};

/// Takes the first visible device that the kernels are built for. The message says what is missing: the driver, a newer
/// one, a device, or a device that is new enough.
Result<GpuInfo> openGpu();

/// Says what is wrong, if anything, given the driver's version (0: none), how counting the devices went, and their number.
Status judgeDriver(int driver, const Status &counted, int count);
/// Says whether the kernels run on the device.
Status judgeDevice(const GpuInfo &info);

/// A block of device memory; freed when destroyed.
class DeviceMemory {
public:
  DeviceMemory() = default;
  static Result<DeviceMemory> create(uint64_t bytes);
  DeviceMemory(DeviceMemory &&other) noexcept : base(other.base) { other.base = nullptr; }
  DeviceMemory &operator=(DeviceMemory &&other) noexcept {
    std::swap(base, other.base);
    return *this;
  }
  ~DeviceMemory();
  uint8_t *data() const { return base; }

private:
  explicit DeviceMemory(uint8_t *base) : base(base) {}
  uint8_t *base = nullptr;
};

/// A block of host memory that the device reads and writes by the same address; freed when destroyed.
class PinnedMemory {
public:
  PinnedMemory() = default;
  static Result<PinnedMemory> create(uint64_t bytes);
  PinnedMemory(PinnedMemory &&other) noexcept : base(other.base) { other.base = nullptr; }
  PinnedMemory &operator=(PinnedMemory &&other) noexcept {
    std::swap(base, other.base);
    return *this;
  }
  ~PinnedMemory();
  uint8_t *data() const { return base; }

private:
  explicit PinnedMemory(uint8_t *base) : base(base) {}
  uint8_t *base = nullptr;
};

/// A stream; destroyed with its owner.
class Stream {
public:
  Stream() = default;
  static Result<Stream> create();
  Stream(Stream &&other) noexcept : handle(other.handle) { other.handle = nullptr; }
  Stream &operator=(Stream &&other) noexcept {
    std::swap(handle, other.handle);
    return *this;
  }
  ~Stream();
  cudaStream_t get() const { return handle; }
  Status wait() const { return call(CUDA_NAME(cudaStreamSynchronize), handle); }

private:
  explicit Stream(cudaStream_t handle) : handle(handle) {}
  cudaStream_t handle = nullptr;
};

} // namespace mcc::runtime
