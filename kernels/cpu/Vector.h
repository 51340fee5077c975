// Vectors of 16 lanes in the portable subset that clang and g++ share (`vector_size`).
//
// A lane is a weight row, a key position or a dimension; which one the kernel says. The compiler splits the
// vectors for narrower targets, so no kernel names an instruction set. Helpers are always inlined: a 64-byte
// vector never crosses a call.
#pragma once

#include <cstdint>

#define MCC_INLINE static inline __attribute__((always_inline))
#define MCC_INLINE_MEMBER inline __attribute__((always_inline))
#ifdef __clang__
// Lets 512-bit targets keep one register per vector although their tuning prefers 256 bits.
#define MCC_VECTOR __attribute__((min_vector_width(512)))
#define MCC_UNROLL _Pragma("clang loop unroll(full)")
#else
#define MCC_VECTOR
#define MCC_UNROLL _Pragma("GCC unroll 16")
#endif

namespace mcc::cpu {

/// Lanes of every vector; also the rows of a weight panel and the keys of a cache block.
inline constexpr int64_t kLanes = 16;

typedef float F32x16 __attribute__((vector_size(64)));
typedef int32_t I32x16 __attribute__((vector_size(64)));
typedef uint32_t U32x16 __attribute__((vector_size(64)));
typedef uint16_t U16x16 __attribute__((vector_size(32)));
typedef _Float16 F16x16 __attribute__((vector_size(32)));
typedef uint8_t U8x16 __attribute__((vector_size(16)));
typedef int8_t I8x16 __attribute__((vector_size(16)));

/// Reads a vector from any address.
template <class Vector>
MCC_INLINE Vector loadVector(const void *from) {
  Vector vector;
  __builtin_memcpy(&vector, from, sizeof(Vector));
  return vector;
}

/// Reads 16 floats.
MCC_INLINE F32x16 load(const float *from) { return loadVector<F32x16>(from); }

/// Writes 16 floats.
MCC_INLINE void store(float *to, F32x16 vector) { __builtin_memcpy(to, &vector, sizeof(vector)); }

/// Returns `value` in every lane.
MCC_INLINE F32x16 splat(float value) {
  return F32x16{value, value, value, value, value, value, value, value,
                value, value, value, value, value, value, value, value};
}

/// Reads the first min(count, 16) floats; the other lanes are zero and their memory is not touched.
MCC_INLINE F32x16 loadPart(const float *from, int64_t count) {
  if (count >= kLanes)
    return load(from);
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < count; ++i)
    lanes[i] = from[i];
  return load(lanes);
}

/// Writes the first min(count, 16) lanes.
MCC_INLINE void storePart(float *to, F32x16 vector, int64_t count) {
  if (count >= kLanes)
    return store(to, vector);
  float lanes[kLanes];
  store(lanes, vector);
  for (int64_t i = 0; i < count; ++i)
    to[i] = lanes[i];
}

/// Reinterprets the bits of a vector.
template <class To, class From>
MCC_INLINE To bitsAs(From from) {
  static_assert(sizeof(To) == sizeof(From), "a reinterpretation keeps the size");
  To to;
  __builtin_memcpy(&to, &from, sizeof(to));
  return to;
}

/// Sum of the lanes, halving: (0+8), (1+9), ... ; a fixed tree.
MCC_INLINE float sumLanes(F32x16 vector) {
  float lanes[kLanes];
  store(lanes, vector);
  MCC_UNROLL
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i)
      lanes[i] += lanes[i + half];
  return lanes[0];
}

/// Largest lane; a NaN lane may be passed over.
MCC_INLINE float maxLanes(F32x16 vector) {
  float lanes[kLanes];
  store(lanes, vector);
  MCC_UNROLL
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i)
      lanes[i] = lanes[i] < lanes[i + half] ? lanes[i + half] : lanes[i];
  return lanes[0];
}

/// a where it is the larger, else b.
MCC_INLINE F32x16 maximum(F32x16 a, F32x16 b) { return a > b ? a : b; }

} // namespace mcc::cpu
