// Rotation of new queries and keys, and the caching of keys and values.
//
// Keys are stored in blocks of 16 positions, [head_dim][16], and values row by row: see Attention.cpp.
#include "kernels/cpu/Kernels.h"
#include "kernels/cpu/NormRow.h"
#include "kernels/cpu/Sizes.h"
#include "kernels/cpu/Work.h"

using namespace mcc::cpu;

// Writes a head with its first 2 * pairs entries rotated: read(d) gives entry d, write(d, value) takes it. cosSin is [2][pairs];
// null rotates nothing. A pair is read before it is written, so that a head may be rotated in place.
template <class Read, class Write>
MCC_INLINE void rotate(const float *cosSin, int64_t pairs, int64_t pairing, int64_t headDim, Read read, Write write) {
  const int64_t apart = pairing == 0 ? pairs : 1, advance = pairing == 0 ? 1 : 2;
  const int64_t rotated = cosSin ? pairs : 0;
  for (int64_t i = 0; i < rotated; ++i) {
    const int64_t first = i * advance, second = first + apart;
    const float a = read(first), b = read(second), c = cosSin[i], s = cosSin[pairs + i];
    write(first, a * c - b * s);
    write(second, b * c + a * s);
  }
  for (int64_t d = 2 * rotated; d < headDim; ++d)
    write(d, read(d));
}

// RMS norm of entries kPanelRows apart, in place; the same order of additions as measureRow.
MCC_INLINE void normaliseStored(float *key, const float *weight, float eps, int64_t headDim) {
  F32x16 squares = splat(0.0f);
  for (int64_t i = 0; i < headDim; i += kLanes) {
    float lanes[kLanes] = {};
    for (int64_t j = 0; j < kLanes && i + j < headDim; ++j)
      lanes[j] = key[(i + j) * kPanelRows];
    squares += load(lanes) * load(lanes);
  }
  const float factor = 1.0f / __builtin_sqrtf(sumLanes(squares) / static_cast<float>(headDim) + eps);
  for (int64_t d = 0; d < headDim; ++d)
    key[d * kPanelRows] = key[d * kPanelRows] * factor * weight[d];
}

// Writes a key to `to`, entries kPanelRows apart: normalised where there is a weight, before or after it is rotated.
MCC_INLINE void storeKey(const float *key, float *to, const float *weight, int64_t normAfter, float eps,
                         const float *cosSin, int64_t pairs, int64_t pairing, int64_t headDim) {
  const auto write = [=](int64_t d, float value) { to[d * kPanelRows] = value; };
  if (!weight || normAfter) {
    rotate(cosSin, pairs, pairing, headDim, [=](int64_t d) { return key[d]; }, write);
    if (weight)
      normaliseStored(to, weight, eps, headDim);
    return;
  }
  const float factor = measureRow({weight, nullptr, kRmsNorm, eps}, key, headDim).factor;
  rotate(cosSin, pairs, pairing, headDim, [=](int64_t d) { return key[d] * factor * weight[d]; }, write);
}

MCC_VECTOR void mcc_cpu_rope_cache(const MccStep *step, int64_t tokens, float *q, const float *k, const float *v,
                                   const float *cosSin, const float *qNorm, const float *kNorm, float *kCache,
                                   float *vCache, int64_t heads, int64_t kvHeads, int64_t headDim, int64_t pairs,
                                   int64_t pairing, int64_t qStride, int64_t kStride, int64_t vStride, int64_t context,
                                   int64_t normAfter, float eps) {
  const int64_t blocks = roundUp(context, kPanelRows) / kPanelRows, valueRow = cacheRow(headDim);
  // Heads outermost: neighbouring positions of a cache block mostly fall to one thread.
  const Range share = shareOf(step, (heads + 2 * kvHeads) * tokens);
  for (int64_t item = share.begin; item < share.end; ++item) {
    const int64_t t = item % tokens, head = item / tokens, position = step->position + t;
    const float *angles = cosSin ? cosSin + t * 2 * pairs : nullptr;
    if (head < heads) {
      float *query = q + t * qStride + head * headDim;
      if (qNorm && !normAfter)
        normaliseRow({qNorm, nullptr, kRmsNorm, eps}, query, query, headDim);
      if (angles) // entries that are not rotated stay where they are
        rotate(angles, pairs, pairing, 2 * pairs, [=](int64_t d) { return query[d]; },
               [=](int64_t d, float value) { query[d] = value; });
      if (qNorm && normAfter)
        normaliseRow({qNorm, nullptr, kRmsNorm, eps}, query, query, headDim);
    } else if (head < heads + kvHeads) {
      const int64_t kv = head - heads;
      float *to = kCache + (kv * blocks + position / kPanelRows) * headDim * kPanelRows + position % kPanelRows;
      storeKey(k + t * kStride + kv * headDim, to, kNorm, normAfter, eps, angles, pairs, pairing, headDim);
    } else {
      const int64_t kv = head - heads - kvHeads;
      const float *from = v + t * vStride + kv * headDim;
      float *to = vCache + (kv * blocks * kPanelRows + position) * valueRow;
      for (int64_t d = 0; d < headDim; ++d)
        to[d] = from[d];
    }
  }
}
