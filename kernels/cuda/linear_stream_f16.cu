// linear_stream.cuh for f16 weights.
#include "kernels/cuda/linear_stream.cuh"

namespace mcc::cuda {

Status launchStreamF16(const LinearLaunch &launch, cudaStream_t stream) {
  return launchStreamTokens<TileF16>(launch, stream);
}

} // namespace mcc::cuda
