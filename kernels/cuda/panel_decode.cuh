// The value of one weight of a packed panel, for every format: what kernels/cpu/PanelFormats.h lays out, one number at
// a time. Used where formats do not go to the tensor cores, to embed and to unpack.
//
// `value(panel, row, column)` is bit-equal to kernels/reference: products and sums are rounded one by one.
#pragma once

#include "kernels/Format.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace mcc::cuda {

__device__ __forceinline__ float halfAt(const uint8_t *bytes, int64_t index) {
  return __half2float(reinterpret_cast<const __half *>(bytes)[index]);
}

/// The quant of `column` among nibbles [pair][16].
__device__ __forceinline__ int nibbleAt(const uint8_t *nibbles, int row, int column) {
  return nibbles[column / 2 * 16 + row] >> (column % 2 * 4) & 15;
}

/// Bit `column` of u32 [16], as the fifth bit of a quant.
__device__ __forceinline__ int fifthBit(const uint8_t *bits, int row, int column) {
  return static_cast<int>(reinterpret_cast<const uint32_t *>(bits)[row] >> column & 1) << 4;
}

__device__ __forceinline__ float affine(float scale, int quant, float offset) {
  return __fadd_rn(__fmul_rn(scale, static_cast<float>(quant)), offset);
}

struct PanelF32 {
  static constexpr int64_t blockCols = 1, blockBytes = 64;
  __device__ static float value(const uint8_t *panel, int row, int64_t column) {
    return reinterpret_cast<const float *>(panel)[column * 16 + row];
  }
};

struct PanelF16 {
  static constexpr int64_t blockCols = 1, blockBytes = 32;
  __device__ static float value(const uint8_t *panel, int row, int64_t column) {
    return halfAt(panel, column * 16 + row);
  }
};

struct PanelBF16 {
  static constexpr int64_t blockCols = 1, blockBytes = 32;
  __device__ static float value(const uint8_t *panel, int row, int64_t column) {
    return __bfloat162float(reinterpret_cast<const __nv_bfloat16 *>(panel)[column * 16 + row]);
  }
};

struct PanelQ8_0 {
  static constexpr int64_t blockCols = 32, blockBytes = 544;
  __device__ static float value(const uint8_t *panel, int row, int64_t column) {
    const uint8_t *block = panel + column / 32 * blockBytes;
    return halfAt(block, row) * static_cast<float>(static_cast<int8_t>(block[32 + column % 32 * 16 + row]));
  }
};

struct PanelF8 {
  static constexpr int64_t blockCols = 32, blockBytes = 576;
  __device__ static float value(const uint8_t *panel, int row, int64_t column) {
    const uint8_t *block = panel + column / 32 * blockBytes;
    const uint16_t bits = block[64 + column % 32 * 16 + row];
    // The half float of the value / 256; the factor is exact.
    const float element = __half2float(__ushort_as_half(static_cast<uint16_t>((bits & 127) << 7 | (bits & 128) << 8))) * 256.0f;
    return reinterpret_cast<const float *>(block)[row] * element;
  }
};

struct PanelQ4_0 {
  static constexpr int64_t blockCols = 32, blockBytes = 288;
  __device__ static float value(const uint8_t *panel, int row, int64_t column) {
    const uint8_t *block = panel + column / 32 * blockBytes;
    return halfAt(block, row) * static_cast<float>(nibbleAt(block + 32, row, static_cast<int>(column % 32)) - 8);
  }
};

struct PanelQ4_1 {
  static constexpr int64_t blockCols = 32, blockBytes = 320;
  __device__ static float value(const uint8_t *panel, int row, int64_t column) {
    const uint8_t *block = panel + column / 32 * blockBytes;
    return affine(halfAt(block, row), nibbleAt(block + 64, row, static_cast<int>(column % 32)),
                  halfAt(block + 32, row));
  }
};

struct PanelQ5_0 {
  static constexpr int64_t blockCols = 32, blockBytes = 352;
  __device__ static float value(const uint8_t *panel, int row, int64_t column) {
    const uint8_t *block = panel + column / 32 * blockBytes;
    const int c = static_cast<int>(column % 32);
    return halfAt(block, row) * static_cast<float>((nibbleAt(block + 96, row, c) | fifthBit(block + 32, row, c)) - 16);
  }
};

