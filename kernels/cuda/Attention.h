// Launchers of `rope_cache` and `attention` (kernels/KernelTable.def). Caches have the CPU's layouts, in f32:
// k [kv_heads][ceil(context/16)][head_dim][16 positions], v [kv_heads][ceil16(context)][ceil16(head_dim)], zeros in v's
// padding.
#pragma once

#include "kernels/cuda/Launch.h"

namespace mcc::cuda {

/// Normalises and rotates the new queries in place and the new keys on their way into the cache; stores keys and values
/// at the step's positions. k and v are only read; q, k and v may be columns of one buffer.
struct RopeCache {
  float *q = nullptr;
  const float *k = nullptr, *v = nullptr;
  const float *cosSin = nullptr; ///< [tokens][2][pairs], or null: no rotation
  const float *qNorm = nullptr, *kNorm = nullptr;
  float *kCache = nullptr, *vCache = nullptr;
  int64_t heads = 0, kvHeads = 0, headDim = 0, pairs = 0, pairing = 0;
  int64_t qStride = 0, kStride = 0, vStride = 0, context = 0;
  bool normAfter = false; ///< the norms take the rotated heads
  float eps = 0.0f;
};
Status launchRopeCache(const Step &step, const RopeCache &rope, cudaStream_t stream);

/// y[t, h, :] = softmax(scores) v, scores and what a query sees as in KernelTable.def. head_dim is at most 512.
struct Attention {
  const float *q = nullptr, *kCache = nullptr, *vCache = nullptr;
  const float *slopes = nullptr, *sinks = nullptr; ///< [heads] or null
  float *y = nullptr;
  int64_t heads = 0, kvHeads = 0, headDim = 0, qStride = 0, yStride = 0, window = 0, chunk = 0, context = 0;
  bool alibiRounded = false;
  float scale = 1.0f, softcap = 0.0f;
  /// 0: a token's bits depend on its position and the shape alone. Otherwise many tokens may go to tensor cores with so
  /// many bf16 parts of a number: 1 rounds it, 2 and more keep 16 bits.
  int prefillParts = 0;
  uint8_t *workspace = nullptr; ///< attentionWorkspaceBytes; zeroed once before the first launch, kept for attention
};

/// Bytes of workspace for attention of up to `tokens` tokens. Where `prefillParts` is set it grows with `context`.
int64_t attentionWorkspaceBytes(int64_t tokens, int64_t heads, int64_t kvHeads, int64_t headDim, int64_t context = 0,
                                int prefillParts = 0);

/// Any number of tokens.
Status launchAttention(const Step &step, const Attention &attention, cudaStream_t stream);

} // namespace mcc::cuda
