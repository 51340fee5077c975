// linear_stream.cuh for q4_0 weights.
#include "kernels/cuda/linear_stream.cuh"

namespace mcc::cuda {

Status launchStreamQ4_0(const LinearLaunch &launch, cudaStream_t stream) {
  return launchStreamTokens<TileQ4_0>(launch, stream);
}

} // namespace mcc::cuda
