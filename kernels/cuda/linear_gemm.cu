// The GEMM of many tokens (linear_gemm_kernel.cuh): whether it runs here, and the choice of a kernel by parts, each in
// a file of its own.
#include "kernels/cuda/linear_gemm.cuh"

#include <cuda_runtime.h>

namespace mcc::cuda {

bool gemmAvailable() {
  static const bool available = [] {
    int device = 0, major = 0, minor = 0;
    cudaFuncAttributes attributes;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
           cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess && major == 9 &&
           minor == 0 && cudaFuncGetAttributes(&attributes, gemmKernel()) == cudaSuccess &&
           attributes.binaryVersion == 90 && attributes.ptxVersion == 90;
  }();
  return available;
}

Status launchGemm(const LinearLaunch &launch, const ActivationTiles &tiles, const WeightPanels &weights,
                  cudaStream_t stream) {
  if (weights.parts == 1)
    return tiles.parts == 1   ? launchGemm1x1(launch, tiles, weights, stream)
           : tiles.parts == 2 ? launchGemm2x1(launch, tiles, weights, stream)
                              : launchGemm3x1(launch, tiles, weights, stream);
  return tiles.parts == 2 ? launchGemm2x2(launch, tiles, weights, stream)
                          : launchGemm3x2(launch, tiles, weights, stream);
}

} // namespace mcc::cuda
