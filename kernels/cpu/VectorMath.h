// exp, tanh, softplus and the activations on 16 lanes. Polynomials are minimax fits made for these intervals.
//
// Every lane is computed alike wherever it stands in a row, so results do not depend on how rows are cut.
#pragma once

#include "kernels/Activation.h"
#include "kernels/cpu/Vector.h"

namespace mcc::cpu {

/// 2^n for integer n in [-126, 127].
MCC_INLINE F32x16 powerOfTwo(I32x16 n) { return bitsAs<F32x16>((n + 127) << 23); }

/// Rounds to the nearest bfloat16, ties to even; a NaN is kept.
MCC_INLINE F32x16 roundToBFloat16(F32x16 x) {
  const U32x16 bits = bitsAs<U32x16>(x), odd = (bits >> 16) & 1;
  const F32x16 rounded = bitsAs<F32x16>((bits + (odd + 0x7FFF)) & 0xFFFF0000u);
  return x != x ? x : rounded;
}

/// (e^r - 1 - r) / r^2 for |r| up to ln 2 / 2.
MCC_INLINE F32x16 exponentialTail(F32x16 r) {
  F32x16 q = splat(0.0013813144f);
  q = 0.0083694188f + r * q;
  q = 0.0416684568f + r * q;
  q = 0.1666651479f + r * q;
  return 0.4999999305f + r * q;
}

/// e^x within 1 ulp or so; 0 below -104, infinity above 88.73, NaN for NaN.
/// x = n ln 2 + r, e^r = 1 + r + r^2 q(r) with |error| < 4e-9; 2^n in two factors, so denormal results are right.
MCC_INLINE F32x16 exponential(F32x16 x) {
  const F32x16 low = splat(-104.0f), high = splat(89.0f);
  x = x < low ? low : x;
  x = x > high ? high : x;
  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits; no conversion of a NaN.
  const F32x16 magic = splat(12582912.0f);
  const F32x16 shifted = magic + x * 1.44269504f;
  const F32x16 n = shifted - magic;
  const I32x16 exponent = bitsAs<I32x16>(shifted) - 0x4B400000;
  // ln 2 = 355/512 (exact times n) - 2.12194440e-4.
  F32x16 r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  const F32x16 power = 1.0f + (r + (r * r) * exponentialTail(r));
  const I32x16 half = exponent >> 1;
  return power * powerOfTwo(half) * powerOfTwo(exponent - half);
}

/// tanh x within 2 ulp; odd polynomial up to 0.625, 1 - 2/(e^2|x| + 1) above.
MCC_INLINE F32x16 hyperbolicTangent(F32x16 x) {
  const I32x16 sign = bitsAs<I32x16>(x) & INT32_MIN;
  const F32x16 magnitude = bitsAs<F32x16>(bitsAs<I32x16>(x) & INT32_MAX);
  const F32x16 square = magnitude * magnitude;
  F32x16 q = splat(-0.0055886447f);
  q = 0.0205366830f + square * q;
  q = -0.0537090014f + square * q;
  q = 0.1333108443f + square * q;
  q = -0.3333326923f + square * q;
  const F32x16 small = magnitude + (magnitude * square) * q;
  const F32x16 large = 1.0f - 2.0f / (exponential(magnitude * 2.0f) + 1.0f);
  const F32x16 value = magnitude < 0.625f ? small : large;
  return bitsAs<F32x16>(bitsAs<I32x16>(value) | sign);
}

/// e^x - 1 within 4 ulp, also near zero.
MCC_INLINE F32x16 exponentialMinusOne(F32x16 x) {
  const F32x16 magnitude = bitsAs<F32x16>(bitsAs<I32x16>(x) & INT32_MAX);
  return magnitude < 0.34f ? x + (x * x) * exponentialTail(x) : exponential(x) - 1.0f;
}

/// ln(1 + e^x) within 3 ulp; NaN for NaN.
/// max(x, 0) + ln(1 + u), u = e^-|x|; ln(1 + u) = 2 atanh s, s = u / (2 + u) <= 1/3, atanh s = s + s^3 q(s^2) with
/// relative |error| < 5e-9.
MCC_INLINE F32x16 softplus(F32x16 x) {
  const F32x16 zero = splat(0.0f);
  const F32x16 u = exponential(bitsAs<F32x16>(bitsAs<I32x16>(x) | INT32_MIN));
  const F32x16 s = u / (2.0f + u), square = s * s;
  F32x16 q = splat(0.1400556935f);
  q = 0.1400098187f + square * q;
  q = 0.2001075924f + square * q;
  q = 0.3333320821f + square * q;
  const F32x16 logarithm = 2.0f * (s + (s * square) * q);
  return (x > zero ? x : zero) + logarithm;
}

/// 1 / (1 + e^-x).
MCC_INLINE F32x16 sigmoid(F32x16 x) { return 1.0f / (1.0f + exponential(-x)); }

/// xIELU with parameters [4] as checkpoints hold them; see KernelTable.def.
MCC_INLINE F32x16 xielu(F32x16 x, const float *parameters) {
  const F32x16 beta = splat(parameters[2]), positive = softplus(splat(parameters[0])), negative = beta + softplus(splat(parameters[1]));
  const F32x16 limit = splat(parameters[3]);
  const F32x16 below = exponentialMinusOne(x > limit ? limit : x) - x; // a NaN is not above
  return (x > 0.0f ? positive * x * x : negative * below) + beta * x;
}

/// x / (1 + e^-slope): the logistic gate of SiLU and of the tanh form of GELU.
MCC_INLINE F32x16 logisticGate(F32x16 x, F32x16 slope) { return x / (1.0f + exponential(-slope)); }

/// x/2 (1 + erf(x / sqrt 2)) by libm, lane by lane.
MCC_INLINE F32x16 geluErf(F32x16 x) {
  float lanes[kLanes];
  store(lanes, x);
  for (int64_t i = 0; i < kLanes; ++i)
    lanes[i] = 0.5f * lanes[i] * (1.0f + __builtin_erff(lanes[i] * 0.70710678f));
  return load(lanes);
}

/// Applies `activation`, a constant of the launch.
MCC_INLINE F32x16 activate(F32x16 x, int64_t activation) {
  const F32x16 zero = splat(0.0f);
  switch (static_cast<Activation>(activation)) {
  case Activation::None:
    return x;
  case Activation::Silu:
    return logisticGate(x, x);
  case Activation::GeluErf:
    return geluErf(x);
  case Activation::GeluTanh: // 1 + tanh u = 2 / (1 + e^-2u)
    return logisticGate(x, 1.5957691216f * (x + 0.044715f * (x * x) * x));
  case Activation::GeluQuick:
    return logisticGate(x, 1.702f * x);
  case Activation::Relu:
    return x < zero ? zero : x;
  case Activation::Relu2: {
    const F32x16 positive = x < zero ? zero : x;
    return positive * positive;
  }
  case Activation::Sigmoid:
    return sigmoid(x);
  case Activation::Xielu: // takes weights of the layer: no epilogue does it, the compiler names none
    break;
  }
  return x;
}

} // namespace mcc::cpu
