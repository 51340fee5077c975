// rotary, rope_cache and attention against the reference, through a cache filled chunk by chunk.
#include "Harness.h"

#include "kernels/cpu/Sizes.h"
#include "kernels/cpu/VectorMath.h"
#include "kernels/reference/Reference.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace mcc;
using namespace mcc::test;

namespace {

// One attention layer's shape and options.
struct Shape {
  int64_t heads = 4, kvHeads = 2, headDim = 24, pairs = 12, pairing = 0, window = 0, context = 150;
  float scale = 0.2f, softcap = 0.0f;
  bool norms = false, rotated = true, normAfter = false;
  int64_t chunk = 0;
  bool slopes = false, slopesRounded = false, sinks = false;
  bool separate = false; // k and v in buffers of their own instead of columns behind q
  int64_t columns() const { return (heads + 2 * kvHeads) * headDim; }
  int64_t stride() const { return columns() + 7; }
  int64_t keyStride() const { return separate ? kvHeads * headDim + 3 : stride(); }
  int64_t valueStride() const { return separate ? kvHeads * headDim + 1 : stride(); }
  int64_t kColumn() const { return heads * headDim; }
  int64_t vColumn() const { return (heads + kvHeads) * headDim; }
};

// A layer's inputs for `tokens` positions, and what both sides share.
struct Layer {
  Shape shape;
  int64_t tokens;
  std::vector<float> qkv, frequencies, qNorm, kNorm, slopes, sinks;

