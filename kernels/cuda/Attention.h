// Launchers of `rope_cache` and `attention` (kernels/KernelTable.def). Caches have the CPU's layouts, in f32:
// k [kv_heads][ceil(context/16)][head_dim][16 positions], v [kv_heads][ceil16(context)][ceil16(head_dim)], zeros in v's padding.
#pragma once

#include "kernels/cuda/Launch.h"

namespace mcc::cuda {

/// Rotates the new queries and keys in `qkv` and stores keys and values at the step's positions.
struct RopeCache {
  float *qkv = nullptr;
  const float *cosSin = nullptr; ///< [tokens][2][pairs], or null: no rotation
  const float *qNorm = nullptr, *kNorm = nullptr;
  float *kCache = nullptr, *vCache = nullptr;
  int64_t heads = 0, kvHeads = 0, headDim = 0, pairs = 0, pairing = 0, stride = 0;
  int64_t qColumn = 0, kColumn = 0, vColumn = 0, context = 0;
  float eps = 0.0f;
};
Status launchRopeCache(const Step &step, const RopeCache &rope, cudaStream_t stream);

/// y[t, h, :] = softmax(scale * q k^T, causal, within `window`) v. head_dim is at most 512.
struct Attention {
  const float *q = nullptr, *kCache = nullptr, *vCache = nullptr;
  float *y = nullptr;
  int64_t heads = 0, kvHeads = 0, headDim = 0, qStride = 0, yStride = 0, window = 0, context = 0;
  float scale = 1.0f, softcap = 0.0f;
  uint8_t *workspace = nullptr; ///< attentionWorkspaceBytes; zeroed once before the first launch, kept for attention
};

/// Bytes of workspace for attention of up to `tokens` tokens.
int64_t attentionWorkspaceBytes(int64_t tokens, int64_t heads, int64_t kvHeads, int64_t headDim);

/// Any number of tokens. A token's bits depend on its position and the shape alone.
Status launchAttention(const Step &step, const Attention &attention, cudaStream_t stream);

} // namespace mcc::cuda
