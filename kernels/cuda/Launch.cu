// Facts of the device that launchers ask for.
#include "kernels/cuda/launch.cuh"

namespace mcc::cuda {

int multiprocessors() {
  static const int count = [] {
    int device = 0, value = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, device) != cudaSuccess)
      return 1;
    return value;
  }();
  return count;
}

} // namespace mcc::cuda
