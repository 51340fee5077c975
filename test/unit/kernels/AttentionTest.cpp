// rotary, rope_cache and attention against the reference, through a cache filled chunk by chunk.
#include "Harness.h"

#include "kernels/cpu/Sizes.h"
#include "kernels/reference/Reference.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace mcc;
using namespace mcc::test;

namespace {

// One attention layer's shape and options.
struct Shape {
  int64_t heads = 4, kvHeads = 2, headDim = 24, pairs = 12, pairing = 0, window = 0, context = 150;
  float scale = 0.2f, softcap = 0.0f;
  bool norms = false, rotated = true;
  int64_t columns() const { return (heads + 2 * kvHeads) * headDim; }
  int64_t stride() const { return columns() + 7; }
  int64_t kColumn() const { return heads * headDim; }
  int64_t vColumn() const { return (heads + kvHeads) * headDim; }
};

// A layer's inputs for `tokens` positions, and what both sides share.
struct Layer {
  Shape shape;
  int64_t tokens;
  std::vector<float> qkv, frequencies, qNorm, kNorm;

  Layer(const Shape &shape, int64_t tokens) : shape(shape), tokens(tokens) {
    Random random(static_cast<uint64_t>(tokens + shape.headDim));
    qkv = random.floats(tokens * shape.stride(), 2.0f);
    for (int64_t i = 0; i < shape.pairs; ++i)
      frequencies.push_back(std::pow(10000.0f, -static_cast<float>(i) / static_cast<float>(shape.pairs)));
    qNorm = random.floats(shape.headDim);
    kNorm = random.floats(shape.headDim);
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
      if (s.norms)
        reference::norm({0, head < s.heads ? layer.qNorm.data() : layer.kNorm.data(), nullptr, kEps}, vector, vector, s.headDim);
      if (s.rotated)
        reference::rotate(vector, cosSin.data() + t * 2 * s.pairs, s.pairs, s.pairing);
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
      const int64_t first = s.window > 0 ? std::max<int64_t>(0, t - s.window + 1) : 0;
      reference::attend({qkv.data() + t * s.stride() + head * s.headDim, keys.data(), values.data(), s.headDim, first, t, s.scale, s.softcap},
                        y.data() + (t * s.heads + head) * s.headDim);
    }
  }
  return y;
}

// The kernels, `chunk` tokens to a step, over caches that hold NaN wherever nothing has been written.
std::vector<float> runKernels(const Layer &layer, int64_t chunk, int64_t threads) {
  const Shape &s = layer.shape;
  std::vector<float> kCache(static_cast<size_t>(cpu::keyCacheBytes(s.kvHeads, s.headDim, s.context) / 4), NAN);
  std::vector<float> vCache(static_cast<size_t>(cpu::valueCacheBytes(s.kvHeads, s.headDim, s.context) / 4), NAN);
  std::vector<float> qkv = layer.qkv, y(static_cast<size_t>(layer.tokens * s.heads * s.headDim));
  std::vector<float> cosSin(static_cast<size_t>(cpu::cosSinBytes(chunk, s.pairs) / 4));
  for (int64_t at = 0; at < layer.tokens; at += chunk) {
    const int64_t tokens = std::min(chunk, layer.tokens - at);
    float *rows = qkv.data() + at * s.stride();
    runStep(threads, tokens, at, cpu::attentionScratchBytes(s.headDim), [&](const MccStep *step) {
      mcc_cpu_rotary(step, tokens, layer.frequencies.data(), cosSin.data(), s.pairs, 1.0f);
      mccrt_barrier(step);
      mcc_cpu_rope_cache(step, tokens, rows, s.rotated ? cosSin.data() : nullptr, s.norms ? layer.qNorm.data() : nullptr,
                         s.norms ? layer.kNorm.data() : nullptr, kCache.data(), vCache.data(), s.heads, s.kvHeads, s.headDim,
                         s.pairs, s.pairing, s.stride(), 0, s.kColumn(), s.vColumn(), s.context, kEps);
      mccrt_barrier(step);
      mcc_cpu_attention(step, tokens, rows, kCache.data(), vCache.data(), y.data() + at * s.heads * s.headDim, s.heads,
                        s.kvHeads, s.headDim, s.stride(), s.heads * s.headDim, s.window, s.context, s.scale, s.softcap);
    });
  }
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

TEST_CASE("a window is exact to one position, also across chunks of keys") {
  for (int64_t window : {1, 2, 15, 16, 17, 63, 64, 65, 100, 149, 150, 500}) {
    CAPTURE(window);
    Shape shape;
    shape.window = window;
    check(shape, 150);
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
  for (int64_t window : {0, 40}) {
    Shape shape;
    shape.window = window;
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
    runStep(2, 3, position, 64, [&](const MccStep *step) { mcc_cpu_rotary(step, 3, frequencies.data(), cosSin.data(), 4, 1.25f); });
    reference::rotary(frequencies.data(), expected.data(), 3, position, 4, 1.25f);
    CHECK(largestDifference(cosSin.data(), 8, expected.data(), 8, 3, 8) < 2e-7);
  }
}
