// linear_stream.cuh for bf16 weights.
#include "kernels/cuda/linear_stream.cuh"

namespace mcc::cuda {

Status launchStreamBF16(const LinearLaunch &launch, cudaStream_t stream) {
  return launchStreamTokens<TileBF16>(launch, stream);
}

} // namespace mcc::cuda
