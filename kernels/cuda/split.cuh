// Activations for the tensor cores: an f32 as the sum of three bf16, and where a tile wants them.
//
// high = bf16(x), middle = bf16(x - high), low = bf16(x - high - middle): 24 bits, so their sum is x exactly (but for
// the last bits of numbers below 2^-110). A product with a bf16 weight is exact in f32, so `linear` on tensor cores
// multiplies the same numbers as an f32 chain does and differs in the rounding of sums alone. An infinite x gives NaN.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <cstring>

namespace mcc::cuda {

/// The three parts of a number, as bits.
struct Parts {
  uint16_t part[3];
};

__device__ __forceinline__ Parts split(float x) {
  const __nv_bfloat16 high = __float2bfloat16_rn(x);
  const float rest = x - __bfloat162float(high);
  const __nv_bfloat16 middle = __float2bfloat16_rn(rest);
  const __nv_bfloat16 low = __float2bfloat16_rn(rest - __bfloat162float(middle));
  return {{__bfloat16_as_ushort(high), __bfloat16_as_ushort(middle), __bfloat16_as_ushort(low)}};
}

/// Eight of one part as they are stored together.
__device__ __forceinline__ uint4 eightOf(const uint16_t (&bits)[8]) {
  uint4 eight;
  memcpy(&eight, bits, sizeof(eight));
  return eight;
}

/// How the 16 columns of a tile are dealt to lanes: lane l holds four of them in slots 0 to 3, in l % 4 order.
enum class Dealing {
  Halves, ///< 2t, 2t+1, 2t+8, 2t+9: the order that ldmatrix gives
  Fours,  ///< 4t, 4t+2, 4t+1, 4t+3: the order in which neighbours share a byte
};

/// Returns the place, in elements, of column `column` of 16 within a tile's [4 lanes][4 slots].
template <Dealing dealing>
__device__ __forceinline__ int dealt(int column) {
  if constexpr (dealing == Dealing::Halves)
    return column % 8 / 2 * 4 + column % 2 + column / 8 * 2;
  else
    return column / 4 * 4 + column % 2 * 2 + column / 2 % 2;
}

/// Stores one part of the columns `column` to column + 3, a multiple of 4; place(column) gives where one goes.
template <Dealing dealing, class Place>
__device__ __forceinline__ void storeQuad(const Parts (&parts)[4], int part, int column, Place place) {
  const auto pair = [&](int a, int b) {
    return static_cast<uint32_t>(parts[a].part[part]) | static_cast<uint32_t>(parts[b].part[part]) << 16;
  };
  if constexpr (dealing == Dealing::Halves) {
    *reinterpret_cast<uint32_t *>(place(column)) = pair(0, 1);
    *reinterpret_cast<uint32_t *>(place(column + 2)) = pair(2, 3);
  } else {
    *reinterpret_cast<uint2 *>(place(column)) = uint2{pair(0, 2), pair(1, 3)};
  }
}

} // namespace mcc::cuda
