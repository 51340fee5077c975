// The GEMM of many tokens (linear_gemm_kernel.cuh): whether it runs here, its weights as a tensor, and the choice of a
// kernel by parts, each in a file of its own.
#include "kernels/cuda/linear_gemm_kernel.cuh"

namespace mcc::cuda {

namespace {

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);

// The driver's function, or null.
EncodeTiled encodeTiled() {
  static const EncodeTiled function = [] {
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found) !=
            cudaSuccess ||
        found != cudaDriverEntryPointSuccess)
      return static_cast<EncodeTiled>(nullptr);
    return reinterpret_cast<EncodeTiled>(entry);
  }();
  return function;
}

} // namespace

bool describePanels(const WeightPanels &weights, int64_t cols, int panels, CUtensorMap &map) {
  const cuuint64_t sizes[3] = {kPanel, static_cast<cuuint64_t>(cols),
                               static_cast<cuuint64_t>(weights.parts) * static_cast<cuuint64_t>(weights.count)};
  const cuuint64_t strides[2] = {32, static_cast<cuuint64_t>(weights.panelBytes)};
  const cuuint32_t box[3] = {kPanel, kGemmCols, static_cast<cuuint32_t>(panels)}, steps[3] = {1, 1, 1};
  return encodeTiled()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, const_cast<uint8_t *>(weights.panels), sizes, strides,
                       box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_32B,
                       CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

bool gemmAvailable() {
  static const bool available = [] {
    int device = 0, major = 0, minor = 0;
    cudaFuncAttributes attributes;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
           cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess && major == 9 &&
           minor == 0 &&
           cudaFuncGetAttributes(&attributes, gemmKernel()) ==
               cudaSuccess &&
           attributes.binaryVersion == 90 && attributes.ptxVersion == 90 && encodeTiled() != nullptr;
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
