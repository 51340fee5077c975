// From the sums of linear_stream.cuh's warps to outputs.
#pragma once

#include "kernels/cuda/linear_stream_layout.cuh"

namespace mcc::cuda {

/// Sums of one warp to shared memory, [panel][row][token].
template <class Tile, int groups, int panels, int count>
__device__ __forceinline__ void storeSums(const float (&sums)[panels][groups][count], float *to, int tokens, int lane) {
  const int capacity = sumsTokens<Tile, groups>(tokens);
#pragma unroll
  for (int p = 0; p < panels; ++p)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      Tile::Activations::template store<groups>(sums[p], half, to + (p * kPanel + Tile::row(lane / 4, half)) * capacity,
                                                tokens, lane % 4);
}

/// The sums of half of the warps, in order.
template <int warps, int panels>
__device__ __forceinline__ float mergeHalf(const float *sums, int capacity, int half, int panelRow, int token) {
  const float *from = sums + (half * (warps / 2) * panels * kPanel + panelRow) * capacity + token;
  float sum = *from;
#pragma unroll
  for (int warp = 1; warp < warps / 2; ++warp)
    sum = __fadd_rn(sum, from[warp * panels * kPanel * capacity]);
  return sum;
}

/// Stores one output of which the sum is known, and keeps the best logit.
__device__ __forceinline__ void storeOutput(const LinearLaunch &launch, float sum, float up, int lane, int row,
                                            int token, Partial &best) {
  float value = finishSums(launch, sum, up, lane, row, token);
  if (launch.partials)
    value = finishLogit(launch, value, row, best);
  launch.y[token * launch.yStride + row] = value;
}

/// Writes the outputs of the panels [panel, panel + present) from the warps' sums.
template <int warps, int panels>
__device__ __forceinline__ void finishTurn(const LinearLaunch &launch, const float *sums, int capacity, int panel,
                                           int present, int thread, Partial &best) {
  const int perUnit = launch.gated ? 2 : 1, outputs = present / perUnit * kPanel * launch.tokens;
  const auto merge = [&](int panelRow, int token) {
    return __fadd_rn(mergeHalf<warps, panels>(sums, capacity, 0, panelRow, token),
                     mergeHalf<warps, panels>(sums, capacity, 1, panelRow, token));
  };
#pragma unroll 1
  for (int i = thread; i < outputs; i += 32) {
    const int lane = i % kPanel, token = i / kPanel % launch.tokens, unit = i / kPanel / launch.tokens;
    const int row = (panel / perUnit + unit) * kPanel + lane, panelRow = unit * perUnit * kPanel + lane;
    if (row < launch.rows)
      storeOutput(launch, merge(panelRow, token), launch.gated ? merge(panelRow + kPanel, token) : 0.0f, lane, row,
                  token, best);
  }
}

/// The same for one token: half a warp adds half of the sums. What a turn takes here bounds how fast turns may follow.
template <int warps, int panels>
__device__ __forceinline__ void finishOne(const LinearLaunch &launch, const float *sums, int panel, int present,
                                          int thread, Partial &best) {
  const int lane = thread % kPanel;
  float merged[panels];
#pragma unroll
  for (int p = 0; p < panels; ++p) {
    const float half = mergeHalf<warps, panels>(sums, 1, thread / kPanel, p * kPanel + lane, 0);
    merged[p] = __fadd_rn(__shfl_sync(0xffffffffu, half, lane), __shfl_sync(0xffffffffu, half, lane + kPanel));
  }
  if (thread >= kPanel)
    return;
  if (panels == 2 && launch.gated) {
    if (const int row = panel / 2 * kPanel + lane; row < launch.rows)
      storeOutput(launch, merged[0], merged[panels - 1], lane, row, 0, best);
    return;
  }
#pragma unroll
  for (int p = 0; p < panels; ++p)
    if (const int row = (panel + p) * kPanel + lane; p < present && row < launch.rows)
      storeOutput(launch, merged[p], 0.0f, lane, row, 0, best);
}

/// The finisher, one warp: outputs from the warps' sums, while those go on to the next panels.
template <class Tile, int groups, int panels>
__device__ __forceinline__ void finishPanels(const LinearLaunch &launch, const StreamShared &at, int first, int last,
                                             const uint8_t *shared, int lane) {
  const int capacity = sumsTokens<Tile, groups>(launch.tokens), sumsFloats = Tile::warps * panels * kPanel * capacity;
  const uint32_t full = ptx::shared_address(shared) + at.barriers + 32 * 8, empty = full + 2 * 8;
  Partial best = {0.0f, -1, 0, 0};
  uint32_t turn = 0;
  for (int panel = first; panel < last; panel += panels, ++turn) {
    if (launch.residual && lane < kPanel && panel * kPanel + lane < launch.rows)
      ptx::prefetch_l1(launch.residual + panel * kPanel + lane); // of the first token
    ptx::mbarrier_wait(full + turn % 2 * 8, turn / 2 % 2);
    const float *sums = reinterpret_cast<const float *>(shared + at.sums) + turn % 2 * sumsFloats;
    if (capacity == 1)
      finishOne<Tile::warps, panels>(launch, sums, panel, min(panels, last - panel), lane, best);
    else
      finishTurn<Tile::warps, panels>(launch, sums, capacity, panel, min(panels, last - panel), lane, best);
    __syncwarp();
    if (lane == 0)
      ptx::mbarrier_arrive(empty + turn % 2 * 8);
  }
  if (launch.partials)
    storeBest(launch, best, lane, 32);
}

} // namespace mcc::cuda