  Layer(const Shape &shape, int64_t tokens) : shape(shape), tokens(tokens) {
    Random random(static_cast<uint64_t>(tokens + shape.headDim));
    qkv = random.floats(tokens * shape.stride(), 2.0f);
    for (int64_t i = 0; i < shape.pairs; ++i)
      frequencies.push_back(std::pow(10000.0f, -static_cast<float>(i) / static_cast<float>(shape.pairs)));
    qNorm = random.floats(shape.headDim);
    kNorm = random.floats(shape.headDim);
    slopes = random.floats(shape.heads, 0.1f);
    sinks = random.floats(shape.heads, 3.0f);
  }
};

constexpr float kEps = 1e-6f;

// Rotated and normalised heads by the reference: qkv with q and k replaced.
std::vector<float> referenceQkv(const Layer &layer) {
  const Shape &s = layer.shape;
  std::vector<float> qkv = layer.qkv, cosSin(static_cast<size_t>(layer.tokens * 2 * s.pairs));
  reference::rotary(layer.frequencies.data(), cosSin.data(), layer.tokens, 0, s.pairs, 1.0f);
  for (int64_t t = 0; t < layer.tokens; ++t)
    for (int64_t head = 0; head < s.heads + s.kvHeads; ++head) {
      float *vector = qkv.data() + t * s.stride() + head * s.headDim; // k follows q
      const auto normalise = [&] {
        reference::norm({0, head < s.heads ? layer.qNorm.data() : layer.kNorm.data(), nullptr, kEps}, vector, vector, s.headDim);
      };
      if (s.norms && !s.normAfter)
        normalise();
      if (s.rotated)
        reference::rotate(vector, cosSin.data() + t * 2 * s.pairs, s.pairs, s.pairing);
      if (s.norms && s.normAfter)
        normalise();
    }
  return qkv;
}

std::vector<float> runReference(const Layer &layer) {
  const Shape &s = layer.shape;
  const std::vector<float> qkv = referenceQkv(layer);
  std::vector<float> y(static_cast<size_t>(layer.tokens * s.heads * s.headDim));
  std::vector<float> keys(static_cast<size_t>(layer.tokens * s.headDim)), values = keys;
  for (int64_t head = 0; head < s.heads; ++head) {
    const int64_t kv = head / (s.heads / s.kvHeads);
    for (int64_t j = 0; j < layer.tokens; ++j)
      for (int64_t d = 0; d < s.headDim; ++d) {
        keys[static_cast<size_t>(j * s.headDim + d)] = qkv[static_cast<size_t>(j * s.stride() + s.kColumn() + kv * s.headDim + d)];
        values[static_cast<size_t>(j * s.headDim + d)] = qkv[static_cast<size_t>(j * s.stride() + s.vColumn() + kv * s.headDim + d)];
      }
    for (int64_t t = 0; t < layer.tokens; ++t) {
      const int64_t first = reference::firstPosition(t, s.window, s.chunk);
      const float slope = s.slopes ? layer.slopes[static_cast<size_t>(head)] : 0.0f;
      const float *sink = s.sinks ? &layer.sinks[static_cast<size_t>(head)] : nullptr;
      reference::attend({qkv.data() + t * s.stride() + head * s.headDim, keys.data(), values.data(), s.headDim, first, t, s.scale, s.softcap,
                         slope, s.slopesRounded, sink},
                        y.data() + (t * s.heads + head) * s.headDim);
    }
  }
  return y;
}

// `width` columns of qkv from `column` on, as rows of `stride`.
std::vector<float> columnsOf(const Layer &layer, int64_t column, int64_t width, int64_t stride) {
  std::vector<float> result(static_cast<size_t>(layer.tokens * stride), NAN);
  for (int64_t t = 0; t < layer.tokens; ++t)
    std::copy_n(layer.qkv.data() + t * layer.shape.stride() + column, width, result.data() + t * stride);
  return result;
}

// The kernels, `chunk` tokens to a step, over caches that hold NaN wherever nothing has been written.
std::vector<float> runKernels(const Layer &layer, int64_t chunk, int64_t threads) {
  const Shape &s = layer.shape;
  std::vector<float> kCache(static_cast<size_t>(cpu::keyCacheBytes(s.kvHeads, s.headDim, s.context) / 4), NAN);
  std::vector<float> vCache(static_cast<size_t>(cpu::valueCacheBytes(s.kvHeads, s.headDim, s.context) / 4), NAN);
  std::vector<float> qkv = layer.qkv, y(static_cast<size_t>(layer.tokens * s.heads * s.headDim));
  std::vector<float> cosSin(static_cast<size_t>(cpu::cosSinBytes(chunk, s.pairs) / 4));
  const std::vector<float> keys = columnsOf(layer, s.kColumn(), s.kvHeads * s.headDim, s.keyStride());
  const std::vector<float> values = columnsOf(layer, s.vColumn(), s.kvHeads * s.headDim, s.valueStride());
  for (int64_t at = 0; at < layer.tokens; at += chunk) {
    const int64_t tokens = std::min(chunk, layer.tokens - at);
    float *rows = qkv.data() + at * s.stride();
    const float *k = s.separate ? keys.data() + at * s.keyStride() : rows + s.kColumn();
    const float *v = s.separate ? values.data() + at * s.valueStride() : rows + s.vColumn();
    runStep(threads, tokens, at, cpu::attentionScratchBytes(s.headDim), [&](const MccStep *step) {
      mcc_cpu_rotary(step, tokens, layer.frequencies.data(), cosSin.data(), s.pairs, 0, 1.0f);
      mccrt_barrier(step);
      mcc_cpu_rope_cache(step, tokens, rows, k, v, s.rotated ? cosSin.data() : nullptr, s.norms ? layer.qNorm.data() : nullptr,
                         s.norms ? layer.kNorm.data() : nullptr, kCache.data(), vCache.data(), s.heads, s.kvHeads, s.headDim,
                         s.pairs, s.pairing, s.stride(), s.keyStride(), s.valueStride(), s.context, s.normAfter, kEps);
      mccrt_barrier(step);
      mcc_cpu_attention(step, tokens, rows, kCache.data(), vCache.data(), s.slopes ? layer.slopes.data() : nullptr,
                        s.sinks ? layer.sinks.data() : nullptr, y.data() + at * s.heads * s.headDim, s.heads, s.kvHeads,
                        s.headDim, s.stride(), s.heads * s.headDim, s.window, s.chunk, s.slopesRounded, s.context, s.scale,
                        s.softcap);
    });
  }
  for (int64_t t = 0; t < layer.tokens; ++t) // k and v are only read
    for (int64_t i = s.kColumn(); i < s.stride(); ++i)
      REQUIRE(qkv[static_cast<size_t>(t * s.stride() + i)] == layer.qkv[static_cast<size_t>(t * s.stride() + i)]);
  return y;
}

void check(const Shape &shape, int64_t tokens) {
  const Layer layer(shape, tokens);
  const std::vector<float> expected = runReference(layer), y = runKernels(layer, tokens, 2);
  const int64_t width = shape.heads * shape.headDim;
  CHECK(largestDifference(y.data(), width, expected.data(), width, tokens, width) < 5e-6);
}

} // namespace

