// A model small enough to compute by hand, for tests of the runtime.
//
// logits[v] after tokens t_0..t_m is the sum over positions p of (7 t_p + 3 p + 5 v + w[v] + 11) mod 31, where w comes
// from the weights segment. All values are small integers: exact in f32, in any order of additions.
// The token `poison` makes all logits NaN from its position on.
#pragma once

#include "kernels/Step.h"

#include <cstdint>

namespace mcc::test {

inline constexpr int64_t fakeVocabulary = 64;
inline constexpr int64_t fakeContext = 40;
inline constexpr int64_t fakeChunk = 8;
inline constexpr int32_t fakeEnd = 9;
inline constexpr int32_t fakePoison = 63;

inline constexpr uint64_t fakeLogitsOffset = 64;
inline constexpr uint64_t fakeTokenOffset = 0;
inline constexpr uint64_t fakeArenaBytes = fakeLogitsOffset + fakeVocabulary * sizeof(float);
inline constexpr uint64_t fakeCacheBytes = fakeContext * sizeof(int32_t);
inline constexpr uint64_t fakeScratchBytes = 100;

/// Returns w[v].
inline uint8_t fakeWeight(int64_t v) { return static_cast<uint8_t>(v * v * 13 % 251); }

/// The step: every thread stores its share of tokens, computes its share of logits; thread 0 chooses.
void fakeStep(const MccStep *step);

} // namespace mcc::test
