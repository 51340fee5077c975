// Activations, reductions and the norm of a row, shared by the kernels.
#pragma once

#include "kernels/Activation.h"
#include "kernels/cuda/Launch.h"
#include "kernels/cuda/ptx.cuh"

namespace mcc::cuda {

/// Threads that normalise a row together: everywhere the same number, so that a row's norm has the same bits
/// everywhere.
constexpr int kRowThreads = 256;
/// The block barrier of those threads.
constexpr uint32_t kRowBarrier = 1;

/// x / (1 + e^-slope). Additions that a compiler could fuse with what is before them are spelled out: a value must not
/// depend on the kernel that computes it.
/// `approximate`: to 2^-20 of the value, in a few instructions.
template <bool approximate = false>
__device__ __forceinline__ float logistic_gate(float x, float slope) {
  if constexpr (approximate)
    return __fdividef(x, __fadd_rn(1.0f, __expf(-slope)));
  return x / __fadd_rn(1.0f, expf(-slope));
}

/// ln(1 + e^x).
__device__ __forceinline__ float softplus(float x) { return __fadd_rn(fmaxf(x, 0.0f), log1pf(expf(-fabsf(x)))); }

/// xIELU with parameters [4] as checkpoints hold them (KernelTable.def, `xielu`).
__device__ __forceinline__ float xielu(float x, const float *parameters) {
  const float beta = parameters[2], linear = __fmul_rn(beta, x);
  if (x > 0.0f)
    return __fadd_rn(softplus(parameters[0]) * x * x, linear);
  const float limited = x > parameters[3] ? parameters[3] : x; // a NaN is not above
  return __fadd_rn(__fmul_rn(__fadd_rn(beta, softplus(parameters[1])), __fadd_rn(expm1f(limited), -x)), linear);
}

/// Applies `activation`, which takes no weights.
template <bool approximate = false>
__device__ __forceinline__ float activate(float x, int64_t activation) {
  switch (static_cast<Activation>(activation)) {
  case Activation::Silu:
    return logistic_gate<approximate>(x, x);
  case Activation::GeluErf:
    return 0.5f * x * __fadd_rn(1.0f, erff(x * 0.70710678f));
  case Activation::GeluTanh: // 1 + tanh u = 2 / (1 + e^-2u)
    return logistic_gate<approximate>(x, 1.5957691216f * fmaf(0.044715f * (x * x), x, x));
  case Activation::GeluQuick:
    return logistic_gate<approximate>(x, 1.702f * x);
  case Activation::Relu:
    return x < 0.0f ? 0.0f : x;
  case Activation::Relu2:
    return x < 0.0f ? 0.0f : x * x;
  case Activation::Sigmoid:
    return logistic_gate<approximate>(1.0f, x);
  case Activation::None:
  case Activation::Xielu:
    break;
  }
  return x;
}

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, apart);
  return value;
}

__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, apart));
  return value;
}

/// Sums over `threads` threads in a fixed tree; every thread gets the sum. `scratch` holds threads / 32 floats, which
/// the next sum may not use: there is no barrier after.
template <int threads = kRowThreads>
__device__ __forceinline__ float row_sum(float value, float *scratch, int thread) {
  value = warp_sum(value);
  if (thread % 32 == 0)
    scratch[thread / 32] = value;
  ptx::bar_sync(kRowBarrier, threads);
  float sum = scratch[0];
#pragma unroll
  for (int warp = 1; warp < threads / 32; ++warp)
    sum += scratch[warp];
  return sum;
}

/// Four neighbours x[column..column+4), zeros from `cols` on; `aligned` where 16-byte loads are possible.
__device__ __forceinline__ float4 load4(const float *x, int64_t column, int64_t cols, bool aligned) {
  if (aligned && column + 4 <= cols)
    return *reinterpret_cast<const float4 *>(x + column);
  float4 value = {0.0f, 0.0f, 0.0f, 0.0f};
  if (column < cols)
    value.x = x[column];
  if (column + 1 < cols)
    value.y = x[column + 1];
  if (column + 2 < cols)
    value.z = x[column + 2];
  if (column + 3 < cols)
    value.w = x[column + 3];
  return value;
}

__device__ __forceinline__ bool aligned16(const void *pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
}

