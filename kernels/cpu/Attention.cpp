// Rotation and caching of new keys and values, and attention over the cache.
//
// Keys lie in blocks of 16 positions, [head_dim][16], so that lanes are keys in q k^T; values lie row by row, so that
// lanes are dimensions in p v. Attention takes kKeyChunk positions at a time, chunks starting at multiples of
// kKeyChunk, with the usual running maximum and sum. The chunks depend on positions alone, so a token's result is
// the same in every batch, chunking and thread count.
#include "kernels/cpu/Kernels.h"
#include "kernels/cpu/NormRow.h"
#include "kernels/cpu/Sizes.h"
#include "kernels/cpu/VectorMath.h"
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

namespace {

// One query head's view of the cache and its running softmax.
struct Query {
  const float *q;      // [headDim]
  const float *keys;   // the kv head's blocks
  const float *values; // the kv head's rows
  int64_t headDim;
  float scale, softcap;
  float *out;          // [cacheRow(headDim)], running sum of p v
  float *weights;      // [kKeyChunk], p of the chunk
};

constexpr int64_t kChunkVectors = kKeyChunk / kLanes;

} // namespace

// Scores of the chunk at `start`; positions outside [first, last] get minus infinity.
MCC_INLINE void scoreChunk(const Query &query, int64_t start, int64_t first, int64_t last,
                           F32x16 (&scores)[kChunkVectors]) {
  const float *keys = query.keys + start * query.headDim;
  const int64_t blockFloats = query.headDim * kLanes;
  // Blocks wholly past the last position may lie past the cache's end and are not read.
  const int64_t blocks = (last - start) / kLanes + 1 < kChunkVectors ? (last - start) / kLanes + 1 : kChunkVectors;
  MCC_UNROLL
  for (int64_t b = 0; b < kChunkVectors; ++b)
    scores[b] = splat(0.0f);
  if (blocks == kChunkVectors) {
    for (int64_t d = 0; d < query.headDim; ++d)
      MCC_UNROLL
      for (int64_t b = 0; b < kChunkVectors; ++b)
        scores[b] += load(keys + b * blockFloats + d * kLanes) * query.q[d];
  } else {
    for (int64_t b = 0; b < blocks; ++b) {
      F32x16 sum = splat(0.0f);
      for (int64_t d = 0; d < query.headDim; ++d)
        sum += load(keys + b * blockFloats + d * kLanes) * query.q[d];
      scores[b] = sum;
    }
  }
  const I32x16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  MCC_UNROLL
  for (int64_t b = 0; b < kChunkVectors; ++b) {
    F32x16 score = scores[b] * query.scale;
    if (query.softcap > 0.0f)
      score = query.softcap * hyperbolicTangent(score / query.softcap);
    const I32x16 position = lane + static_cast<int32_t>(b * kLanes);
    const I32x16 outside = (position < static_cast<int32_t>(first - start)) | (position > static_cast<int32_t>(last - start));
    scores[b] = outside ? splat(-__builtin_inff()) : score;
  }
}

// out = out * shrink + sum over the chunk's positions [first, last] of p v, in order of position.
MCC_INLINE void addValues(const Query &query, int64_t start, int64_t first, int64_t last, float shrink) {
  const int64_t row = cacheRow(query.headDim);
  const int64_t begin = first > start ? first - start : 0, end = last - start < kKeyChunk ? last - start + 1 : kKeyChunk;
  const float *values = query.values + start * row;
  int64_t d = 0;
  for (; d + 4 * kLanes <= row; d += 4 * kLanes) {
    F32x16 sums[4];
    MCC_UNROLL
    for (int64_t i = 0; i < 4; ++i)
      sums[i] = load(query.out + d + i * kLanes) * shrink;
    for (int64_t j = begin; j < end; ++j)
      MCC_UNROLL
      for (int64_t i = 0; i < 4; ++i)
        sums[i] += load(values + j * row + d + i * kLanes) * query.weights[j];
    MCC_UNROLL
    for (int64_t i = 0; i < 4; ++i)
      store(query.out + d + i * kLanes, sums[i]);
  }
  for (; d < row; d += kLanes) {
    F32x16 sum = load(query.out + d) * shrink;
    for (int64_t j = begin; j < end; ++j)
      sum += load(values + j * row + d) * query.weights[j];
    store(query.out + d, sum);
  }
}

// Attends one query to positions [first, last]; leaves p v / sum in query.out.
MCC_VECTOR static void attendQuery(const Query &query, int64_t first, int64_t last) {
  const int64_t row = cacheRow(query.headDim);
  for (int64_t d = 0; d < row; d += kLanes)
    store(query.out + d, splat(0.0f));
  float largest = -__builtin_inff();
  F32x16 total = splat(0.0f);
  for (int64_t start = first / kKeyChunk * kKeyChunk; start <= last; start += kKeyChunk) {
    F32x16 scores[kChunkVectors];
    scoreChunk(query, start, first, last, scores);
    F32x16 top = scores[0];
    MCC_UNROLL
    for (int64_t b = 1; b < kChunkVectors; ++b)
      top = maximum(scores[b], top);
    const float chunkLargest = maxLanes(top);
    const float next = chunkLargest > largest ? chunkLargest : largest;
    const float shrink = exponential(splat(largest - next))[0];
    total = total * shrink;
    MCC_UNROLL
    for (int64_t b = 0; b < kChunkVectors; ++b) {
      const F32x16 p = exponential(scores[b] - next);
      store(query.weights + b * kLanes, p);
      total = total + p;
    }
    addValues(query, start, first, last, shrink);
    largest = next;
  }
  const float sum = sumLanes(total);
  for (int64_t d = 0; d < row; d += kLanes)
    store(query.out + d, load(query.out + d) / sum);
}

MCC_VECTOR void mcc_cpu_attention(const MccStep *step, int64_t tokens, const float *q, const float *kCache,
                                  const float *vCache, float *y, int64_t heads, int64_t kvHeads, int64_t headDim,
                                  int64_t qStride, int64_t yStride, int64_t window, int64_t context, float scale,
                                  float softcap) {
  const int64_t positions = roundUp(context, kPanelRows), row = cacheRow(headDim), group = heads / kvHeads;
  float *scratch = reinterpret_cast<float *>(step->scratch);
  const Range share = shareOf(step, heads * tokens);
  for (int64_t item = share.begin; item < share.end; ++item) {
    const int64_t t = item % tokens, head = item / tokens, kv = head / group, last = step->position + t;
    const int64_t first = window > 0 && last >= window ? last - window + 1 : 0;
    const Query query = {q + t * qStride + head * headDim, kCache + kv * positions * headDim,
                         vCache + kv * positions * row, headDim, scale, softcap, scratch, scratch + row};
    attendQuery(query, first, last);
    for (int64_t d = 0; d < headDim; d += kLanes)
      storePart(y + t * yStride + head * headDim + d, load(scratch + d), headDim - d);
  }
}
