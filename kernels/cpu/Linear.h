// y = scale * activation(norm(x) W^T + bias) + residual over packed panels: the driver around the tiles.
//
// Threads split the panels of W (pairs of panels where gated), contiguously. Up to kDirectTokens rows the weights
// are decoded in registers; above, kPanelGroup panels at a time are dequantised kDepthChunk columns at a time into
// scratch and met by register tiles, so that every weight is read and decoded once per step whatever the tokens.
#pragma once

#include "kernels/cpu/Kernels.h"
#include "kernels/cpu/NormRow.h"
#include "kernels/cpu/Tile.h"
#include "kernels/cpu/VectorMath.h"
#include "kernels/cpu/Work.h"

namespace mcc::cpu {

/// What happens to a finished sum, and where it goes.
struct Epilogue {
  const float *bias;     ///< [rows], or gate and up panels alternating, 32 per 16 rows; or null
  const float *residual; ///< [token][rows] or null
  float *y;              ///< [token][rows]; may be `residual`
  int64_t rows, yStride, residualStride, activation;
  bool gated;
  float scale; ///< of what the activation gives; 1 multiplies nothing
  float limit = 0.0f, upOffset = 0.0f;  ///< of a gated pair: what bounds both, and what is added to up; 0: nothing
  const int64_t *places = nullptr;      ///< by token, where its row of y begins, in place of token * yStride
};

/// One launch of `linear`.
struct LinearLaunch {
  const MccStep *step;
  int64_t tokens;
  const float *x; ///< [token][cols]
  const uint8_t *weight;
  int64_t cols, xStride;
  float *scratch; ///< private, linearScratchBytes
  Epilogue epilogue;
};

/// Finishes the 16 outputs of panel `panel` (of the outputs) for one token and stores them.
MCC_INLINE void finish(const Epilogue &epilogue, int64_t panel, int64_t token, F32x16 sum, F32x16 up) {
  const int64_t row = panel * kLanes, left = epilogue.rows - row;
  if (epilogue.gated) {
    if (epilogue.bias) {
      sum = sum + load(epilogue.bias + 2 * row);
      up = up + load(epilogue.bias + 2 * row + kLanes);
    }
    if (epilogue.limit != 0.0f) {
      const F32x16 most = splat(epilogue.limit), least = splat(-epilogue.limit);
      sum = sum > most ? most : sum; // a NaN stays
      up = up > most ? most : up < least ? least : up;
    }
    if (epilogue.upOffset != 0.0f)
      up = up + epilogue.upOffset;
    sum = activate(sum, epilogue.activation) * up;
  } else {
    if (epilogue.bias)
      sum = sum + loadPart(epilogue.bias + row, left);
    sum = activate(sum, epilogue.activation);
  }
  if (epilogue.scale != 1.0f)
    sum = sum * epilogue.scale;
  if (epilogue.residual)
    sum = sum + loadPart(epilogue.residual + token * epilogue.residualStride + row, left);
  const int64_t place = epilogue.places ? epilogue.places[token] : token * epilogue.yStride;
  storePart(epilogue.y + place + row, sum, left);
}

/// Finishes `panels` weight panels from `first` on, given their sums.
template <int64_t panels, int64_t tokens>
MCC_INLINE void finishPanels(const Epilogue &epilogue, int64_t first, const F32x16 (&sums)[panels][tokens]) {
  for (int64_t t = 0; t < tokens; ++t) {
    if (epilogue.gated) {
      for (int64_t p = 0; p + 1 < panels; p += 2)
        finish(epilogue, (first + p) / 2, t, sums[p][t], sums[p + 1][t]);
    } else {
      for (int64_t p = 0; p < panels; ++p)
        finish(epilogue, first + p, t, sums[p][t], sums[p][t]);
    }
  }
}

/// Weight panels [range) for exactly `tokens` rows, decoded in registers.
template <class PanelFormat, int64_t tokens>
MCC_VECTOR inline void multiplyDirect(const LinearLaunch &launch, Range range) {
  // Enough sums in flight to hide the latency of an addition, few enough for 16 registers of 256 bits.
  constexpr int64_t inFlight = tokens == 1 ? PanelFormat::panelsInFlight : tokens == 2 ? 2 : 1;
  constexpr int64_t wide = inFlight > 2 ? inFlight : 2; // a gate and its up panel are finished together
  const int64_t bytes = panelBytes<PanelFormat>(launch.cols);
  int64_t panel = range.begin;
  const auto take = [&]<int64_t panels>() __attribute__((always_inline)) {
    constexpr int64_t step = panels < inFlight ? panels : inFlight;
    F32x16 sums[panels][tokens];
    for (int64_t p = 0; p < panels; p += step)
      multiplyPacked<PanelFormat, step, tokens>(launch.weight + (panel + p) * bytes, bytes, launch.x, launch.xStride,
                                                launch.cols, sums + p);
    finishPanels<panels, tokens>(launch.epilogue, panel, sums);
    panel += panels;
  };
  while (panel + wide <= range.end)
    take.template operator()<wide>();
  while (panel + 2 <= range.end)
    take.template operator()<2>();
  if (panel < range.end)
    take.template operator()<1>();
}

/// All rows against `panels` dequantised panels, in the widest tiles that the target's registers hold.
MCC_VECTOR inline void multiplyChunk(TileOperands operands, int64_t panels, int64_t tokens, bool wide) {
  for (; panels > 0;) {
    const int64_t taken = wide && panels > 1 ? 2 : 1;
    if (taken == 2)
      multiplyRows<2, 12>(operands, tokens);
    else if (wide)
      multiplyRows<1, 12>(operands, tokens);
    else
      multiplyRows<1, 6>(operands, tokens);
    operands.weights += taken * operands.panelFloats;
    operands.sums += taken * operands.panelSums;
    panels -= taken;
  }
}

/// Weight panels [first, first + panels) for all tokens, dequantised chunk by chunk.
template <class PanelFormat>
MCC_VECTOR inline void multiplyGroup(const LinearLaunch &launch, int64_t first, int64_t panels) {
  const int64_t tokens = launch.tokens, bytes = panelBytes<PanelFormat>(launch.cols);
  float *weights = launch.scratch, *sums = weights + kPanelGroup * kDepthChunk * kLanes;
  for (int64_t i = 0; i < panels * tokens * kLanes; i += kLanes)
    store(sums + i, splat(0.0f));
  const bool wide = mcc_cpu_wide_registers();
  for (int64_t begin = 0; begin < launch.cols; begin += kDepthChunk) {
    const int64_t end = begin + kDepthChunk < launch.cols ? begin + kDepthChunk : launch.cols;
    for (int64_t p = 0; p < panels; ++p)
      dequantisePanel<PanelFormat>(launch.weight + (first + p) * bytes, begin, end, weights + p * kDepthChunk * kLanes);
    multiplyChunk({weights, kDepthChunk * kLanes, launch.x + begin, launch.xStride, end - begin, sums, tokens * kLanes},
                  panels, tokens, wide);
  }
  const int64_t perUnit = launch.epilogue.gated ? 2 : 1;
  for (int64_t p = 0; p < panels; p += perUnit)
    for (int64_t t = 0; t < tokens; ++t)
      finish(launch.epilogue, (first + p) / perUnit, t, load(sums + (p * tokens + t) * kLanes),
             load(sums + ((p + perUnit - 1) * tokens + t) * kLanes));
}

/// This thread's share of a launch whose rows are ready.
template <class PanelFormat>
MCC_INLINE void multiply(const LinearLaunch &launch) {
  const int64_t perUnit = launch.epilogue.gated ? 2 : 1;
  const Range units = shareOf(launch.step, (launch.epilogue.rows + kLanes - 1) / kLanes);
  const Range panels = {units.begin * perUnit, units.end * perUnit};
  switch (launch.tokens) {
  case 1:
    return multiplyDirect<PanelFormat, 1>(launch, panels);
  case 2:
    return multiplyDirect<PanelFormat, 2>(launch, panels);
  case 3:
    return multiplyDirect<PanelFormat, 3>(launch, panels);
  case kDirectTokens:
    return multiplyDirect<PanelFormat, kDirectTokens>(launch, panels);
  }
  for (int64_t first = panels.begin; first < panels.end; first += kPanelGroup)
    multiplyGroup<PanelFormat>(launch, first, panels.end - first < kPanelGroup ? panels.end - first : kPanelGroup);
}

/// Normalises the launch's rows where `norm` says so and points the launch at them. Few rows: every thread for
/// itself in scratch. Many: each thread its share into `normed`, then a barrier, which all threads reach alike.
MCC_INLINE void normalisePrologue(LinearLaunch &launch, const Norm &norm, float *normed) {
  if (norm.kind == kNoNorm)
    return;
  const bool alone = launch.tokens <= kPrivateNormTokens;
  float *rows = alone ? launch.scratch : normed;
  const int64_t stride = rowStride(launch.cols);
  const Range share = alone ? Range{0, launch.tokens} : shareOf(launch.step, launch.tokens);
  for (int64_t t = share.begin; t < share.end; ++t)
    normaliseRow(norm, launch.x + t * launch.xStride, rows + t * stride, launch.cols);
  if (alone)
    launch.scratch += privateNormFloats(launch.tokens, launch.cols);
  else
    mccrt_barrier(launch.step);
  launch.x = rows;
  launch.xStride = stride;
}

} // namespace mcc::cpu
