// Runs the tests where there is a GPU; says so and exits with ctest's code for a skipped test where there is none.
// `--reduced` leaves out most sizes (Device.h).
#define DOCTEST_CONFIG_IMPLEMENT
#include "Device.h"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <string_view>

static bool isReduced = false;

bool mcc::test::reduced() { return isReduced; }

int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i)
    isReduced |= std::string_view(argv[i]) == "--reduced";
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess || devices == 0) {
    std::printf("skipped: no GPU (%s)\n", cudaGetErrorName(error));
    return 77;
  }
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, 0) == cudaSuccess)
    std::printf("device %s, sm_%d%d\n", properties.name, properties.major, properties.minor);
  return doctest::Context(argc, argv).run();
}
