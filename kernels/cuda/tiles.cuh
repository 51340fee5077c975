// Formats whose weights go to the tensor cores: how 32 columns of a packed panel become operand tiles.
//
// A step is 32 columns of a 16-row panel: two tiles of 16x16. `load` brings a step from shared memory into a lane's
// registers, exact values; `multiply` adds its products with `groups` x 8 columns of activations (operand.cuh) to
// `sums`. `pieceCols(panels)` is how many columns of each of so many panels a stage of the ring holds. Lane l = 4 g + t
// holds sums of the panel's rows row(g, 0) (elements 0, 1) and row(g, 1) (2, 3).
#pragma once

#include "kernels/cuda/operand.cuh"

namespace mcc::cuda {

/// [column][16] bf16: ldmatrix transposes 8 columns x 8 rows at a time.
struct TileBF16 {
  using Activations = ThreeBfloats;
  static constexpr Dealing dealing = Dealing::Halves;
  static constexpr int stepBytes = 1024, ringBytes = 96 * 1024, warps = 8;
  __host__ __device__ static constexpr int pieceCols(int panels) { return 512 / panels; }
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
  __device__ void multiply(const Operand<ThreeBfloats, groups> &x, float (&sums)[groups][4]) const {
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int group = 0; group < groups; ++group)
        ptx::mma_m16n8k16(sums[group], tile[i], x.tile[i][group].x, x.tile[i][group].y);
  }
};

/// [column][16] f16, each the sum of two bf16: the upper 8 bits and the rest.
struct TileF16 {
  using Activations = ThreeBfloats;
  static constexpr Dealing dealing = Dealing::Halves;
  static constexpr int stepBytes = 1024, ringBytes = 96 * 1024, warps = 8;
  __host__ __device__ static constexpr int pieceCols(int panels) { return 512 / panels; }
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
  __device__ void multiply(const Operand<ThreeBfloats, groups> &x, float (&sums)[groups][4]) const {
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int group = 0; group < groups; ++group) {
        ptx::mma_m16n8k16(sums[group], upper[i], x.tile[i][group].x, x.tile[i][group].y);
        ptx::mma_m16n8k16(sums[group], rest[i], x.tile[i][group].x, x.tile[i][group].y);
      }
  }
};

/// Quants as halves with one scale a row: sums += scale * (quants x). Rows are 2g and 2g + 1. A tile's value is
/// 2^-unitBits (quant + excess): bits of a quant, as they are, are a subnormal half.
struct ScaledTiles {
  using Activations = TwoHalves;
  uint32_t tile[2][4];
  float2 scale;

  __device__ static int row(int g, int half) { return 2 * g + half; }

  template <int groups>
  __device__ void multiply(const Operand<TwoHalves, groups> &x, float (&sums)[groups][2]) const {
#pragma unroll
    for (int group = 0; group < groups; ++group) {
      float part[4] = {x.info[group].start, 0.0f, x.info[group].start, 0.0f};
      ptx::mma_m16n8k16_f16(part, tile[0], x.tile[0][group].x, x.tile[0][group].y);
      ptx::mma_m16n8k16_f16(part, tile[1], x.tile[1][group].x, x.tile[1][group].y);
      sums[group][0] = fmaf(__fmul_rn(scale.x, x.info[group].factor), __fadd_rn(part[0], part[1]), sums[group][0]);
      sums[group][1] = fmaf(__fmul_rn(scale.y, x.info[group].factor), __fadd_rn(part[2], part[3]), sums[group][1]);
    }
  }

  /// The scales of rows 2g and 2g + 1, f16 [16] at `address`.
  __device__ static float2 loadScales(uint32_t address, int lane) {
    const uint32_t bits = ptx::ld_shared_u32(address + lane / 4 * 4);
    __half2 pair;
    memcpy(&pair, &bits, 4);
    return __half22float2(pair);
  }

  /// Bytes [column][16] at `address`, as 16-bit elements of two rows each: ldmatrix transposes them to (row pair,
  /// column); `expand(bits)` makes halves of the bytes 0 and 2.
  template <class Expand>
  __device__ __forceinline__ void loadBytes(uint32_t address, int lane, Expand expand) {
    uint32_t columns[4];
    ptx::ldmatrix_x4_trans(columns, address + lane * 16);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      tile[i / 2][i % 2 * 2] = expand(columns[i]);
      tile[i / 2][i % 2 * 2 + 1] = expand(columns[i] >> 8);
    }
  }
};

/// d f16 [16], then int8 [column][16], taken as quant + 128.
struct TileQ8_0 : ScaledTiles {
  static constexpr Dealing dealing = Dealing::Halves;
  static constexpr int stepBytes = 544, ringBytes = 5 * 17408, warps = 16, excess = 128;
  static constexpr uint32_t unitBits = 24;
  static constexpr float oddFactor = 1.0f;
  __host__ __device__ static constexpr int pieceCols(int panels) { return 1024 / panels; }

  __device__ static TileQ8_0 load(uint32_t step, int lane, int, uint32_t) {
    TileQ8_0 result;
    result.loadBytes(step + 32, lane, [](uint32_t bits) { return ptx::lop3_and_xor(bits, 0x00ff00ffu, 0x00800080u); });
    result.scale = loadScales(step, lane);
    return result;
  }
};

/// Scale f32 [16], then E4M3 [column][16]: in a half's fields 2^-8 of their value, subnormals too.
struct TileF8 : ScaledTiles {
  static constexpr Dealing dealing = Dealing::Halves;
  static constexpr int stepBytes = 576, ringBytes = 5 * 18432, warps = 16, excess = 0;
  static constexpr uint32_t unitBits = 8;
  static constexpr float oddFactor = 1.0f;
  __host__ __device__ static constexpr int pieceCols(int panels) { return 1024 / panels; }

  __device__ static TileF8 load(uint32_t step, int lane, int, uint32_t) {
    TileF8 result;
    result.loadBytes(step + 64, lane,
                     [](uint32_t bits) { return ptx::lop3_and_or(bits << 8, 0x80008000u, bits << 7 & 0x3f803f80u); });
    const uint32_t scales = step + lane / 4 * 8;
    result.scale = {__uint_as_float(ptx::ld_shared_u32(scales)), __uint_as_float(ptx::ld_shared_u32(scales + 4))};
    return result;
  }
};

/// d f16 [16], then nibbles [column pair][16], of quant + 8. An odd column's nibble stays where it is, at 16 times its
/// unit, for activations that are a sixteenth.
struct TileQ4_0 : ScaledTiles {
  static constexpr Dealing dealing = Dealing::Fours;
  static constexpr int stepBytes = 288, ringBytes = 10 * 9216, warps = 16, excess = 8;
  static constexpr uint32_t unitBits = 24;
  static constexpr float oddFactor = 0x1p-4f;
  __host__ __device__ static constexpr int pieceCols(int) { return 1024; }

  __device__ static TileQ4_0 load(uint32_t step, int lane, int, uint32_t) {
    TileQ4_0 result;
    uint32_t pairs[2];
    ptx::ldmatrix_x2_trans(pairs, step + 32 + lane % 16 * 16);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      result.tile[i][0] = pairs[i] & 0x000f000fu;
      result.tile[i][1] = pairs[i] >> 8 & 0x000f000fu;
      result.tile[i][2] = pairs[i] & 0x00f000f0u;
      result.tile[i][3] = pairs[i] >> 8 & 0x00f000f0u;
    }
    result.scale = loadScales(step, lane);
    return result;
  }
};

} // namespace mcc::cuda