TEST_CASE("attention equals the reference: head sizes, grouping, pairings, norms") {
  for (int64_t headDim : {2, 8, 16, 24, 64, 80, 128, 136})
    for (int64_t kvHeads : {1, 2, 4})
      for (int64_t pairing : {0, 1}) {
        CAPTURE(headDim);
        CAPTURE(kvHeads);
        Shape shape;
        shape.headDim = headDim;
        shape.kvHeads = kvHeads;
        shape.pairing = pairing;
        shape.pairs = headDim / 2 - (headDim > 16 ? 3 : 0); // partial rotation too
        shape.norms = pairing == 1;
        shape.rotated = headDim != 80;
        shape.scale = 1 / std::sqrt(static_cast<float>(headDim));
        check(shape, 70);
      }
}

TEST_CASE("norms of rotated heads equal the reference, with partial rotation, both pairings and none") {
  for (int64_t headDim : {2, 16, 24, 80, 136})
    for (int64_t pairing : {0, 1})
      for (bool rotated : {false, true}) {
        CAPTURE(headDim);
        Shape shape;
        shape.headDim = headDim;
        shape.pairing = pairing;
        shape.pairs = headDim / 2 - (headDim > 16 ? 3 : 0);
        shape.norms = shape.normAfter = true;
        shape.rotated = rotated;
        check(shape, 40);
      }
}

TEST_CASE("a window is exact to one position, also across chunks of keys") {
  for (int64_t window : {1, 2, 15, 16, 17, 63, 64, 65, 100, 149, 150, 500}) {
    CAPTURE(window);
    Shape shape;
    shape.window = window;
    check(shape, 150);
  }
}

TEST_CASE("a query sees its own chunk of positions only, alone and within a window") {
  for (int64_t chunk : {1, 2, 15, 16, 17, 63, 64, 65, 100, 149, 500})
    for (int64_t window : {0, 20, 64}) {
      CAPTURE(chunk);
      CAPTURE(window);
      Shape shape;
      shape.chunk = chunk;
      shape.window = window;
      check(shape, 150);
    }
}

TEST_CASE("slopes add to the scores by position, after the cap; rounded ones as bfloat16") {
  for (bool rounded : {false, true})
    for (float softcap : {0.0f, 5.0f}) {
      CAPTURE(rounded);
      Shape shape;
      shape.slopes = true;
      shape.slopesRounded = rounded;
      shape.softcap = softcap;
      shape.rotated = false;
      check(shape, 150);
      shape.kvHeads = 4;
      check(shape, 33);
    }
}

TEST_CASE("rounded slopes keep their ties and their NaN, far positions included") {
  const float values[16] = {1.0f, 257.0f, 259.0f, 258.0f, 131071.0f, 0.0f, -257.0f, 1.00390625f, 1.01171875f, 1e-40f, 3.3e38f, INFINITY, NAN, 0.1f, 513.0f, 65535.0f};
  float rounded[16];
  cpu::store(rounded, cpu::roundToBFloat16(cpu::load(values)));
  for (size_t i = 0; i < 16; ++i)
    if (std::isfinite(values[i]))
      CHECK(rounded[i] == reference::roundToBFloat16(values[i]));
  CHECK(rounded[1] == 256.0f); // halfway, to the even neighbour
  CHECK(rounded[2] == 260.0f);
  CHECK(rounded[11] == INFINITY);
  CHECK(std::isnan(rounded[12]));
}