/// A thread's part of 2048 columns of a row, all its loads under way at once.
struct RowBatch {
  static constexpr int kQuads = 2;
  static constexpr int64_t kCols = int64_t{4} * kRowThreads * kQuads;
  float4 quad[kQuads];

  __device__ __forceinline__ static int64_t column(int64_t base, int k, int thread) {
    return base + 4 * (static_cast<int64_t>(k) * kRowThreads + thread);
  }
  __device__ __forceinline__ void load(const float *row, int64_t base, int64_t cols, bool aligned, int thread) {
#pragma unroll
    for (int k = 0; k < kQuads; ++k)
      quad[k] = load4(row, column(base, k, thread), cols, aligned);
  }
};

/// Calls use(column, value) for the row's columns of this thread, in order; `first` holds the first batch.
template <class Use>
__device__ __forceinline__ void for_quads(const float *row, int64_t cols, bool aligned, int thread,
                                          const RowBatch &first, Use use) {
#pragma unroll 1
  for (int64_t base = 0; base < cols; base += RowBatch::kCols) {
    RowBatch batch = first;
    if (base > 0)
      batch.load(row, base, cols, aligned, thread);
#pragma unroll
    for (int k = 0; k < RowBatch::kQuads; ++k)
      if (const int64_t i = RowBatch::column(base, k, thread); i < cols)
        use(i, batch.quad[k]);
  }
}

/// One normalised quad; columns past the end stay zero, which a mean would change. Without a norm the mean is 0 and the
/// factor 1, and nothing changes.
__device__ __forceinline__ float4 normalise_quad(const Norm &norm, float4 v, float mean, float factor, float4 weight,
                                                 int64_t i, int64_t cols) {
  v.x = (v.x - mean) * factor, v.y = (v.y - mean) * factor, v.z = (v.z - mean) * factor, v.w = (v.w - mean) * factor;
  if (norm.weight)
    v.x = __fmul_rn(v.x, weight.x), v.y = __fmul_rn(v.y, weight.y), v.z = __fmul_rn(v.z, weight.z),
    v.w = __fmul_rn(v.w, weight.w);
  if (norm.bias) {
    const float4 b = load4(norm.bias, i, cols, aligned16(norm.bias));
    v.x = __fadd_rn(v.x, b.x), v.y = __fadd_rn(v.y, b.y), v.z = __fadd_rn(v.z, b.z), v.w = __fadd_rn(v.w, b.w);
  }
  v.y = i + 1 < cols ? v.y : 0.0f, v.z = i + 2 < cols ? v.z : 0.0f, v.w = i + 3 < cols ? v.w : 0.0f;
  return v;
}

/// Calls take(column, value) for the row's columns of this thread, four at a time in order, normalised as `norm` says;
/// columns from `cols` on give zeros. All kRowThreads threads call it. `scratch` holds kRowThreads / 16 floats. Numbers
/// and weights are read a batch ahead of their use; the code is kept short, for a short kernel waits for its
/// instructions too.
template <class Take>
__device__ __forceinline__ void normalise_row(Norm norm, const float *x, int64_t cols, float *scratch, int thread,
                                              Take take) {
  if (norm.kind < 0)
    norm.weight = norm.bias = nullptr;
  const bool aligned = aligned16(x), weightAligned = aligned16(norm.weight);
  RowBatch first, weights = {};
  first.load(x, 0, cols, aligned, thread);
  if (norm.weight)
    weights.load(norm.weight, 0, cols, weightAligned, thread);
  float mean = 0.0f, factor = 1.0f;
  if (norm.kind == 1) {
    float sum = 0.0f;
    for_quads(x, cols, aligned, thread, first, [&](int64_t, float4 v) { sum += v.x + v.y + v.z + v.w; });
    mean = row_sum(sum, scratch, thread) / static_cast<float>(cols);
  }
  if (norm.kind >= 0) {
    float squares = 0.0f;
    for_quads(x, cols, aligned, thread, first, [&](int64_t i, float4 v) {
      const float a = v.x - mean, b = i + 1 < cols ? v.y - mean : 0.0f, c = i + 2 < cols ? v.z - mean : 0.0f,
                  d = i + 3 < cols ? v.w - mean : 0.0f;
      squares = fmaf(a, a, squares), squares = fmaf(b, b, squares);
      squares = fmaf(c, c, squares), squares = fmaf(d, d, squares);
    });
    factor = 1.0f / sqrtf(row_sum(squares, scratch + kRowThreads / 32, thread) / static_cast<float>(cols) + norm.eps);
  }
#pragma unroll 1
  for (int64_t base = 0; base < cols; base += RowBatch::kCols) {
    const RowBatch numbers = first, scales = weights;
    if (const int64_t next = base + RowBatch::kCols; next < cols) {
      first.load(x, next, cols, aligned, thread);
      if (norm.weight)
        weights.load(norm.weight, next, cols, weightAligned, thread);
    }
#pragma unroll
    for (int k = 0; k < RowBatch::kQuads; ++k)
      if (const int64_t i = RowBatch::column(base, k, thread); i < cols)
        take(i, normalise_quad(norm, numbers.quad[k], mean, factor, scales.quad[k], i, cols));
  }
}

