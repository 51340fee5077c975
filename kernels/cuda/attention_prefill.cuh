// Attention of many tokens on sm_90a: the kernels' constants and what the launcher is given.
#pragma once

#include "kernels/cuda/Attention.h"
#include "kernels/cuda/launch.cuh"

namespace mcc::cuda {

/// Constants by padded head dimension and bf16 parts of a number.
template <int kDims, int kParts>
struct FlashTiling {
  static constexpr int dims = kDims, parts = kParts;
  /// Keys of a tile.
  static constexpr int keys = dims == 256 || (dims == 128 && parts == 2) ? 64 : 128;
  /// Multiplying warpgroups, 64 rows each.
  static constexpr int groups = dims == 256 && parts == 2 ? 1 : 2;
  static constexpr int rows = groups * 64, threads = groups * 128 + 128;
  static constexpr int tileBytes = keys * dims * 2, slotBytes = tileBytes * parts;
  static constexpr int queryBytes = 64 * dims * 2; ///< of a part and group
  static constexpr int barrierBytes = 128, fixedBytes = barrierBytes + 1024 + groups * parts * queryBytes;
  static constexpr int room = (227 * 1024 - fixedBytes) / slotBytes, slots = room < 6 ? room : 6;
  static_assert(slots >= 2 && 2 * 8 * slots <= barrierBytes);
};

/// Tiles of bf16 [kv head][tile of keys][keys, values][part], each the bytes that shared memory is to hold.
/// Keys: [16 positions][dimension][16], their halves exchanged where bit 2 of the dimension is set. Values: [64
/// dimensions][position][64], their 16-byte pieces exchanged by position % 8. Zeros where there is no position or
/// dimension.
struct FlashLaunch {
  Attention attention;
  const int32_t *position;
  uint8_t *tiles;
  int tokens, group, tilesPerHead, rowTiles;
};

/// Positions [first, last] that the step's token sees.
struct Sight {
  int first, last;
};
__device__ __forceinline__ Sight sightOf(const Attention &a, int position) {
  int64_t first = a.window > 0 && position >= a.window ? position - a.window + 1 : 0;
  if (a.chunk > 0)
    first = max(first, position / a.chunk * a.chunk);
  return {static_cast<int>(first), position};
}

/// attention_prefill.cu. True where these kernels serve the shape on this device.
bool flashAvailable(int64_t headDim);
/// Bytes of the tiles for a whole context.
int64_t flashWorkspaceBytes(int64_t kvHeads, int64_t headDim, int64_t context, int parts);
/// `tiles`: flashWorkspaceBytes, 128-byte aligned.
Status launchFlash(const Step &step, const Attention &attention, uint8_t *tiles, cudaStream_t stream);

} // namespace mcc::cuda
