// Attention of new tokens over the cache.
//
// Keys lie in blocks of 16 positions, [head_dim][16], so that lanes are keys in q k^T; values lie row by row, so that
// lanes are dimensions in p v. A query takes kKeyChunk positions at a time, chunks starting at multiples of kKeyChunk, with
// the usual running maximum and sum. Chunks depend on positions alone, and within one the additions run in order of
// dimension and of position, so a token's result is the same in every batch, chunking and thread count.
// Up to kQueryGroup queries that read the same kv head go together, which changes what is read, not what is added.
#include "kernels/cpu/Kernels.h"
#include "kernels/cpu/Sizes.h"
#include "kernels/cpu/VectorMath.h"
#include "kernels/cpu/Work.h"

using namespace mcc::cpu;

namespace {

// One kv head's caches and the constants of the launch.
struct KeyValueHead {
  const float *keys;   // [block][headDim][16]
  const float *values; // [position][cacheRow(headDim)]
  int64_t headDim;
  float scale, softcap;
  bool hasSlopes, roundsSlopes;
};

// One query and its running softmax.
struct Query {
  const float *q;      // [headDim]
  float *out;          // [cacheRow(headDim)]: sum of p v so far
  float *weights;      // [kKeyChunk]: products, then p, of the chunk
  int64_t first, last; // positions it attends to
  float slope;         // added to a score per position of the key
  float largest;       // score so far
  F32x16 total;        // sums of p, by lane
  float shrink;        // e^(old largest - new largest)
};

// A chunk's positions that a query attends to, relative to the chunk's start.
Range clip(const Query &query, int64_t start) {
  return {query.first > start ? query.first - start : 0, query.last - start < kKeyChunk ? query.last - start + 1 : kKeyChunk};
}

// Products q k of `queries` queries with `blocks` blocks of keys.
template <int64_t queries, int64_t blocks>
MCC_INLINE void multiplyKeys(const KeyValueHead &head, const float *keys, Query *const *query, int64_t block) {
  F32x16 sums[queries][blocks] = {};
  const int64_t blockFloats = head.headDim * kLanes;
  for (int64_t d = 0; d < head.headDim; ++d) {
    F32x16 key[blocks];
    MCC_UNROLL
    for (int64_t b = 0; b < blocks; ++b)
      key[b] = load(keys + (block + b) * blockFloats + d * kLanes);
    MCC_UNROLL
    for (int64_t i = 0; i < queries; ++i)
      MCC_UNROLL
      for (int64_t b = 0; b < blocks; ++b)
        sums[i][b] += key[b] * query[i]->q[d];
  }
  for (int64_t i = 0; i < queries; ++i)
    for (int64_t b = 0; b < blocks; ++b)
      store(query[i]->weights + (block + b) * kLanes, sums[i][b]);
}

// As above for the first `blocks` blocks, `tile` at a time.
template <int64_t queries, int64_t tile>
MCC_VECTOR void scoreChunk(const KeyValueHead &head, int64_t start, int64_t blocks, Query *const *query) {
  const float *keys = head.keys + start * head.headDim;
  int64_t block = 0;
  for (; block + tile <= blocks; block += tile)
    multiplyKeys<queries, tile>(head, keys, query, block);
  for (; block < blocks; ++block)
    multiplyKeys<queries, 1>(head, keys, query, block);
}

// What the slope adds to the scores of keys at `position`. Positions below 2^24 are exact as floats, products of two bfloat16 too.
MCC_INLINE F32x16 slopeTerm(const KeyValueHead &head, float slope, I32x16 position) {
  const F32x16 at = __builtin_convertvector(position, F32x16);
  if (!head.roundsSlopes)
    return slope * at;
  return roundToBFloat16(roundToBFloat16(splat(slope)) * roundToBFloat16(at));
}

// Turns the products of the `blocks` blocks from position `start` on into p, with everything outside `range` zero, and moves the
// running maximum.
MCC_VECTOR void softmaxChunk(const KeyValueHead &head, Query &query, int64_t start, Range range, int64_t blocks) {
  const I32x16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  F32x16 top = splat(-__builtin_inff());
  for (int64_t b = 0; b < blocks; ++b) {
    F32x16 score = load(query.weights + b * kLanes) * head.scale;
    if (head.softcap > 0.0f)
      score = head.softcap * hyperbolicTangent(score / head.softcap);
    const I32x16 position = lane + static_cast<int32_t>(b * kLanes);
    if (head.hasSlopes) {
      const F32x16 term = slopeTerm(head, query.slope, position + static_cast<int32_t>(start));
      score = score + term; // the term is rounded first
    }
    const I32x16 outside = (position < static_cast<int32_t>(range.begin)) | (position >= static_cast<int32_t>(range.end));
    score = outside ? splat(-__builtin_inff()) : score;
    store(query.weights + b * kLanes, score);
    top = maximum(score, top);
  }
  const float chunkLargest = maxLanes(top), next = chunkLargest > query.largest ? chunkLargest : query.largest;
  query.shrink = exponential(splat(query.largest - next))[0];
  query.largest = next;
  query.total = query.total * query.shrink;
  for (int64_t b = 0; b < blocks; ++b) {
    const F32x16 p = exponential(load(query.weights + b * kLanes) - next);
    store(query.weights + b * kLanes, p);
    query.total = query.total + p;
  }
}

// out = out shrink + p v over the positions of `range` in order, `vectors` vectors of dimensions from `d` on.
template <int64_t queries, int64_t vectors>
MCC_INLINE void multiplyValues(const float *values, int64_t row, Range range, Query *const *query, int64_t d) {
  F32x16 sums[queries][vectors];
  MCC_UNROLL
  for (int64_t i = 0; i < queries; ++i)
    MCC_UNROLL
    for (int64_t v = 0; v < vectors; ++v)
      sums[i][v] = load(query[i]->out + d + v * kLanes) * query[i]->shrink;
  for (int64_t j = range.begin; j < range.end; ++j) {
    F32x16 value[vectors];
    MCC_UNROLL
    for (int64_t v = 0; v < vectors; ++v)
      value[v] = load(values + j * row + d + v * kLanes);
    MCC_UNROLL
    for (int64_t i = 0; i < queries; ++i)
      MCC_UNROLL
      for (int64_t v = 0; v < vectors; ++v)
        sums[i][v] += value[v] * query[i]->weights[j];
  }
  for (int64_t i = 0; i < queries; ++i)
    for (int64_t v = 0; v < vectors; ++v)
      store(query[i]->out + d + v * kLanes, sums[i][v]);
}

template <int64_t queries, int64_t tile>
MCC_VECTOR void addValues(const KeyValueHead &head, int64_t start, Range range, Query *const *query) {
  const int64_t row = cacheRow(head.headDim);
  const float *values = head.values + start * row;
  int64_t d = 0;
  for (; d + tile * kLanes <= row; d += tile * kLanes)
    multiplyValues<queries, tile>(values, row, range, query, d);
  for (; d < row; d += kLanes)
    multiplyValues<queries, 1>(values, row, range, query, d);
}

// One chunk for `queries` queries that attend to the same positions of it.
template <int64_t queries, int64_t tile>
MCC_INLINE void takeChunk(const KeyValueHead &head, int64_t start, Range range, Query *const *query) {
  const int64_t blocks = (range.end + kLanes - 1) / kLanes;
  scoreChunk<queries, tile>(head, start, blocks, query);
  for (int64_t i = 0; i < queries; ++i)
    softmaxChunk(head, *query[i], start, range, blocks);
  addValues<queries, tile>(head, start, range, query);
}

// One chunk for `count` queries of one range, as many together as the target's registers hold.
MCC_INLINE void takeChunkTogether(const KeyValueHead &head, int64_t start, Range range, Query *const *query, int64_t count,
                                  bool wide) {
  while (count > 0) {
    int64_t taken = count;
    if (wide && count == 4)
      takeChunk<4, 4>(head, start, range, query);
    else if (wide && count == 3)
      takeChunk<3, 4>(head, start, range, query);
    else if (count >= 2)
      takeChunk<2, 2>(head, start, range, query), taken = 2;
    else
      takeChunk<1, 4>(head, start, range, query);
    query += taken;
    count -= taken;
  }
}

// Attends `count` queries of one kv head; leaves their results in `out`.
MCC_VECTOR void attend(const KeyValueHead &head, Query *queries, int64_t count) {
  const int64_t row = cacheRow(head.headDim);
  const bool wide = mcc_cpu_wide_registers();
  int64_t first = queries[0].first, last = queries[0].last;
  for (int64_t i = 0; i < count; ++i) {
    first = queries[i].first < first ? queries[i].first : first;
    last = queries[i].last > last ? queries[i].last : last;
    for (int64_t d = 0; d < row; d += kLanes)
      store(queries[i].out + d, splat(0.0f));
  }
  for (int64_t start = first / kKeyChunk * kKeyChunk; start <= last; start += kKeyChunk)
    // Neighbours with the same positions of this chunk go together; a query with none of them stays out.
    for (int64_t i = 0; i < count;) {
      const Range range = clip(queries[i], start);
      Query *together[kQueryGroup];
      int64_t taken = 0;
      for (; i + taken < count; ++taken) {
        const Range other = clip(queries[i + taken], start);
        if (other.begin != range.begin || other.end != range.end)
          break;
        together[taken] = &queries[i + taken];
      }
      if (range.begin < range.end)
        takeChunkTogether(head, start, range, together, taken, wide);
      i += taken;
    }
  for (int64_t i = 0; i < count; ++i) {
    const float sum = sumLanes(queries[i].total);
    for (int64_t d = 0; d < row; d += kLanes)
      store(queries[i].out + d, load(queries[i].out + d) / sum);
  }
}

// Queries that go together: fewer where there would be too few groups for the threads.
int64_t groupSize(int64_t kvHeads, int64_t queries, int64_t threads) {
  int64_t size = kQueryGroup;
  while (size > 1 && kvHeads * ((queries + size - 1) / size) < threads)
    size /= 2;
  return size;
}

// The first position that a query at `last` sees.
int64_t firstPosition(int64_t last, int64_t window, int64_t chunk) {
  const int64_t byWindow = window > 0 && last >= window ? last - window + 1 : 0;
  const int64_t byChunk = chunk > 0 ? last / chunk * chunk : 0;
  return byWindow > byChunk ? byWindow : byChunk;
}

// A softmax that has seen the head's sink, if there is one, and no key: the sink is one more logit, and has no value.
void startSoftmax(Query &query, const float *sink) {
  query.largest = sink ? *sink : -__builtin_inff();
  query.total = splat(0.0f);
  query.total[0] = sink ? 1.0f : 0.0f;
  query.shrink = 0.0f;
}

} // namespace

