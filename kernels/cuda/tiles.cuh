// Formats whose weights go to the tensor cores: how 32 columns of a packed panel become operand tiles.
//
// A step is 32 columns of a 16-row panel: two tiles of 16x16. `load` brings a step from shared memory into a lane's
// registers, exact bf16 values; `multiply` adds its products with `groups` x 8 columns of activations to `sums`.
// Lane l = 4 g + t holds sums of the panel's rows row(g, 0) (elements 0, 1) and row(g, 1) (2, 3).
#pragma once

#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/split.cuh"

#include <cuda_fp16.h>

namespace mcc::cuda {

constexpr int kStepCols = 32;

/// One lane's activations of a tile: two registers for each group of 8 columns.
template <int groups>
struct Operand {
  uint2 group[groups];
};

/// [column][16] bf16: ldmatrix transposes 8 columns x 8 rows at a time.
struct TileBF16 {
  static constexpr Dealing dealing = Dealing::Halves;
  static constexpr int stepBytes = 1024, stageCols = 512, ringBytes = 96 * 1024, warps = 8;
  uint32_t tile[2][4];

  __device__ static int row(int g, int half) { return g + 8 * half; }

  /// `columns` of the step exist; the rest read the 16 zero bytes at `zeros`.
  __device__ static TileBF16 load(uint32_t step, int lane, int columns, uint32_t zeros) {
    // Matrices: rows 0-7 and 8-15 of columns 0-7, then of 8-15.
    const int column = lane % 8 + lane / 16 * 8;
    const uint32_t address = step + column * 32 + lane / 8 % 2 * 16;
    TileBF16 result;
    ptx::ldmatrix_x4_trans(result.tile[0], column < columns ? address : zeros);
    ptx::ldmatrix_x4_trans(result.tile[1], column + 16 < columns ? address + 512 : zeros);
    return result;
  }

  template <int groups>
  __device__ void multiply(const Operand<groups> (&x)[2], float (&sums)[groups][4]) const {
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int group = 0; group < groups; ++group)
        ptx::mma_m16n8k16(sums[group], tile[i], x[i].group[group].x, x[i].group[group].y);
  }
};

/// [column][16] f16, each the sum of two bf16: the upper 8 bits and the rest.
struct TileF16 {
  static constexpr Dealing dealing = Dealing::Halves;
  static constexpr int stepBytes = 1024, stageCols = 512, ringBytes = 96 * 1024, warps = 8;
  uint32_t upper[2][4], rest[2][4];

  __device__ static int row(int g, int half) { return TileBF16::row(g, half); }

  __device__ static TileF16 load(uint32_t step, int lane, int columns, uint32_t zeros) {
    const TileBF16 halves = TileBF16::load(step, lane, columns, zeros);
    TileF16 result;
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        __half2 pair;
        memcpy(&pair, &halves.tile[i][r], 4);
        const float2 value = __half22float2(pair);
        const __nv_bfloat162 high = __float22bfloat162_rn(value);
        const float2 back = __bfloat1622float2(high);
        const __nv_bfloat162 low = __float22bfloat162_rn({value.x - back.x, value.y - back.y});
        memcpy(&result.upper[i][r], &high, 4);
        memcpy(&result.rest[i][r], &low, 4);
      }
    return result;
  }

  template <int groups>
  __device__ void multiply(const Operand<groups> (&x)[2], float (&sums)[groups][4]) const {
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int group = 0; group < groups; ++group) {
        ptx::mma_m16n8k16(sums[group], upper[i], x[i].group[group].x, x[i].group[group].y);
        ptx::mma_m16n8k16(sums[group], rest[i], x[i].group[group].x, x[i].group[group].y);
      }
  }
};

/// a - b on two bf16.
__device__ __forceinline__ uint32_t subtract2(uint32_t a, uint32_t b) {
  __nv_bfloat162 x, y;
  memcpy(&x, &a, 4);
  memcpy(&y, &b, 4);
  const __nv_bfloat162 difference = __hsub2(x, y);
  uint32_t bits;
  memcpy(&bits, &difference, 4);
  return bits;
}

/// Quants as exact bf16 integers with one scale a row: sums += scale * (quants x). Rows are 2g and 2g + 1.
struct ScaledTiles {
  uint32_t tile[2][4];
  float2 scale;

  __device__ static int row(int g, int half) { return 2 * g + half; }