struct PanelQ5_1 {
  static constexpr int64_t blockCols = 32, blockBytes = 384;
  __device__ static float value(const uint8_t *panel, int row, int64_t column) {
    const uint8_t *block = panel + column / 32 * blockBytes;
    const int c = static_cast<int>(column % 32);
    return affine(halfAt(block, row), nibbleAt(block + 128, row, c) | fifthBit(block + 64, row, c),
                  halfAt(block + 32, row));
  }
};

/// The 6-bit scale and minimum of part `part` of Q4_K and Q5_K: bytes [12][16].
struct SixBits {
  int scale, minimum;
  __device__ SixBits(const uint8_t *bytes, int row, int part) {
    const auto at = [=](int i) { return static_cast<int>(bytes[i * 16 + row]); };
    if (part < 4) {
      scale = at(part) & 63, minimum = at(part + 4) & 63;
    } else {
      scale = (at(part + 4) & 15) | at(part - 4) >> 6 << 4, minimum = at(part + 4) >> 4 | at(part) >> 6 << 4;
    }
  }
};

struct PanelQ4_K {
  static constexpr int64_t blockCols = 256, blockBytes = 2304;
  __device__ static float value(const uint8_t *panel, int row, int64_t column) {
    const uint8_t *block = panel + column / 256 * blockBytes;
    const int part = static_cast<int>(column % 256 / 32), c = static_cast<int>(column % 32);
    const SixBits six(block + 64, row, part);
    return affine(halfAt(block, row) * static_cast<float>(six.scale), nibbleAt(block + 256 + part * 256, row, c),
                  -(halfAt(block + 32, row) * static_cast<float>(six.minimum)));
  }
};

struct PanelQ5_K {
  static constexpr int64_t blockCols = 256, blockBytes = 2816;
  __device__ static float value(const uint8_t *panel, int row, int64_t column) {
    const uint8_t *block = panel + column / 256 * blockBytes;
    const int part = static_cast<int>(column % 256 / 32), c = static_cast<int>(column % 32);
    const SixBits six(block + 64, row, part);
    const uint8_t *quants = block + 256 + part * 320;
    return affine(halfAt(block, row) * static_cast<float>(six.scale),
                  nibbleAt(quants + 64, row, c) | fifthBit(quants, row, c),
                  -(halfAt(block + 32, row) * static_cast<float>(six.minimum)));
  }
};

struct PanelQ6_K {
  static constexpr int64_t blockCols = 256, blockBytes = 3360;
  __device__ static float value(const uint8_t *panel, int row, int64_t column) {
    const uint8_t *block = panel + column / 256 * blockBytes;
    const int part = static_cast<int>(column % 256 / 16), c = static_cast<int>(column % 16);
    const uint8_t *quants = block + 288 + part * 192;
    const int upper = static_cast<int>(reinterpret_cast<const uint32_t *>(quants)[row] >> (2 * c) & 3) << 4;
    const float scale = halfAt(block, row) * static_cast<float>(static_cast<int8_t>(block[32 + part * 16 + row]));
    return scale * static_cast<float>((nibbleAt(quants + 64, row, c) | upper) - 32);
  }
};

/// Bytes of a packed panel of `cols` columns.
template <class PanelFormat>
__host__ __device__ constexpr int64_t panelBytes(int64_t cols) {
  return (cols / PanelFormat::blockCols * PanelFormat::blockBytes + 63) / 64 * 64;
}

/// Calls visit.operator()<Panel>() for the panel type of `format`.
template <class Visit>
auto withPanelFormat(Format format, Visit visit) {
  switch (format) {
#define MCC_FORMAT(enumerator, text, elems, bytes, ggufId)                                                             \
  case Format::enumerator:                                                                                             \
    return visit.template operator()<Panel##enumerator>();
#include "kernels/FormatTable.def"
  }
  return visit.template operator()<PanelF32>();
}

} // namespace mcc::cuda
