// Rotation of new queries and keys, and the caching of keys and values.
//
// Keys are stored in blocks of 16 positions, [head_dim][16], and values row by row: see Attention.cpp.
#include "kernels/cpu/Kernels.h"
#include "kernels/cpu/NormRow.h"
#include "kernels/cpu/Sizes.h"
#include "kernels/cpu/Work.h"

using namespace mcc::cpu;

// Rotates the first 2 * pairs entries of a head; cosSin is [2][pairs].
MCC_INLINE void rotate(float *head, const float *cosSin, int64_t pairs, int64_t pairing) {
  const int64_t apart = pairing == 0 ? pairs : 1, advance = pairing == 0 ? 1 : 2;
  for (int64_t i = 0; i < pairs; ++i) {
    float *first = head + i * advance, *second = first + apart;
    const float a = *first, b = *second, c = cosSin[i], s = cosSin[pairs + i];
    *first = a * c - b * s;
    *second = b * c + a * s;
  }
}

MCC_VECTOR void mcc_cpu_rope_cache(const MccStep *step, int64_t tokens, float *qkv, const float *cosSin,
                                   const float *qNorm, const float *kNorm, float *kCache, float *vCache, int64_t heads,
                                   int64_t kvHeads, int64_t headDim, int64_t pairs, int64_t pairing, int64_t stride,
                                   int64_t qColumn, int64_t kColumn, int64_t vColumn, int64_t context, float eps) {
  const int64_t blocks = roundUp(context, kPanelRows) / kPanelRows, valueRow = cacheRow(headDim);
  // Heads outermost: neighbouring positions of a cache block mostly fall to one thread.
  const Range share = shareOf(step, (heads + 2 * kvHeads) * tokens);
  for (int64_t item = share.begin; item < share.end; ++item) {
    const int64_t t = item % tokens, head = item / tokens, position = step->position + t;
    float *row = qkv + t * stride;
    if (head >= heads + kvHeads) {
      const int64_t kv = head - heads - kvHeads;
      float *to = vCache + (kv * blocks * kPanelRows + position) * valueRow;
      for (int64_t d = 0; d < headDim; ++d)
        to[d] = row[vColumn + kv * headDim + d];
      continue;
    }
    const bool isKey = head >= heads;
    const int64_t kv = head - heads;
    float *vector = row + (isKey ? kColumn + kv * headDim : qColumn + head * headDim);
    if (const float *weight = isKey ? kNorm : qNorm)
      normaliseRow({weight, nullptr, kRmsNorm, eps}, vector, vector, headDim);
    if (cosSin)
      rotate(vector, cosSin + t * 2 * pairs, pairs, pairing);
    if (!isKey)
      continue;
    float *to = kCache + (kv * blocks + position / kPanelRows) * headDim * kPanelRows + position % kPanelRows;
    for (int64_t d = 0; d < headDim; ++d)
      to[d * kPanelRows] = vector[d];
  }
}
