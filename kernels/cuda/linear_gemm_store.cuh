// The epilogue of linear_gemm_kernel.cuh: a warp's sums of 16 tokens to y, two panels at a time.
//
// Sums go through a piece of shared memory to whole lines of y. A pair of panels is turned into results by one copy of
// the code, which is what keeps a kernel within the instruction cache, while four results or more are under way in each
// thread: two warps a scheduler hide little, so that a long chain of instructions is what an epilogue costs.
#pragma once

#include "kernels/cuda/linear_gemm.cuh"
#include "kernels/cuda/ptx_sm90.cuh"

namespace mcc::cuda {

// Floats from one token to the next in a warp's piece: 40, so that no bank is met twice.
constexpr int kPieceStride = 40, kPieceBytes = 16 * kPieceStride * 4;

#ifdef MCC_SM90A

// Stores `rows` numbers, at most 4.
__device__ __forceinline__ void storeQuad(float *to, float4 v, int rows) {
  if (rows >= 4 && aligned16(to)) {
    *reinterpret_cast<float4 *>(to) = v;
    return;
  }
  const float values[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (i < rows)
      to[i] = values[i];
}

__device__ __forceinline__ float4 quadAt(const float *piece, int token, int column) {
  return *reinterpret_cast<const float4 *>(piece + token * kPieceStride + column);
}

// `rows` numbers (at most 4) of an operand of the epilogue, zeros where there is none.
__device__ __forceinline__ float4 operandQuad(const float *from, int64_t at, int rows) {
  return from ? load4(from + at, 0, rows, aligned16(from + at)) : float4{0.0f, 0.0f, 0.0f, 0.0f};
}

template <Activation activation, bool approximate>
__device__ __forceinline__ void activateAll(float (&values)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
    values[i] = activate<approximate>(values[i], static_cast<int64_t>(activation));
}

// Applies an activation to four numbers, which are under way together: it is chosen once.
template <bool approximate>
__device__ __forceinline__ void activateQuad(float (&values)[4], int64_t activation) {
  switch (static_cast<Activation>(activation)) {
  case Activation::Silu:
    return activateAll<Activation::Silu, approximate>(values);
  case Activation::GeluErf:
    return activateAll<Activation::GeluErf, approximate>(values);
  case Activation::GeluTanh:
    return activateAll<Activation::GeluTanh, approximate>(values);
  case Activation::GeluQuick:
    return activateAll<Activation::GeluQuick, approximate>(values);
  case Activation::Relu:
    return activateAll<Activation::Relu, approximate>(values);
  case Activation::Relu2:
    return activateAll<Activation::Relu2, approximate>(values);
  case Activation::Sigmoid:
    return activateAll<Activation::Sigmoid, approximate>(values);
  case Activation::None:
  case Activation::Xielu:
    return;
  }
}

// Adds a bias, where there is one.
__device__ __forceinline__ void addBias(float (&values)[4], const float *bias, float4 added) {
  if (!bias)
    return;
  values[0] = __fadd_rn(values[0], added.x), values[1] = __fadd_rn(values[1], added.y);
  values[2] = __fadd_rn(values[2], added.z), values[3] = __fadd_rn(values[3], added.w);
}

// Which part of a pair of panels a thread has: rows from `row` on, tokens `first`, first + apart and so on.
template <bool gated>
struct Share {
  static constexpr int quads = gated ? 4 : 8, apart = 32 / quads, turns = 16 / apart;
  int column, first;
  __device__ Share() : column(threadIdx.x % 32 % quads * 4), first(threadIdx.x % 32 / quads) {}
};

// Residuals of a thread's share.
template <bool gated>
using Residuals = float4[Share<gated>::turns];

// Reads the residuals of a pair of panels, zeros where there are none. They may lie where results go: all of them are
// read before the first result of the same pair is stored.
template <bool gated>
__device__ __forceinline__ void loadResiduals(const LinearLaunch &launch, Residuals<gated> &residuals, int panel,
                                              int64_t token) {
  const Share<gated> share;
  const int row = (gated ? panel / 2 : panel) * kPanel + share.column, rows = launch.rows - row;
#pragma unroll
  for (int k = 0; k < share.turns; ++k) {
    const int64_t at = token + share.first + share.apart * k;
    const bool present = rows > 0 && at < launch.tokens;
    residuals[k] = operandQuad(present ? launch.residual : nullptr, at * launch.residualStride + row, rows);
  }
}

// Bias, activation and gate of a thread's share, in place.
template <bool approximate, bool gated>
__device__ __forceinline__ void activatePair(const LinearLaunch &launch, float *piece, int panel, int rows) {
  const Share<gated> share;
  const int64_t biasRow = int64_t{panel} * kPanel + share.column;
  const float4 bias = operandQuad(launch.bias, biasRow, gated ? 4 : rows),
               upBias = gated ? operandQuad(launch.bias, biasRow + kPanel, 4) : bias;
#pragma unroll 2
  for (int k = 0; k < share.turns; ++k) {
    const int token = share.first + share.apart * k;
    const float4 sums = quadAt(piece, token, share.column),
                 ups = gated ? quadAt(piece, token, kPanel + share.column) : sums;
    float values[4] = {sums.x, sums.y, sums.z, sums.w}, factors[4] = {ups.x, ups.y, ups.z, ups.w};
    addBias(values, launch.bias, bias);
    activateQuad<approximate>(values, launch.activation);
    if constexpr (gated) {
      addBias(factors, launch.bias, upBias);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        values[i] = __fmul_rn(values[i], factors[i]);
    }
    *reinterpret_cast<float4 *>(piece + token * kPieceStride + share.column) = {values[0], values[1], values[2],
                                                                                values[3]};
  }
}

// A warp's 16 tokens x 32 weight rows from its piece of shared memory: two panels, or where gated a panel and its up
// panel.
template <bool approximate, bool gated>
__device__ __forceinline__ void storePair(const LinearLaunch &launch, float *piece, const Residuals<gated> &residuals,
                                          int panel, int64_t token) {
  const Share<gated> share;
  const int row = (gated ? panel / 2 : panel) * kPanel + share.column, rows = launch.rows - row;
  if (rows <= 0)
    return;
  if (gated || launch.bias || launch.activation != static_cast<int64_t>(Activation::None))
    activatePair<approximate, gated>(launch, piece, panel, rows);
#pragma unroll
  for (int k = 0; k < share.turns; ++k) {
    const int inPiece = share.first + share.apart * k;
    const float4 sums = quadAt(piece, inPiece, share.column);
    float results[4] = {sums.x, sums.y, sums.z, sums.w};
    const float added[4] = {residuals[k].x, residuals[k].y, residuals[k].z, residuals[k].w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      results[i] = __fmul_rn(results[i], launch.scale);
      if (launch.residual)
        results[i] = __fadd_rn(results[i], added[i]);
    }
    if (const int64_t at = token + inPiece; at < launch.tokens)
      storeQuad(launch.y + at * launch.yStride + row, {results[0], results[1], results[2], results[3]}, rows);
  }
}

// Puts the sums of panels 2 i and 2 i + 1 of a tile of tokens into the warp's piece, [token][row], where `wanted` counts
// the pairs i of all tiles. A switch, since registers have no index at run time.
template <int pair, int tiles, int count>
__device__ __forceinline__ void putPair(const float (&sums)[tiles][count], float *piece, int wanted) {
  if constexpr (pair * 16 < tiles * count) {
    if (wanted != pair)
      return putPair<pair + 1>(sums, piece, wanted);
    constexpr int tile = pair * 16 / count, first = pair * 16 % count;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 16; i += 2)
      *reinterpret_cast<float2 *>(piece + (lane / 4 + i / 2 % 2 * 8) * kPieceStride + i / 4 * 8 +
                                  lane % 4 * 2) = {sums[tile][first + i], sums[tile][first + i + 1]};
  }
}

// Stores a warp's sums of panels from `panel` on and of `tiles` times 16 tokens, 64 apart, from `token` on. `ready` is
// called once the first residuals are on their way and makes the sums ready; those of a pair are read while the pair
// before is stored.
template <bool approximate, bool gated, int tiles, int count, class Ready>
__device__ __forceinline__ void storeTile(const LinearLaunch &launch, const float (&sums)[tiles][count], float *piece,
                                          int panel, int64_t token, Ready ready) {
  constexpr int pairs = count / 16;
  Residuals<gated> residuals, next;
  loadResiduals<gated>(launch, residuals, panel, token);
  ready();
#pragma unroll 1
  for (int i = 0; i < tiles * pairs; ++i) {
    const auto panelOf = [&](int index) { return panel + index % pairs * 2; };
    const auto tokenOf = [&](int index) { return token + index / pairs * 64; };
    if (i + 1 < tiles * pairs)
      loadResiduals<gated>(launch, next, panelOf(i + 1), tokenOf(i + 1));
    putPair<0>(sums, piece, i);
    __syncwarp();
    storePair<approximate, gated>(launch, piece, residuals, panelOf(i), tokenOf(i));
    __syncwarp();
#pragma unroll
    for (int k = 0; k < Share<gated>::turns; ++k)
      residuals[k] = next[k];
  }
}

#endif // MCC_SM90A

} // namespace mcc::cuda