TEST_CASE("sinks take their share of every softmax, also far above and below the scores") {
  Shape shape;
  shape.sinks = true;
  check(shape, 150);
  shape.window = 1; // one key and the sink
  check(shape, 20);
  Layer layer(shape, 20);
  layer.sinks = {500.0f, -500.0f, -INFINITY, 0.0f};
  const std::vector<float> expected = runReference(layer), y = runKernels(layer, 20, 2);
  CHECK(largestDifference(y.data(), 96, expected.data(), 96, 20, 96) < 5e-6);
  CHECK(y[0] == 0.0f); // all of it
  CHECK(y[24] == layer.qkv[static_cast<size_t>(shape.vColumn())]); // none of it
  CHECK(y[48] == layer.qkv[static_cast<size_t>(shape.vColumn() + shape.headDim)]);
}

TEST_CASE("k and v in buffers of their own give the same bits as columns of one") {
  for (bool norms : {false, true})
    for (int64_t pairing : {0, 1}) {
      Shape shape;
      shape.norms = norms;
      shape.pairing = pairing;
      shape.pairs = 9;
      const std::vector<float> together = runKernels(Layer(shape, 70), 70, 2);
      shape.separate = true;
      check(shape, 70);
      CHECK(sameBits(together, runKernels(Layer(shape, 70), 33, 3)));
    }
}

TEST_CASE("caps on scores, and scores large enough to overflow a plain exp") {
  Shape shape;
  shape.softcap = 5.0f;
  shape.scale = 3.0f;
  check(shape, 90);
  shape.softcap = 0.0f;
  shape.scale = 60.0f;
  const Layer layer(shape, 90);
  const std::vector<float> expected = runReference(layer), y = runKernels(layer, 90, 1);
  // Scores reach thousands, whose f32 rounding alone moves p by 1e-4.
  CHECK(largestDifference(y.data(), 96, expected.data(), 96, 90, 96) < 5e-3);
}

TEST_CASE("attention does not depend on chunking or threads, and reads nothing unwritten") {
  for (int64_t variant : {0, 1, 2, 3}) {
    CAPTURE(variant);
    Shape shape;
    shape.window = variant % 2 ? 40 : 0;
    shape.chunk = variant == 2 ? 50 : 0;
    shape.slopes = shape.sinks = shape.separate = variant >= 2;
    shape.slopesRounded = variant == 3;
    shape.norms = variant >= 2;
    shape.normAfter = variant == 2;
    const Layer layer(shape, 150);
    const std::vector<float> whole = runKernels(layer, 150, 1);
    for (int64_t chunk : {1, 2, 3, 7, 16, 17, 33, 64, 149})
      CHECK(sameBits(whole, runKernels(layer, chunk, 1)));
    for (int64_t threads : {2, 3, 7})
      CHECK(sameBits(whole, runKernels(layer, 37, threads)));
  }
}

TEST_CASE("rotary angles are f32 products, far positions included") {
  const std::vector<float> frequencies = {1.0f, 0.37f, 1e-4f, 0.0f};
  std::vector<float> cosSin(static_cast<size_t>(3 * 8)), expected = cosSin;
  for (int64_t position : {0, 1, 4095, 131071}) {
    runStep(2, 3, position, 64, [&](const MccStep *step) { mcc_cpu_rotary(step, 3, frequencies.data(), cosSin.data(), 4, 0, 1.25f); });
    reference::rotary(frequencies.data(), expected.data(), 3, position, 4, 1.25f);
    CHECK(largestDifference(cosSin.data(), 8, expected.data(), 8, 3, 8) < 2e-7);
  }
}

TEST_CASE("rotary takes the second frequencies for sequences longer than the original window, wherever the step is") {
  const std::vector<float> both = {1.0f, 0.5f, 0.25f, 0.125f};
  for (int64_t length : {10, 16, 17, 40})
    for (int64_t position : {0, 7}) {
      std::vector<float> got(3 * 4), expected(3 * 4);
      runStep(2, 3, position, 64, [&](const MccStep *step) {
        MccStep own = *step;
        own.length = length;
        mcc_cpu_rotary(&own, 3, both.data(), got.data(), 2, 16, 1.0f);
      });
      reference::rotary(both.data() + (length > 16 ? 2 : 0), expected.data(), 3, position, 2, 1.0f);
      CHECK(largestDifference(got.data(), 4, expected.data(), 4, 3, 4) < 1e-6);
    }
}
