#include "compiler/Backend/CudaDevice.h"

#include <dlfcn.h>

namespace mcc {
namespace {

// The three calls of the driver's interface that the question takes; 0 is success.
using Init = int (*)(unsigned flags);
using DeviceCount = int (*)(int *count);
using ErrorName = int (*)(int error, const char **name);

std::string nameOf(void *driver, int error) {
  const char *name = nullptr;
  if (auto errorName = reinterpret_cast<ErrorName>(dlsym(driver, "cuGetErrorName")))
    errorName(error, &name);
  return name ? name : "error " + std::to_string(error);
}

// Returns what failed, for the brackets.
std::optional<std::string> failedCall(void *driver) {
  auto init = reinterpret_cast<Init>(dlsym(driver, "cuInit"));
  auto count = reinterpret_cast<DeviceCount>(dlsym(driver, "cuDeviceGetCount"));
  if (!init || !count)
    return "the driver's library lacks cuInit or cuDeviceGetCount";
  if (int error = init(0))
    return "cuInit: " + nameOf(driver, error);
  int devices = 0;
  if (int error = count(&devices))
    return "cuDeviceGetCount: " + nameOf(driver, error);
  if (devices == 0)
    return "cuDeviceGetCount: 0 devices";
  return std::nullopt;
}

} // namespace

std::optional<std::string> missingCudaDevice() {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  std::optional<std::string> failed = driver ? failedCall(driver) : "cuInit: no driver";
  if (driver)
    dlclose(driver);
  if (failed)
    return "no CUDA device on this machine (" + *failed + ")";
  return std::nullopt;
}

} // namespace mcc
