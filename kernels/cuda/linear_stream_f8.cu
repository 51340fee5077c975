// linear_stream.cuh for f8 weights.
#include "kernels/cuda/linear_stream.cuh"

namespace mcc::cuda {

Status launchStreamF8(const LinearLaunch &launch, cudaStream_t stream) {
  return launchStreamTokens<TileF8>(launch, stream);
}

} // namespace mcc::cuda
