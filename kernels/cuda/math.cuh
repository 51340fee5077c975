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
__device__ __forceinline__ float logistic_gate(float x, float slope) { return x / __fadd_rn(1.0f, expf(-slope)); }

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
__device__ __forceinline__ float activate(float x, int64_t activation) {
  switch (static_cast<Activation>(activation)) {
  case Activation::Silu:
    return logistic_gate(x, x);
  case Activation::GeluErf:
    return 0.5f * x * __fadd_rn(1.0f, erff(x * 0.70710678f));
  case Activation::GeluTanh: // 1 + tanh u = 2 / (1 + e^-2u)
    return logistic_gate(x, 1.5957691216f * fmaf(0.044715f * (x * x), x, x));
  case Activation::GeluQuick:
    return logistic_gate(x, 1.702f * x);
  case Activation::Relu:
    return x < 0.0f ? 0.0f : x;
  case Activation::Relu2:
    return x < 0.0f ? 0.0f : x * x;
  case Activation::Sigmoid:
    return logistic_gate(1.0f, x);
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

/// Sums over the kRowThreads threads in a fixed tree; every thread gets the sum. `scratch` holds 8 floats.
__device__ __forceinline__ float row_sum(float value, float *scratch, int thread) {
  value = warp_sum(value);
  if (thread % 32 == 0)
    scratch[thread / 32] = value;
  ptx::bar_sync(kRowBarrier, kRowThreads);
  float sum = scratch[0];
#pragma unroll
  for (int warp = 1; warp < kRowThreads / 32; ++warp)
    sum += scratch[warp];
  ptx::bar_sync(kRowBarrier, kRowThreads);
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

/// Calls take(column, value) for the row's columns of this thread, four at a time in order, normalised as `norm` says;
/// columns from `cols` on give zeros. All kRowThreads threads call it. `scratch` holds 8 floats.
template <class Take>
__device__ __forceinline__ void normalise_row(const Norm &norm, const float *x, int64_t cols, float *scratch,
                                              int thread, Take take) {
  const bool aligned = aligned16(x);
  float mean = 0.0f, factor = 1.0f;
  if (norm.kind == 1) {
    float sum = 0.0f;
    for (int64_t i = 4 * thread; i < cols; i += 4 * kRowThreads) {
      const float4 v = load4(x, i, cols, aligned);
      sum += v.x + v.y + v.z + v.w;
    }
    mean = row_sum(sum, scratch, thread) / static_cast<float>(cols);
  }
  if (norm.kind >= 0) {
    float squares = 0.0f;
    for (int64_t i = 4 * thread; i < cols; i += 4 * kRowThreads) {
      const float4 v = load4(x, i, cols, aligned);
      const float a = v.x - mean, b = i + 1 < cols ? v.y - mean : 0.0f, c = i + 2 < cols ? v.z - mean : 0.0f,
                  d = i + 3 < cols ? v.w - mean : 0.0f;
      squares = fmaf(a, a, squares), squares = fmaf(b, b, squares);
      squares = fmaf(c, c, squares), squares = fmaf(d, d, squares);
    }
    factor = 1.0f / sqrtf(row_sum(squares, scratch, thread) / static_cast<float>(cols) + norm.eps);
  }
  const bool weightAligned = aligned16(norm.weight), biasAligned = aligned16(norm.bias);
  for (int64_t i = 4 * thread; i < cols; i += 4 * kRowThreads) {
    float4 v = load4(x, i, cols, aligned);
    if (norm.kind >= 0) {
      v.x = (v.x - mean) * factor, v.y = (v.y - mean) * factor, v.z = (v.z - mean) * factor,
      v.w = (v.w - mean) * factor;
      if (norm.weight) {
        const float4 w = load4(norm.weight, i, cols, weightAligned);
        v.x = __fmul_rn(v.x, w.x), v.y = __fmul_rn(v.y, w.y), v.z = __fmul_rn(v.z, w.z), v.w = __fmul_rn(v.w, w.w);
      }
      if (norm.bias) {
        const float4 b = load4(norm.bias, i, cols, biasAligned);
        v.x = __fadd_rn(v.x, b.x), v.y = __fadd_rn(v.y, b.y), v.z = __fadd_rn(v.z, b.z), v.w = __fadd_rn(v.w, b.w);
      }
      // A mean turns the padding's zeros into something; columns past the end stay zero.
      v.y = i + 1 < cols ? v.y : 0.0f, v.z = i + 2 < cols ? v.z : 0.0f, v.w = i + 3 < cols ? v.w : 0.0f;
    }
    take(i, v);
  }
}

} // namespace mcc::cuda
