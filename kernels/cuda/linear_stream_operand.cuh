// Activations on their way into linear_stream.cuh: rows normalised and split, and what a lane reads of them.
#pragma once

#include "kernels/cuda/linear_stream_layout.cuh"

namespace mcc::cuda {

/// Splits one normalised row into operand order: `place(column, part)` gives where a number goes, `placeInfo(step)`
/// where a step's.
template <class Tile, class Place, class PlaceInfo>
__device__ __forceinline__ void splitRow(const Norm &launchNorm, const float *x, int cols, float *scratch, int thread,
                                         Place place, PlaceInfo placeInfo) {
  const auto put = [&](int64_t at, float4 v) {
    Tile::Activations::template put<Tile>(static_cast<int>(at), v, thread, place, placeInfo);
  };
  constexpr int threads = kMultiplying<Tile>;
  constexpr int together = 512 / threads, depth = 1024 / threads;
  Norm norm = launchNorm;
  if (norm.kind < 0)
    norm.weight = norm.bias = nullptr;
  if (!aligned16(x) || !aligned16(norm.weight) || cols % 4 != 0)
    take_row<threads, 1, depth, true, false>(norm, x, cols, scratch, thread, put);
  else if (norm.kind >= 0)
    take_row<threads, together, depth, true, true>(norm, x, cols, scratch, thread, put);
  else
    take_row<threads, together, 4, false, true>(norm, x, cols, scratch, thread, put);
  // Steps of formats with blocks are whole.
  const int padded = static_cast<int>(divideUp(cols, kStepCols)) * kStepCols,
            tail = static_cast<int>(divideUp(cols, 4)) * 4;
  for (int column = tail + 4 * thread; column < padded; column += 4 * threads)
    put(column, float4{0.0f, 0.0f, 0.0f, 0.0f});
}

/// Where a lane's activations of the resident operand lie: absent columns read zeros, at a stride of none.
template <class Activations>
struct ResidentPlace {
  uint32_t at, stride;       // of a tile
  uint32_t info, infoStride; // of a step
  __device__ ResidentPlace(uint32_t operand, uint32_t zeros, const LinearLaunch &launch, int lane) {
    const int part = Activations::partOf(lane / 4), token = Activations::tokenOf(lane / 4), t = lane % 4;
    const bool present = part < Activations::parts && token < launch.tokens;
    stride = present ? 32 * Activations::parts * launch.tokens : 0;
    at = present ? operand + (part * launch.tokens + token) * 32 + t * 8 : zeros;
    const uint32_t infos =
        operand + static_cast<uint32_t>(divideUp(launch.cols, kStepCols)) * 64 * Activations::parts * launch.tokens;
    infoStride = t < launch.tokens ? 8 * launch.tokens : 0;
    info = t < launch.tokens ? infos + t * 8 : zeros;
  }
  __device__ __forceinline__ void advance(int steps) {
    at += steps * 2 * stride;
    info += steps * infoStride;
  }
};

/// What a step has beside its numbers.
__device__ __forceinline__ void loadInfo(uint32_t at, TwoHalves::Info &info) {
  const uint2 bits = ptx::ld_shared_u64(at);
  info = {__uint_as_float(bits.x), __uint_as_float(bits.y)};
}
__device__ __forceinline__ void loadInfo(uint32_t, ThreeBfloats::Info &) {}

/// A lane's activations of the step `ahead` steps after `place`.
template <class Activations>
__device__ __forceinline__ void loadResident(const ResidentPlace<Activations> &place, int ahead,
                                             Operand<Activations, 1> &x) {
  const uint32_t at = place.at + ahead * 2 * place.stride;
  x.tile[0][0] = ptx::ld_shared_u64(at);
  x.tile[1][0] = ptx::ld_shared_u64(at + place.stride);
  loadInfo(place.info + ahead * place.infoStride, x.info[0]);
}

/// A lane's activations of step `step` out of the workspace.
template <class Activations, int groups>
__device__ __forceinline__ void loadOperand(const LinearLaunch &launch, int step, int lane,
                                            Operand<Activations, groups> &x) {
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int group = 0; group < groups; ++group)
      x.tile[i][group] = launch.operand[(static_cast<int64_t>(2 * step + i) * groups + group) * 32 + lane];
  if constexpr (Activations::parts == 2) {
    const auto *infos = static_cast<const TwoHalves::Info *>(launch.infos) + static_cast<int64_t>(step) * groups * 4;
#pragma unroll
    for (int group = 0; group < groups; ++group)
      x.info[group] = infos[group * 4 + lane % 4];
  }
}

/// Normalises and splits the tokens' rows into the resident operand, [tile][part][token][16], and its Info
/// [step][token].
template <class Tile>
__device__ __forceinline__ void prepareOperand(const LinearLaunch &launch, uint16_t *operand, float *scratch,
                                               int thread) {
  using Activations = typename Tile::Activations;
  const int tiles = static_cast<int>(divideUp(launch.cols, kStepCols)) * 2;
  auto *infos =
      reinterpret_cast<typename Activations::Info *>(operand + tiles * 16 * Activations::parts * launch.tokens);
  for (int token = 0; token < launch.tokens; ++token)
    splitRow<Tile>(
        launch.norm, launch.x + token * launch.xStride, launch.cols, scratch + token % 2 * (kSplitScratch / 2), thread,
        [&](int column, int part) {
          return operand + ((column / 16 * Activations::parts + part) * launch.tokens + token) * 16 +
                 dealt<Tile::dealing>(column % 16);
        },
        [&](int step) { return infos + step * launch.tokens + token; });
}

} // namespace mcc::cuda