MCC_VECTOR void mcc_cpu_attention(const MccStep *step, int64_t tokens, const float *q, const float *kCache,
                                  const float *vCache, const float *slopes, const float *sinks, float *y, int64_t heads,
                                  int64_t kvHeads, int64_t headDim, int64_t qStride, int64_t yStride, int64_t window,
                                  int64_t chunk, int64_t alibiRounded, int64_t context, float scale, float softcap) {
  const int64_t positions = roundUp(context, kPanelRows), row = cacheRow(headDim), perToken = heads / kvHeads;
  const int64_t queriesPerHead = tokens * perToken, size = groupSize(kvHeads, queriesPerHead, step->threads);
  const int64_t groups = (queriesPerHead + size - 1) / size;
  float *scratch = reinterpret_cast<float *>(step->scratch);
  const Range share = shareOf(step, kvHeads * groups);
  for (int64_t item = share.begin; item < share.end; ++item) {
    const int64_t kv = item / groups, begin = item % groups * size;
    const int64_t count = queriesPerHead - begin < size ? queriesPerHead - begin : size;
    Query queries[kQueryGroup];
    for (int64_t i = 0; i < count; ++i) {
      const int64_t t = (begin + i) / perToken, head = kv * perToken + (begin + i) % perToken, last = step->position + t;
      Query &query = queries[i];
      query.q = q + t * qStride + head * headDim;
      query.out = scratch + i * (row + kKeyChunk);
      query.weights = query.out + row;
      query.first = firstPosition(last, window, chunk);
      query.last = last;
      query.slope = slopes ? slopes[head] : 0.0f;
      startSoftmax(query, sinks ? sinks + head : nullptr);
    }
    attend({kCache + kv * positions * headDim, vCache + kv * positions * row, headDim, scale, softcap, slopes != nullptr,
            alibiRounded != 0},
           queries, count);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t t = (begin + i) / perToken, head = kv * perToken + (begin + i) % perToken;
      for (int64_t d = 0; d < headDim; d += kLanes)
        storePart(y + t * yStride + head * headDim + d, load(queries[i].out + d), headDim - d);
    }
  }
}