  template <int groups>
  __device__ void multiply(const Operand<groups> (&x)[2], float (&sums)[groups][4]) const {
#pragma unroll
    for (int group = 0; group < groups; ++group) {
      float part[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      ptx::mma_m16n8k16(part, tile[0], x[0].group[group].x, x[0].group[group].y);
      ptx::mma_m16n8k16(part, tile[1], x[1].group[group].x, x[1].group[group].y);
      sums[group][0] = fmaf(scale.x, part[0], sums[group][0]);
      sums[group][1] = fmaf(scale.x, part[1], sums[group][1]);
      sums[group][2] = fmaf(scale.y, part[2], sums[group][2]);
      sums[group][3] = fmaf(scale.y, part[3], sums[group][3]);
    }
  }

  /// The scales of rows 2g and 2g + 1, f16 [16] at `address`.
  __device__ static float2 loadScales(uint32_t address, int lane) {
    const uint32_t bits = ptx::ld_shared_u32(address + lane / 4 * 4);
    __half2 pair;
    memcpy(&pair, &bits, 4);
    return __half22float2(pair);
  }
};

/// d f16 [16], then int8 [column][16]. As 16-bit elements, two rows each, ldmatrix transposes them to (row pair,
/// column).
struct TileQ8_0 : ScaledTiles {
  static constexpr Dealing dealing = Dealing::Halves;
  static constexpr int stepBytes = 544, stageCols = 1024, ringBytes = 5 * 17408, warps = 16;

  /// Two int8, the bytes 0 and 2 of `pair`: 128 + the low seven bits less 128 or, where the sign is set, 256.
  __device__ static uint32_t expand(uint32_t pair) {
    return subtract2(ptx::lop3_and_or(pair, 0x007f007fu, 0x43004300u),
                     ptx::lop3_and_or(pair, 0x00800080u, 0x43004300u));
  }

  __device__ static TileQ8_0 load(uint32_t step, int lane, int, uint32_t) {
    TileQ8_0 result;
    uint32_t columns[4];
    ptx::ldmatrix_x4_trans(columns, step + 32 + lane * 16);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      result.tile[i / 2][i % 2 * 2] = expand(columns[i]);
      result.tile[i / 2][i % 2 * 2 + 1] = expand(columns[i] >> 8);
    }
    result.scale = loadScales(step, lane);
    return result;
  }
};

/// Scale f32 [16], then E4M3 [column][16].
struct TileF8 : ScaledTiles {
  static constexpr Dealing dealing = Dealing::Halves;
  static constexpr int stepBytes = 576, stageCols = 1024, ringBytes = 5 * 18432, warps = 16;

  /// Two elements, the bytes 0 and 2 of `pair`: moved to a bf16's fields they are 2^-120 of their value, subnormals too.
  __device__ static uint32_t expand(uint32_t pair) {
    const uint32_t moved = (pair & 0x007f007fu) << 4 | (pair & 0x00800080u) << 8;
    const uint32_t factors = 0x7b807b80u; // 2^120
    __nv_bfloat162 x, factor;
    memcpy(&x, &moved, 4);
    memcpy(&factor, &factors, 4);
    const __nv_bfloat162 value = __hmul2(x, factor);
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
  }

  __device__ static TileF8 load(uint32_t step, int lane, int, uint32_t) {
    TileF8 result;
    uint32_t columns[4];
    ptx::ldmatrix_x4_trans(columns, step + 64 + lane * 16);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      result.tile[i / 2][i % 2 * 2] = expand(columns[i]);
      result.tile[i / 2][i % 2 * 2 + 1] = expand(columns[i] >> 8);
    }
    const uint32_t scales = step + lane / 4 * 8;
    result.scale = {__uint_as_float(ptx::ld_shared_u32(scales)), __uint_as_float(ptx::ld_shared_u32(scales + 4))};
    return result;
  }
};

/// d f16 [16], then nibbles [column pair][16]; value d (q - 8).
struct TileQ4_0 : ScaledTiles {
  static constexpr Dealing dealing = Dealing::Fours;
  static constexpr int stepBytes = 288, stageCols = 1024, ringBytes = 10 * 9216, warps = 16;

  /// Two nibbles, at bits 0 and 16 of `pair`: 128 + q less 136.
  __device__ static uint32_t expand(uint32_t pair) {
    return subtract2(ptx::lop3_and_or(pair, 0x000f000fu, 0x43004300u), 0x43084308u);
  }

  __device__ static TileQ4_0 load(uint32_t step, int lane, int, uint32_t) {
    TileQ4_0 result;
    uint32_t pairs[2];
    ptx::ldmatrix_x2_trans(pairs, step + 32 + lane % 16 * 16);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      result.tile[i][0] = expand(pairs[i]);
      result.tile[i][1] = expand(pairs[i] >> 8);
      result.tile[i][2] = expand(pairs[i] >> 4);
      result.tile[i][3] = expand(pairs[i] >> 12);
    }
    result.scale = loadScales(step, lane);
    return result;
  }
};

} // namespace mcc::cuda
