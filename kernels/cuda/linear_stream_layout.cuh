// Who is who in a block of linear_stream.cuh, and where things lie in its shared memory.
#pragma once

#include "kernels/cuda/linear_epilogue.cuh"
#include "kernels/cuda/tiles.cuh"

namespace mcc::cuda {

/// Threads of a block: the multiplying warps, then the loader, then the finisher.
template <class Tile>
constexpr int kMultiplying = Tile::warps * 32;
template <class Tile>
constexpr int kStreamThreads = kMultiplying<Tile> + 64;
/// Floats that splitting rows takes, two rows in turn: where the sums will be.
constexpr int kSplitScratch = 2 * 32;
/// The block barrier of the multiplying warps.
constexpr uint32_t kOperandBarrier = 2;
/// Bytes of a stage of the ring.
template <class Tile>
__host__ __device__ constexpr uint32_t ringStageBytes(int panels) {
  return static_cast<uint32_t>(Tile::pieceCols(panels) / kStepCols * Tile::stepBytes * panels);
}

/// Bytes of an operand of `tokens` rows in shared memory: [tile][part or token][16], then what a step has beside.
template <class Activations>
__host__ __device__ constexpr int64_t residentBytes(int64_t cols, int64_t tokens) {
  return divideUp(cols, kStepCols) * kStepCols * 2 * Activations::parts * tokens + Activations::infoBytes(cols, tokens);
}

/// Where things lie in shared memory, in bytes from its start.
struct StreamShared {
  uint32_t sums, operand, barriers, zeros, total;
  __host__ __device__ StreamShared(uint32_t ringBytes, int bytesOfSums, int operandBytes) {
    sums = ringBytes;
    operand = sums + bytesOfSums;
    barriers = operand + operandBytes; // stages full [16], empty [16]; sums full [2], empty [2]
    zeros = barriers + 36 * 8;
    total = zeros + 16;
  }
};

/// Tokens of the sums' rows.
template <class Tile, int groups>
__host__ __device__ constexpr int sumsTokens(int tokens) {
  return groups == 1 ? tokens : Tile::Activations::capacity(groups);
}

/// Bytes of the warps' sums: two turns of [warp][panel][row][token].
template <class Tile, int groups, int panels>
__host__ __device__ constexpr int sumsBytes(int tokens) {
  return 2 * Tile::warps * panels * kPanel * sumsTokens<Tile, groups>(tokens) * 4;
}

} // namespace mcc::cuda
