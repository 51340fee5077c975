// Opening the GPU. The CUDA runtime is linked statically and opens the driver's library itself: without one every call
// fails with cudaErrorInsufficientDriver, which says too little, so that the message here adds what it means.
#include "runtime-lib/cuda/Devices.h"

#include "runtime-lib/src/Text.h"

namespace mcc::runtime {

// The least that the fatbin has code for (kernels/cuda/CMakeLists.txt).
static constexpr int leastMajor = 8;

Status judgeDriver(int driver, const Status &counted, int count) {
  if (driver == 0)
    return Failure{"no NVIDIA driver is installed (libcuda.so.1 is not found)"};
  if (!counted.ok() && driver < CUDART_VERSION / 1000 * 1000)
    return Failure{concat(counted.message(), "; the driver supports CUDA ", driver / 1000, ".", driver % 1000 / 10,
                          ", this program needs ", CUDART_VERSION / 1000, ".0; update the driver")};
  if (!counted.ok())
    return counted;
  if (count == 0)
    return Failure{"no GPU is visible; see nvidia-smi and CUDA_VISIBLE_DEVICES"};
  return {};
}

Status judgeDevice(const GpuInfo &info) {
  if (info.computeMajor < leastMajor)
    return Failure{concat("the GPU '", info.name, "' has compute capability ", info.computeMajor, ".",
                          info.computeMinor, "; the kernels need ", leastMajor, ".0")};
  return {};
}

Result<GpuInfo> openGpu() {
  int count = 0, driver = 0;
  RETURN_IF_FAILED(call(CUDA_NAME(cudaDriverGetVersion), &driver));
  const Status counted = call(CUDA_NAME(cudaGetDeviceCount), &count);
  RETURN_IF_FAILED(judgeDriver(driver, counted, count));
  RETURN_IF_FAILED(call(CUDA_NAME(cudaSetDevice), 0));
  cudaDeviceProp properties;
  RETURN_IF_FAILED(call("cudaGetDeviceProperties", [&] { return cudaGetDeviceProperties(&properties, 0); }));
  GpuInfo info{properties.name, properties.major, properties.minor, driver, 0, 0};
  RETURN_IF_FAILED(judgeDevice(info));
  size_t available = 0, all = 0;
  RETURN_IF_FAILED(call(CUDA_NAME(cudaMemGetInfo), &available, &all));
  info.freeBytes = available;
  info.totalBytes = all;
  return info;
}

Result<DeviceMemory> DeviceMemory::create(uint64_t bytes) {
  void *base = nullptr;
  RETURN_IF_FAILED(call("cudaMalloc", [&] { return cudaMalloc(&base, bytes == 0 ? 1 : bytes); }));
  return DeviceMemory(static_cast<uint8_t *>(base));
}

DeviceMemory::~DeviceMemory() {
  if (base != nullptr)
    cudaFree(base);
}

Result<PinnedMemory> PinnedMemory::create(uint64_t bytes) {
  void *base = nullptr;
  RETURN_IF_FAILED(
      call("cudaHostAlloc", [&] { return cudaHostAlloc(&base, bytes == 0 ? 1 : bytes, cudaHostAllocPortable | cudaHostAllocMapped); }));
  return PinnedMemory(static_cast<uint8_t *>(base));
}

PinnedMemory::~PinnedMemory() {
  if (base != nullptr)
    cudaFreeHost(base);
}

Result<Stream> Stream::create() {
  cudaStream_t handle = nullptr;
  RETURN_IF_FAILED(call(CUDA_NAME(cudaStreamCreateWithFlags), &handle, cudaStreamNonBlocking));
  return Stream(handle);
}

Stream::~Stream() {
  if (handle != nullptr)
    cudaStreamDestroy(handle);
}

} // namespace mcc::runtime
