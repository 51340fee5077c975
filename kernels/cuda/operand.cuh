// How activations become operands of the tensor cores: two ways, each a policy that linear_stream.cuh and Linear.cu
// are written for.
//
// An operand is tiles of 16 columns (of the row of activations) by 8; a group is one such 8. Lane l = 4 g + t holds
// column g of a group. A *resident* operand lies in a block's shared memory, that of the other path in the workspace as
// [tile][group][lane] of 8 bytes.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/split.cuh"

#include <cuda_fp16.h>

namespace mcc::cuda {

/// Columns of a step: two tiles.
constexpr int kStepCols = 32;

/// For bf16 weights of any magnitude: three bf16 a number (split.cuh), whose sum is the number. One group holds two
/// tokens: column g is part g / 2 of token g % 2. More hold eight tokens each, part by part.
struct ThreeBfloats {
  static constexpr int parts = 3, sumsPerGroup = 4, residentTokens = 2;
  struct Info {};

  /// Groups of a workspace operand for up to 16 tokens.
  __host__ __device__ static constexpr int groupsOf(int64_t tokens) { return tokens <= 8 ? 3 : 6; }
  /// Tokens that fit beside each other.
  __host__ __device__ static constexpr int capacity(int groups) { return groups == 1 ? 2 : groups / 3 * 8; }
  __host__ __device__ static constexpr int64_t infoBytes(int64_t, int64_t) { return 0; }

  /// Which part and token column `g` of a lone group is.
  __device__ static int partOf(int g) { return g / 2; }
  __device__ static int tokenOf(int g) { return g % 2; }
  /// The group and column of a token's part among `groups` > 1.
  __device__ static int groupOf(int part, int token, int groups) { return part * (groups / 3) + token / 8; }
  __device__ static int columnOf(int, int token) { return token % 8; }

  /// Writes the numbers of columns `column` to + 3; `place(column, part)` gives where one goes.
  template <class Tile, class Place, class PlaceInfo>
  __device__ __forceinline__ static void put(int column, float4 v, int, Place place, PlaceInfo) {
    const Parts numbers[4] = {split(v.x), split(v.y), split(v.z), split(v.w)};
#pragma unroll
    for (int part = 0; part < parts; ++part)
      storeQuad<Tile::dealing>(numbers, part, column, [&](int at) { return place(at, part); });
  }

  /// A warp's sums of one row to `to` [token]: the parts of a token are added here.
  template <int groups>
  __device__ __forceinline__ static void store(const float (&sums)[groups][4], int half, float *to, int tokens, int t) {
#pragma unroll
    for (int i = 2 * half; i < 2 * half + 2; ++i)
      if constexpr (groups == 1) {
        // Lane t holds part t of tokens 0 and 1.
        const float middle = __shfl_down_sync(0xffffffffu, sums[0][i], 1),
                    low = __shfl_down_sync(0xffffffffu, sums[0][i], 2);
        if (t == 0 && i % 2 < tokens)
          to[i % 2] = sums[0][i] + middle + low;
      } else {
        constexpr int apart = groups / 3;
#pragma unroll
        for (int h = 0; h < apart; ++h)
          to[h * 8 + 2 * t + i % 2] = sums[h][i] + sums[apart + h][i] + sums[2 * apart + h][i];
      }
  }
};

/// For quants with a scale a step: two halves a number, 22 bits of it, after a power of two that brings the step's
/// largest near 2^15. A step's sum is exact up to f32's rounding; `factor` takes the powers of two back, and products
/// begin at `start`, which stands for what a tile's quants have too much (Tile::excess) times the step's sum of
/// numbers. A group holds four tokens: column g is part g % 2 of token g / 2, so that lane t's two sums are those of
/// token t. Numbers of 2^117 and more give infinity or NaN.
struct TwoHalves {
  static constexpr int parts = 2, sumsPerGroup = 2, residentTokens = 4;
  struct Info {
    float start, factor;
  };

  __host__ __device__ static constexpr int groupsOf(int64_t tokens) { return tokens <= 8 ? 2 : 4; }
  __host__ __device__ static constexpr int capacity(int groups) { return groups * 4; }
  /// Bytes of Info [step][token].
  __host__ __device__ static constexpr int64_t infoBytes(int64_t cols, int64_t tokens) {
    return divideUp(cols, kStepCols) * tokens * static_cast<int64_t>(sizeof(Info));
  }

  __device__ static int partOf(int g) { return g % 2; }
  __device__ static int tokenOf(int g) { return g / 2; }
  __device__ static int groupOf(int, int token, int) { return token / 4; }
  __device__ static int columnOf(int part, int token) { return token % 4 * 2 + part; }

  /// Eight neighbouring threads, which call it together, hold a step's columns.
  template <class Tile, class Place, class PlaceInfo>
  __device__ __forceinline__ static void put(int column, float4 v, int thread, Place place, PlaceInfo placeInfo) {
    const uint32_t eight = 0xffu << (thread & 24);
    float largest = fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
#pragma unroll
    for (int apart = 1; apart < 8; apart *= 2)
      largest = fmaxf(largest, __shfl_xor_sync(eight, largest, apart));
    const uint32_t exponent = min(max(__float_as_uint(largest) >> 23, 14u), 254u);
    const float up = __uint_as_float((268 - exponent) << 23); // to 2^14 and more
    v.x *= up, v.y *= up, v.z *= up, v.w *= up;
    float sum = (v.x + v.y) + (v.z + v.w);
#pragma unroll
    for (int apart = 1; apart < 8; apart *= 2)
      sum = __fadd_rn(sum, __shfl_xor_sync(eight, sum, apart));
    if (thread % 8 == 0)
      *placeInfo(column / kStepCols) = {sum * -static_cast<float>(Tile::excess) /
                                            static_cast<float>(1 << Tile::unitBits),
                                        __uint_as_float(min(exponent + Tile::unitBits - 14, 255u) << 23)};
    const Parts numbers[4] = {halves(v.x), halves(v.y * Tile::oddFactor), halves(v.z), halves(v.w * Tile::oddFactor)};
#pragma unroll
    for (int part = 0; part < parts; ++part)
      storeQuad<Tile::dealing>(numbers, part, column, [&](int at) { return place(at, part); });
  }

  template <int groups>
  __device__ __forceinline__ static void store(const float (&sums)[groups][2], int half, float *to, int tokens, int t) {
#pragma unroll
    for (int h = 0; h < groups; ++h)
      if (groups > 1 || t < tokens)
        to[h * 4 + t] = sums[h][half];
  }

private:
  __device__ __forceinline__ static Parts halves(float x) {
    const __half high = __float2half_rn(x), low = __float2half_rn(x - __half2float(high));
    return {{__half_as_ushort(high), __half_as_ushort(low), 0}};
  }
};

/// One lane's activations of a step.
template <class Activations, int groups>
struct Operand {
  uint2 tile[2][groups];
  typename Activations::Info info[groups];
};

} // namespace mcc::cuda