/// A row for one of many blocks that all read it, where the time to the first product counts: `threads` threads, each
/// `together` quads at a time in one copy of the code, `depth` loads ahead. Calls take(column, value) as normalise_row
/// does (without a norm where `normed` is false). `whole`: rows and norm weights are aligned to 16 bytes, and so long.
/// `scratch` holds threads / 16 floats; another row directly after takes others.
template <int threads, int together, int depth, bool normed, bool whole, class Take>
__device__ __forceinline__ void take_row(const Norm &norm, const float *x, int cols, float *scratch, int thread,
                                         Take take) {
  static_assert(depth % together == 0);
  constexpr int step = 4 * threads;
  float4 ahead[depth], weights[normed ? depth : together];
  const auto at = [&](const float *row, int column) {
    if constexpr (!whole)
      return load4(row, column, cols, false);
    return column < cols ? *reinterpret_cast<const float4 *>(row + column) : float4{0.0f, 0.0f, 0.0f, 0.0f};
  };
  const auto load = [&](int k, int column) {
    ahead[k] = at(x, column);
    if (normed && norm.weight)
      weights[k] = at(norm.weight, column);
  };
#pragma unroll
  for (int k = 0; k < depth; ++k)
    load(k, k * step + 4 * thread);
  float mean = 0.0f, factor = 1.0f;
  if constexpr (normed) {
    const auto over = [&](auto use) {
#pragma unroll
      for (int k = 0; k < depth; ++k)
        use(k * step + 4 * thread, ahead[k]);
#pragma unroll 1
      for (int column = depth * step + 4 * thread; column < cols; column += step)
        use(column, at(x, column));
    };
    float sum = 0.0f;
    if (norm.kind == 1) {
      over([&](int, float4 v) { sum += v.x + v.y + v.z + v.w; });
      mean = row_sum<threads>(sum, scratch, thread) / static_cast<float>(cols);
      sum = 0.0f;
    }
    over([&](int column, float4 v) {
      const float a = column < cols ? v.x - mean : 0.0f, b = column + 1 < cols ? v.y - mean : 0.0f,
                  c = column + 2 < cols ? v.z - mean : 0.0f, d = column + 3 < cols ? v.w - mean : 0.0f;
      sum = fmaf(a, a, sum), sum = fmaf(b, b, sum), sum = fmaf(c, c, sum), sum = fmaf(d, d, sum);
    });
    const float mean_square = row_sum<threads>(sum, scratch + threads / 32, thread) / static_cast<float>(cols);
    factor = norm.kind < 0 ? 1.0f : __frsqrt_rn(mean_square + norm.eps);
  }
#pragma unroll 1
  for (int base = 4 * thread; base < cols; base += together * step) {
    float4 now[together], scales[together];
#pragma unroll
    for (int k = 0; k < together; ++k)
      now[k] = ahead[k], scales[k] = weights[k];
#pragma unroll
    for (int k = 0; k + together < depth; ++k) {
      ahead[k] = ahead[k + together];
      if (normed)
        weights[k] = weights[k + together];
    }
#pragma unroll
    for (int k = 0; k < together; ++k)
      load(depth - together + k, base + (depth + k) * step);
#pragma unroll
    for (int k = 0; k < together; ++k)
      if (const int column = base + k * step; column < cols)
        take(column, normed ? normalise_quad(norm, now[k], mean, factor, scales[k], column, cols) : now[k]);
  }
}

} // namespace mcc::cuda
