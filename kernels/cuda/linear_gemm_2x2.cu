// The GEMM of many tokens (linear_gemm_kernel.cuh): 2 parts of an activation, 2 of a weight.
#include "kernels/cuda/linear_gemm_kernel.cuh"

namespace mcc::cuda {

Status launchGemm2x2(const LinearLaunch &launch, const ActivationTiles &tiles, const WeightPanels &weights,
                     cudaStream_t stream) {
  return startGemm<2, 2>(launch, tiles, weights, stream);
}

} // namespace mcc::cuda
