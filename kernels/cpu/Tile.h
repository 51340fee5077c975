// The register tiles of `linear`: dot products of packed panels and token rows.
//
// Every output has one accumulator that runs over the columns in order, one multiply-add per column. All paths keep
// this: the tile's shape, the number of tokens and the cuts between depth chunks change which outputs are computed
// together, never the additions of one. A partial sum that is stored and loaded again is the same f32.
#pragma once

#include "kernels/cpu/PanelFormats.h"
#include "kernels/cpu/Sizes.h"

namespace mcc::cpu {

/// sums[panel][token] = the dot products of `panels` panels and `tokens` rows, decoding weights in registers.
/// Reads every weight once. Used for few tokens.
template <class PanelFormat, int64_t panels, int64_t tokens>
MCC_VECTOR inline void multiplyPacked(const uint8_t *weights, int64_t panelBytes, const float *x, int64_t xStride,
                                      int64_t cols, F32x16 (*sums)[tokens]) {
  using Group = decltype(PanelFormat::load(nullptr, 0));
  constexpr int64_t groupCols = PanelFormat::groupCols, stepCols = PanelFormat::stepCols;
  F32x16 acc[panels][tokens] = {};
  const int64_t groups = cols / groupCols;
  for (int64_t group = 0; group < groups; ++group) {
    Group decoders[panels];
    MCC_UNROLL
    for (int64_t p = 0; p < panels; ++p)
      decoders[p] = PanelFormat::load(weights + p * panelBytes, group);
    for (int64_t column = 0; column < groupCols; column += stepCols) {
      const float *xs = x + group * groupCols + column;
      MCC_UNROLL
      for (int64_t p = 0; p < panels; ++p) {
        F32x16 values[stepCols];
        decoders[p].decode(column, values);
        MCC_UNROLL
        for (int64_t s = 0; s < stepCols; ++s)
          MCC_UNROLL
          for (int64_t t = 0; t < tokens; ++t)
            acc[p][t] += values[s] * xs[t * xStride + s];
      }
    }
  }
  for (int64_t p = 0; p < panels; ++p)
    for (int64_t t = 0; t < tokens; ++t)
      sums[p][t] = acc[p][t];
}

/// Dequantises columns [begin, end) of one panel to f32 [end - begin][16]; both are multiples of the format's block.
template <class PanelFormat>
MCC_VECTOR inline void dequantisePanel(const uint8_t *panel, int64_t begin, int64_t end, float *out) {
  constexpr int64_t groupCols = PanelFormat::groupCols, stepCols = PanelFormat::stepCols;
  for (int64_t group = begin / groupCols; group < end / groupCols; ++group) {
    const auto decoder = PanelFormat::load(panel, group);
    for (int64_t column = 0; column < groupCols; column += stepCols) {
      F32x16 values[stepCols];
      decoder.decode(column, values);
      for (int64_t s = 0; s < stepCols; ++s, out += kLanes)
        store(out, values[s]);
    }
  }
}

/// A block of dequantised panels, the rows they meet and their partial sums.
struct TileOperands {
  const float *weights;  ///< [panel][depth][16]
  int64_t panelFloats;   ///< from one panel to the next
  const float *x;        ///< [token][depth]
  int64_t xStride;
  int64_t depth;
  float *sums;           ///< [panel][token][16]
  int64_t panelSums;     ///< floats from one panel's sums to the next
};

/// Adds the products of one tile to its sums.
template <int64_t panels, int64_t tokens>
MCC_VECTOR inline void multiplyTile(const TileOperands &operands) {
  F32x16 acc[panels][tokens];
  MCC_UNROLL
  for (int64_t p = 0; p < panels; ++p)
    MCC_UNROLL
    for (int64_t t = 0; t < tokens; ++t)
      acc[p][t] = load(operands.sums + p * operands.panelSums + t * kLanes);
  const float *weights = operands.weights, *x = operands.x;
  for (int64_t k = 0; k < operands.depth; ++k) {
    F32x16 values[panels];
    MCC_UNROLL
    for (int64_t p = 0; p < panels; ++p)
      values[p] = load(weights + p * operands.panelFloats + k * kLanes);
    MCC_UNROLL
    for (int64_t t = 0; t < tokens; ++t)
      MCC_UNROLL
      for (int64_t p = 0; p < panels; ++p)
        acc[p][t] += values[p] * x[t * operands.xStride + k];
  }
  MCC_UNROLL
  for (int64_t p = 0; p < panels; ++p)
    MCC_UNROLL
    for (int64_t t = 0; t < tokens; ++t)
      store(operands.sums + p * operands.panelSums + t * kLanes, acc[p][t]);
}

/// Runs the tile of `tokens` rows, at least half of `largest` or kDirectTokens + 1.
template <int64_t panels, int64_t largest>
MCC_INLINE void multiplyTileOf(const TileOperands &operands, int64_t tokens) {
  static_assert(largest == 6 || largest == 12, "heights below the smallest tile would be missing");
  switch (tokens) {
  case 3:
    return multiplyTile<panels, 3>(operands);
  case 4:
    return multiplyTile<panels, 4>(operands);
  case 5:
    return multiplyTile<panels, 5>(operands);
  case 6:
    return multiplyTile<panels, 6>(operands);
  }
  if constexpr (largest > 6) {
    switch (tokens) {
    case 7:
      return multiplyTile<panels, 7>(operands);
    case 8:
      return multiplyTile<panels, 8>(operands);
    case 9:
      return multiplyTile<panels, 9>(operands);
    case 10:
      return multiplyTile<panels, 10>(operands);
    case 11:
      return multiplyTile<panels, 11>(operands);
    case 12:
      return multiplyTile<panels, 12>(operands);
    }
  }
}

/// Multiplies `count` > kDirectTokens rows by `panels` panels in tiles of at most `largest` rows, all but equally high:
/// a short last tile would have too few sums in flight to hide the latency of an addition.
template <int64_t panels, int64_t largest>
MCC_VECTOR inline void multiplyRows(TileOperands operands, int64_t count) {
  const int64_t tiles = (count + largest - 1) / largest;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t tokens = (count + tile) / tiles; // the shorter tiles first; count in all
    multiplyTileOf<panels, largest>(operands, tokens);
    operands.x += tokens * operands.xStride;
    operands.sums += tokens * kLanes;
  }
}

} // namespace mcc::cpu
