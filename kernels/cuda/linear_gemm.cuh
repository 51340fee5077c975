// `linear` for many tokens on sm_90a: what the GEMM, the kernels before it and the launcher agree on.
#pragma once

#include "kernels/cuda/linear_epilogue.cuh"

namespace mcc::cuda {

// Tokens and columns of a tile of activations.
constexpr int kGemmTokens = 128, kGemmCols = 64;
constexpr int64_t kActivationTileBytes = kGemmTokens * kGemmCols * 2;

/// Activations as a GEMM reads them: bf16 tiles [part][tile of tokens][tile of columns] of 128 tokens x 64 columns,
/// each the 16 KiB that shared memory is to hold: 128 bytes a token, their 16-byte pieces exchanged by token % 8. Zeros
/// where there is no token or column.
struct ActivationTiles {
  uint16_t *tiles;
  int parts, tokenTiles, colTiles;
};

/// Bytes of the tiles.
constexpr int64_t activationTileBytes(int64_t tokens, int64_t cols, int parts) {
  return parts * divideUp(tokens, kGemmTokens) * divideUp(cols, kGemmCols) * kActivationTileBytes;
}

/// Weights as a GEMM reads them: panels of bf16, 32 bytes a column, `panelBytes` apart; `parts` (1 or 2) times
/// `count` of them, the second part after the first.
struct WeightPanels {
  const uint8_t *panels;
  int64_t panelBytes;
  int parts, count;
};

/// linear_gemm.cu. True where the device runs the GEMM: its sm_90a machine code is linked in.
bool gemmAvailable();
/// linear_gemm.cu: `launch` with these operands. Of parts i of an activation and j of a weight those products are added
/// for which i + j is less than the larger number of parts.
Status launchGemm(const LinearLaunch &launch, const ActivationTiles &tiles, const WeightPanels &weights,
                  cudaStream_t stream);

/// linear_gemm_<parts>x<weight parts>.cu: the same for so many parts.
using GemmLauncher = Status(const LinearLaunch &launch, const ActivationTiles &tiles, const WeightPanels &weights,
                            cudaStream_t stream);
GemmLauncher launchGemm1x1, launchGemm2x1, launchGemm3x1, launchGemm2x2, launchGemm3x2;
/// linear_gemm_1x1.cu: one of the kernels, to ask what machine code it has.
const void *gemmKernel();

/// linear_prefill.cu: any format and number of tokens through the GEMM; `parts` as Linear::prefillParts.
Status launchPrefillGemm(Format format, const LinearLaunch &launch, int parts, uint8_t *workspace, cudaStream_t stream);
/// Bytes of its workspace; monotonic.
int64_t prefillWorkspaceBytes(int64_t tokens, int64_t cols, int parts);

} // namespace mcc::cuda
