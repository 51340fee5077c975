// The kernels that work row by row or column by column: embed, positions, norm, rotary and the element-wise ones.
//
// Element-wise work is cut into tiles of one row and kTileCols columns; results do not depend on the cut.
#include "kernels/cpu/Kernels.h"
#include "kernels/cpu/NormRow.h"
#include "kernels/cpu/PanelFormats.h"
#include "kernels/cpu/VectorMath.h"
#include "kernels/cpu/Work.h"

using namespace mcc::cpu;

// A multiple of every format's block.
static constexpr int64_t kTileCols = 256;

// Calls body(token, column, columnEnd) for this thread's share of the tiles.
template <class Body>
MCC_INLINE void forEachTile(const MccStep *step, int64_t tokens, int64_t cols, Body body) {
  const int64_t across = (cols + kTileCols - 1) / kTileCols;
  const Range share = shareOf(step, tokens * across);
  for (int64_t i = share.begin; i < share.end; ++i) {
    const int64_t column = i % across * kTileCols;
    body(i / across, column, column + kTileCols < cols ? column + kTileCols : cols);
  }
}

// Calls body(column, value) for columns [begin, end) of one row of a packed table of `cols` columns: all 16 rows of the panel are
// decoded, one lane is kept.
template <class PanelFormat, class Body>
MCC_INLINE void readRow(const uint8_t *table, int64_t row, int64_t cols, int64_t begin, int64_t end, Body body) {
  constexpr int64_t groupCols = PanelFormat::groupCols, stepCols = PanelFormat::stepCols;
  const uint8_t *panel = table + row / kLanes * panelBytes<PanelFormat>(cols);
  for (int64_t column = begin; column < end; column += groupCols) {
    const auto decoder = PanelFormat::load(panel, column / groupCols);
    for (int64_t k = 0; k < groupCols; k += stepCols) {
      F32x16 values[stepCols];
      decoder.decode(k, values);
      for (int64_t s = 0; s < stepCols; ++s) {
        float lanes[kLanes];
        store(lanes, values[s]);
        body(column + k + s, lanes[row % kLanes]);
      }
    }
  }
}

template <class PanelFormat>
MCC_INLINE void embed(const MccStep *step, int64_t tokens, const uint8_t *table, float *y, int64_t cols,
                      int64_t yStride, float scale) {
  forEachTile(step, tokens, cols, [=](int64_t t, int64_t begin, int64_t end) {
    readRow<PanelFormat>(table, step->tokens[t], cols, begin, end,
                         [=](int64_t column, float value) { y[t * yStride + column] = scale * value; });
  });
}

template <class PanelFormat>
MCC_INLINE void addPositions(const MccStep *step, int64_t tokens, const float *x, const uint8_t *table, float *y,
                             int64_t cols, int64_t xStride, int64_t yStride, int64_t offset) {
  forEachTile(step, tokens, cols, [=](int64_t t, int64_t begin, int64_t end) {
    readRow<PanelFormat>(table, step->position + t + offset, cols, begin, end, [=](int64_t column, float value) {
      y[t * yStride + column] = x[t * xStride + column] + value;
    });
  });
}

#define MCC_DEFINE(enumerator, suffix)                                                                                 \
  MCC_VECTOR void mcc_cpu_embed_##suffix(const MccStep *step, int64_t tokens, const uint8_t *table, float *y, int64_t, \
                                         int64_t cols, int64_t yStride, float scale) {                                 \
    embed<Panel##enumerator>(step, tokens, table, y, cols, yStride, scale);                                            \
  }                                                                                                                    \
  MCC_VECTOR void mcc_cpu_positions_##suffix(const MccStep *step, int64_t tokens, const float *x,                      \
                                             const uint8_t *table, float *y, int64_t, int64_t cols, int64_t xStride,   \
                                             int64_t yStride, int64_t offset) {                                        \
    addPositions<Panel##enumerator>(step, tokens, x, table, y, cols, xStride, yStride, offset);                        \
  }
MCC_FOR_EACH_FORMAT(MCC_DEFINE)
#undef MCC_DEFINE

MCC_VECTOR void mcc_cpu_norm(const MccStep *step, int64_t tokens, const float *x, const float *weight,
                             const float *bias, float *y, int64_t cols, int64_t groups, int64_t groupWeights,
                             int64_t xStride, int64_t yStride, int64_t kind, float eps) {
  const int64_t width = cols / groups;
  const Range share = shareOf(step, tokens * groups);
  for (int64_t item = share.begin; item < share.end; ++item) {
    const int64_t t = item / groups, column = item % groups * width, own = groupWeights ? column : 0;
    normaliseRow({weight ? weight + own : nullptr, bias ? bias + own : nullptr, kind, eps}, x + t * xStride + column,
                 y + t * yStride + column, width);
  }
}

