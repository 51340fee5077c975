// The GEMM of many tokens (linear_gemm_kernel.cuh): 1 part of an activation, 1 of a weight.
#include "kernels/cuda/linear_gemm_kernel.cuh"

namespace mcc::cuda {

Status launchGemm1x1(const LinearLaunch &launch, const ActivationTiles &tiles, const WeightPanels &weights,
                     cudaStream_t stream) {
  return startGemm<1, 1>(launch, tiles, weights, stream);
}

const void *gemmKernel() { return reinterpret_cast<const void *>(linear_gemm_kernel<Tiling<1, 16, 1, 1>>); }

} // namespace mcc::cuda
