// Sizes that the compiler plans and the kernels rely on: caches, scratch, shared buffers. Plain constexpr C++.
#pragma once

#include <cstdint>

namespace mcc::cpu {

/// Rows of a weight panel, keys of a cache block.
inline constexpr int64_t kPanelRows = 16;
/// Up to so many tokens every thread normalises all rows for itself (scratch); above, once for all (`normed`).
inline constexpr int64_t kPrivateNormTokens = 16;
/// Up to so many tokens `linear` decodes weights straight into registers.
inline constexpr int64_t kDirectTokens = 4;
/// Columns of a panel that are dequantised at a time; a multiple of every format's block. A pair of panels, 32 KiB,
/// stays in the first-level cache while the rows pass.
inline constexpr int64_t kDepthChunk = 256;
/// Panels that are dequantised together; even, so that a gate and its up panel stay together.
inline constexpr int64_t kPanelGroup = 4;
/// Keys that attention takes at a time, by position.
inline constexpr int64_t kKeyChunk = 64;
/// Queries of one kv head that attention takes together.
inline constexpr int64_t kQueryGroup = 4;
/// Bytes of one thread's record in `partials`.
inline constexpr int64_t kPartialBytes = 64;

/// Returns the least multiple of `step` that is at least `value`.
constexpr int64_t roundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

/// Floats of one key or value row of the caches: head_dim padded to whole vectors.
constexpr int64_t cacheRow(int64_t headDim) { return roundUp(headDim, kPanelRows); }
/// Bytes of k_cache: f32 [kv_heads][ceil(context/16)][head_dim][16 keys].
constexpr int64_t keyCacheBytes(int64_t kvHeads, int64_t headDim, int64_t context) {
  return kvHeads * roundUp(context, kPanelRows) * headDim * 4;
}
/// Bytes of v_cache: f32 [kv_heads][ceil16(context)][ceil16(head_dim)].
constexpr int64_t valueCacheBytes(int64_t kvHeads, int64_t headDim, int64_t context) {
  return kvHeads * roundUp(context, kPanelRows) * cacheRow(headDim) * 4;
}
/// The row stride, in elements, that a buffer of f32 rows read by `linear` should have: an odd number of cache lines, so that
/// the rows of a tile fall into different cache sets. A kernel works with any stride; powers of two cost up to a third.
constexpr int64_t rowStride(int64_t cols) { return roundUp(cols, 16) + (roundUp(cols, 16) / 16 % 2 == 0 ? 16 : 0); }

/// Bytes of `partials` for at most `threads` workers.
constexpr int64_t partialsBytes(int64_t threads) { return threads * kPartialBytes; }
/// Bytes of the shared `normed` buffer of a `linear` with a norm; 0 where no step exceeds kPrivateNormTokens.
constexpr int64_t normedBytes(int64_t chunk, int64_t cols) { return chunk > kPrivateNormTokens ? chunk * rowStride(cols) * 4 : 0; }
/// Bytes of `cos_sin` for `chunk` tokens.
constexpr int64_t cosSinBytes(int64_t chunk, int64_t pairs) { return chunk * 2 * pairs * 4; }

/// Bytes of a recurrent state: `rows` rows of `lanes` f32, each padded to whole vectors (KernelTable.def, `state`).
constexpr int64_t stateBytes(int64_t rows, int64_t lanes) { return rows * roundUp(lanes, kPanelRows) * 4; }

/// Floats of scratch in which a thread normalises its own rows.
constexpr int64_t privateNormFloats(int64_t chunk, int64_t cols) {
  return (chunk < kPrivateNormTokens ? chunk : kPrivateNormTokens) * rowStride(cols);
}
/// Bytes of private scratch of `linear` and `logits` for steps of at most `chunk` tokens, norm or not.
constexpr int64_t linearScratchBytes(int64_t chunk, int64_t cols) {
  return 4 * (privateNormFloats(chunk, cols) + kPanelGroup * kPanelRows * (kDepthChunk + chunk));
}
/// Rows of one expert that a thread takes together.
inline constexpr int64_t kExpertTokens = 32;
/// Bytes of private scratch of `experts`: gathered rows, where they go, and what `linear` needs.
constexpr int64_t expertsScratchBytes(int64_t cols) {
  return 4 * kExpertTokens * rowStride(cols) + linearScratchBytes(kExpertTokens, cols);
}
/// Bytes of private scratch of `route`: a score and a rank for each expert.
constexpr int64_t routeScratchBytes(int64_t experts) { return 4 * 2 * roundUp(experts, kPanelRows); }
/// Bytes of private scratch of `attention`.
constexpr int64_t attentionScratchBytes(int64_t headDim) { return 4 * kQueryGroup * (cacheRow(headDim) + kKeyChunk); }

} // namespace mcc::cpu
