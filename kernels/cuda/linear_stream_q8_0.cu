// linear_stream.cuh for q8_0 weights.
#include "kernels/cuda/linear_stream.cuh"

namespace mcc::cuda {

Status launchStreamQ8_0(const LinearLaunch &launch, cudaStream_t stream) {
  return launchStreamTokens<TileQ8_0>(launch, stream);
}

} // namespace mcc::cuda