void mcc_cpu_rotary(const MccStep *step, int64_t tokens, const float *frequencies, float *cosSin, int64_t pairs,
                    int64_t original, float factor) {
  if (original > 0 && step->length > original)
    frequencies += pairs;
  forEachTile(step, tokens, pairs, [=](int64_t t, int64_t begin, int64_t end) {
    const float position = static_cast<float>(step->position + t);
    for (int64_t i = begin; i < end; ++i) {
      const float angle = position * frequencies[i];
      cosSin[t * 2 * pairs + i] = factor * __builtin_cosf(angle);
      cosSin[t * 2 * pairs + pairs + i] = factor * __builtin_sinf(angle);
    }
  });
}

// y = operation(x) on whole vectors; a row's tail is stored in part.
template <class Operation>
MCC_INLINE void mapElements(const MccStep *step, int64_t tokens, const float *x, float *y, int64_t cols,
                            int64_t xStride, int64_t yStride, Operation operation) {
  forEachTile(step, tokens, cols, [=](int64_t t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += kLanes)
      storePart(y + t * yStride + i, operation(loadPart(x + t * xStride + i, end - i)), end - i);
  });
}

MCC_VECTOR void mcc_cpu_activate(const MccStep *step, int64_t tokens, const float *x, float *y, int64_t cols,
                                 int64_t xStride, int64_t yStride, int64_t activation) {
  mapElements(step, tokens, x, y, cols, xStride, yStride,
              [=](F32x16 value) __attribute__((always_inline)) { return activate(value, activation); });
}

MCC_VECTOR void mcc_cpu_clamp(const MccStep *step, int64_t tokens, const float *x, float *y, int64_t cols,
                              int64_t xStride, int64_t yStride, float limit) {
  mapElements(step, tokens, x, y, cols, xStride, yStride, [=](F32x16 value) __attribute__((always_inline)) {
    const F32x16 above = splat(limit), below = splat(-limit);
    value = value > above ? above : value; // a NaN is neither
    return value < below ? below : value;
  });
}

MCC_VECTOR void mcc_cpu_scale(const MccStep *step, int64_t tokens, const float *x, float *y, int64_t cols,
                              int64_t xStride, int64_t yStride, float factor) {
  mapElements(step, tokens, x, y, cols, xStride, yStride,
              [=](F32x16 value) __attribute__((always_inline)) { return value * factor; });
}

MCC_VECTOR void mcc_cpu_xielu(const MccStep *step, int64_t tokens, const float *x, const float *parameters, float *y,
                              int64_t cols, int64_t xStride, int64_t yStride) {
  mapElements(step, tokens, x, y, cols, xStride, yStride,
              [=](F32x16 value) __attribute__((always_inline)) { return xielu(value, parameters); });
}

MCC_VECTOR void mcc_cpu_gate(const MccStep *step, int64_t tokens, const float *a, const float *b, float *y,
                             int64_t cols, int64_t aStride, int64_t bStride, int64_t yStride, int64_t activation) {
  forEachTile(step, tokens, cols, [=](int64_t t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += kLanes) {
      const F32x16 gate = activate(loadPart(a + t * aStride + i, end - i), activation);
      storePart(y + t * yStride + i, gate * loadPart(b + t * bStride + i, end - i), end - i);
    }
  });
}

MCC_VECTOR void mcc_cpu_add(const MccStep *step, int64_t tokens, const float *a, const float *b, float *y, int64_t cols,
                            int64_t aStride, int64_t bStride, int64_t yStride) {
  forEachTile(step, tokens, cols, [=](int64_t t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += kLanes)
      storePart(y + t * yStride + i, loadPart(a + t * aStride + i, end - i) + loadPart(b + t * bStride + i, end - i),
                end - i);
  });
}

MCC_VECTOR void mcc_cpu_assemble(const MccStep *step, int64_t tokens, const float *a, const float *b, float *y,
                                 int64_t heads, int64_t headDim, int64_t first, int64_t second, int64_t aHead,
                                 int64_t bHead, int64_t aStride, int64_t bStride, int64_t yStride) {
  const auto copy = [](const float *from, float *to, int64_t count) {
    for (int64_t i = 0; i < count; i += kLanes)
      storePart(to + i, loadPart(from + i, count - i), count - i);
  };
  const Range share = shareOf(step, tokens * heads);
  for (int64_t item = share.begin; item < share.end; ++item) {
    const int64_t t = item / heads, head = item % heads;
    float *to = y + t * yStride + head * headDim;
    copy(a + t * aStride + head * aHead, to, first);
    if (b)
      copy(b + t * bStride + head * bHead, to + first, second);
    for (int64_t i = first + second; i < headDim; ++i)
      to[i] = 0.0f;
  }
}
