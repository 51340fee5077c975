// What the GPU runtime says without a GPU that it can use; runs anywhere.
#include "kernels/KernelTable.h"
#include "runtime-lib/cuda/Devices.h"
#include "runtime-lib/cuda/LaunchTable.h"
#include "runtime-lib/src/Gpu.h"

#include <doctest/doctest.h>

using namespace mcc;
using namespace mcc::runtime;

TEST_CASE("drivers and devices that do not do") {
  CHECK(judgeDriver(0, {}, 0).message() == "no NVIDIA driver is installed (libcuda.so.1 is not found)");
  const Status old = statusOf("cudaGetDeviceCount", cudaErrorInsufficientDriver);
  CHECK(judgeDriver(12040, old, 0).message().find("; the driver supports CUDA 12.4, this program needs 13.0; update the driver") != std::string::npos);
  CHECK(judgeDriver(13000, statusOf("cudaGetDeviceCount", cudaErrorNoDevice), 0).message().find("cudaGetDeviceCount: cudaErrorNoDevice (") == 0);
  CHECK(judgeDriver(13000, {}, 0).message() == "no GPU is visible; see nvidia-smi and CUDA_VISIBLE_DEVICES");
  CHECK(judgeDriver(13000, {}, 1).ok());
  CHECK(judgeDriver(12040, {}, 1).ok()); // minor versions are compatible where the driver says so itself
  CHECK(judgeDevice({"Tesla T4", 7, 5, 13000, 0, 0}).message() == "the GPU 'Tesla T4' has compute capability 7.5; the kernels need 8.0");
  CHECK(judgeDevice({"NVIDIA A100", 8, 0, 13000, 0, 0}).ok());
}

TEST_CASE("every kernel of the table has a launcher") {
  for (uint32_t kernel = 0; kernel < kernels().size(); ++kernel) {
    CAPTURE(kernels()[kernel].name);
    CHECK(hasLauncher(kernel));
    CHECK(hasCudaLauncher(kernels()[kernel].name)); // what placement believes
  }
}

TEST_CASE("a plan that cannot be is refused before the GPU is asked") {
  const MccRegion regions[] = {{MCC_ARENA, 0, 0, 64, 64}, {MCC_CACHE, 0, 0, 64, 0}, {MCC_CACHE, 0, 64, 64, 0}};
  const auto at = [](uint32_t region) { return MccArgument{region, 0, 0}; };
  const MccArgument none = at(MCC_NO_REGION);
  const MccArgument rope[] = {at(0), at(0), at(0), none, none, none, at(1), at(2)};
  const MccArgument attention[] = {at(0), at(1), at(2), none, none, at(0)};
  const auto number = [](const char *name) { return static_cast<uint32_t>(kernelIndex(*findKernel(name))); };
  const MccLaunch launches[] = {{"rope", number("rope_cache"), -1, 0, 0, rope, nullptr, nullptr, nullptr, nullptr},
                                {"attention", number("attention"), -1, 0, 0, attention, nullptr, nullptr, nullptr, nullptr}};
  const MccProgram program = {3, 2, regions, launches, nullptr};
  MccModel model{};
  model.program = &program;
  GpuRequest request;
  request.model = &model;
  request.onGpu = {true, false};
  CHECK(mccrt_gpu_runtime.create(request).message() == "the plan puts ops that share a cache on different devices");
}
