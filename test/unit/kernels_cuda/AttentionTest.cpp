// rope_cache and attention on the GPU: a sequence fed in pieces against the scalar reference, and bit for bit against
// the same sequence fed otherwise.
#include "Device.h"

#include "kernels/cuda/Attention.h"
#include "kernels/reference/Reference.h"
#include "test/unit/kernels/Harness.h"

#include <cmath>

using namespace mcc;
using namespace mcc::test;

namespace {

struct Shape {
  int64_t heads, kvHeads, headDim, pairs, pairing;
  bool normed;
  int64_t window;
  float softcap;
  int64_t context = 600;
  int64_t chunk = 0;
  bool sunk = false, sloped = false, rounded = false, normAfter = false;
};

// A sequence's projections and everything that is derived from them.
struct Sequence {
  Shape shape;
  int64_t length, stride;
  std::vector<float> qkv, cosSin, qNorm, kNorm, slopes, sinks;
  float scale;

  Sequence(const Shape &shape, int64_t length)
      : shape(shape), length(length), stride((shape.heads + 2 * shape.kvHeads) * shape.headDim + (shape.heads % 4 == 0 ? 4 : 5)), scale(0.3f) {
    Random random(9);
    qkv = random.floats(length * stride);
    qNorm = random.floats(shape.headDim), kNorm = random.floats(shape.headDim);
    slopes = random.floats(shape.heads, 0.05f), sinks = random.floats(shape.heads, 3.0f);
    std::vector<float> frequencies = random.floats(shape.pairs);
    cosSin.resize(static_cast<size_t>(length * 2 * shape.pairs));
    if (shape.pairs)
      reference::rotary(frequencies.data(), cosSin.data(), length, 0, shape.pairs, 1.0f);
  }

  int64_t column(int64_t head) const { return head * shape.headDim; }

  // Normalised and rotated rows; then attention of each.
  std::vector<float> byReference() const {
    std::vector<float> rows = qkv, y(static_cast<size_t>(length * shape.heads * shape.headDim));
    for (int64_t t = 0; t < length; ++t)
      for (int64_t head = 0; head < shape.heads + shape.kvHeads; ++head) {
        float *vector = rows.data() + t * stride + column(head);
        const auto normalise = [&] {
          reference::norm({0, head < shape.heads ? qNorm.data() : kNorm.data(), nullptr, 1e-6f}, vector, vector,
                          shape.headDim);
        };
        if (shape.normed && !shape.normAfter)
          normalise();
        reference::rotate(vector, cosSin.data() + t * 2 * shape.pairs, shape.pairs, shape.pairing);
        if (shape.normed && shape.normAfter)
          normalise();
      }
    for (int64_t head = 0; head < shape.heads; ++head) {
      const int64_t kv = head / (shape.heads / shape.kvHeads), dim = shape.headDim;
      std::vector<float> keys, values;
      for (int64_t t = 0; t < length; ++t) {
        const float *row = rows.data() + t * stride;
        keys.insert(keys.end(), row + column(shape.heads + kv), row + column(shape.heads + kv) + dim);
        values.insert(values.end(), row + column(shape.heads + shape.kvHeads + kv),
                      row + column(shape.heads + shape.kvHeads + kv) + dim);
      }
      for (int64_t t = 0; t < length; ++t) {
        const int64_t first = reference::firstPosition(t, shape.window, shape.chunk);
        const size_t at = static_cast<size_t>(head);
        reference::attend({rows.data() + t * stride + column(head), keys.data(), values.data(), dim, first, t, scale,
                           shape.softcap, shape.sloped ? slopes[at] : 0.0f, shape.rounded,
                           shape.sunk ? &sinks[at] : nullptr},
                          y.data() + (t * shape.heads + head) * dim);
      }
    }
    return y;
  }

  // Fed `pieces` tokens at a time, the last size repeated.
  std::vector<float> byKernel(const std::vector<int64_t> &pieces, int prefillParts = 0) const {
    const int64_t positions = (shape.context + 15) / 16 * 16, row = (shape.headDim + 15) / 16 * 16,
                  width = shape.heads * shape.headDim;
    const DeviceArray<float> rows(qkv), angles(cosSin), qWeights(qNorm), kWeights(kNorm),
        y(static_cast<size_t>(length * width));
    const DeviceArray<float> deviceSlopes(slopes), deviceSinks(sinks);
    const DeviceArray<float> keys(static_cast<size_t>(shape.kvHeads * positions * shape.headDim));
    // Caches start as NaN: nothing that was not written may count.
    const DeviceArray<float> values(static_cast<size_t>(shape.kvHeads * positions * row));
    DeviceArray<uint8_t> workspace(static_cast<size_t>(
        cuda::attentionWorkspaceBytes(length, shape.heads, shape.kvHeads, shape.headDim, shape.context, prefillParts)));
    workspace.zero();
    size_t piece = 0;
    for (int64_t start = 0; start < length;) {
      const int64_t tokens = std::min(pieces[piece], length - start);
      piece += piece + 1 < pieces.size();
      const DeviceArray<int32_t> position(std::vector<int32_t>{static_cast<int32_t>(start)});
      const cuda::Step step{tokens, nullptr, position.get()};
      cuda::RopeCache rope;
      rope.q = rows.get() + start * stride, rope.k = rope.q + column(shape.heads),
      rope.v = rope.q + column(shape.heads + shape.kvHeads);
      rope.cosSin = shape.pairs ? angles.get() + start * 2 * shape.pairs : nullptr;
      rope.qNorm = shape.normed ? qWeights.get() : nullptr, rope.kNorm = shape.normed ? kWeights.get() : nullptr;
      rope.kCache = keys.get(), rope.vCache = values.get();
      rope.heads = shape.heads, rope.kvHeads = shape.kvHeads, rope.headDim = shape.headDim, rope.pairs = shape.pairs;
      rope.pairing = shape.pairing, rope.qStride = rope.kStride = rope.vStride = stride, rope.context = shape.context,
      rope.eps = 1e-6f, rope.normAfter = shape.normAfter;
      REQUIRE(cuda::launchRopeCache(step, rope, nullptr) == 0);
      cuda::Attention attention;
      attention.q = rows.get() + start * stride, attention.kCache = keys.get(), attention.vCache = values.get();
      attention.y = y.get() + start * width, attention.heads = shape.heads, attention.kvHeads = shape.kvHeads;
      attention.headDim = shape.headDim, attention.qStride = stride, attention.yStride = width,
      attention.window = shape.window;
      attention.context = shape.context, attention.scale = scale, attention.softcap = shape.softcap;
      attention.chunk = shape.chunk, attention.alibiRounded = shape.rounded;
      attention.slopes = shape.sloped ? deviceSlopes.get() : nullptr,
      attention.sinks = shape.sunk ? deviceSinks.get() : nullptr;
      attention.workspace = workspace.get(), attention.prefillParts = prefillParts;
      REQUIRE(cuda::launchAttention(step, attention, nullptr) == 0);
      REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
      start += tokens;
    }
    return y.values();
  }
};

const Shape shapes[] = {
    {8, 2, 64, 32, 0, false, 0, 0.0f},
    {6, 2, 40, 20, 1, false, 0, 0.0f},
    {4, 4, 128, 32, 0, true, 0, 0.0f},
    {5, 1, 80, 0, 0, false, 100, 0.0f},
    {4, 2, 72, 30, 1, true, 0, 0.0f, 600, 0, false, false, false, true},
    {10, 1, 256, 64, 0, true, 0, 30.0f},
    {2, 1, 18, 9, 0, false, 33, 20.0f},
    {16, 8, 128, 64, 0, false, 0, 0.0f, 513},
    {24, 2, 64, 32, 0, false, 0, 0.0f},
    {4, 1, 48, 16, 0, false, 0, 0.0f},
    {4, 2, 32, 16, 0, false, 0, 0.0f, 600, 150, true},
    {8, 8, 64, 0, 0, false, 0, 0.0f, 600, 0, false, true},
    {6, 2, 64, 0, 0, false, 90, 0.0f, 600, 0, true, true, true},
};

} // namespace

TEST_CASE("rope_cache and attention are the reference's, however the sequence is fed") {
  for (const Shape &shape : shapes) {
    const Sequence sequence(shape, reduced() ? 70 : shape.heads > 10 ? 330 : 513);
    const std::vector<float> expected = sequence.byReference();
    const std::vector<float> large = sequence.byKernel({sequence.length});
    INFO("heads ", shape.heads, " kv heads ", shape.kvHeads, " head dim ", shape.headDim, " window ", shape.window);
    CHECK(largestError(large, expected) < 2e-5);
    for (const std::vector<int64_t> &pieces : someOf<std::vector<int64_t>>({{1, 50, 3}, {16}, {7}, {300, 1}}, 1)) {
      const std::vector<float> other = sequence.byKernel(pieces);
      CHECK(equalBits(other.data(), large.data(), large.size()));
    }
  }
}

TEST_CASE("attention of many tokens on tensor cores, as exact as its parts say") {
  const double bounds[] = {3e-2, 2e-4};
  for (const Shape &shape : shapes) {
    const Sequence sequence(shape, reduced() ? 190 : shape.heads > 10 ? 330 : 513);
    const std::vector<float> expected = sequence.byReference();
    for (int parts = 1; parts <= 2; ++parts)
      for (const std::vector<int64_t> &pieces : someOf<std::vector<int64_t>>({{129, 400}, {sequence.length}, {60, 77, 3, 100}}, 1)) {
        INFO("parts ", parts, " heads ", shape.heads, " kv heads ", shape.kvHeads, " head dim ", shape.headDim,
             " window ", shape.window, " chunk ", shape.chunk, " first piece ", pieces[0]);
        const std::vector<float> got = sequence.byKernel(pieces, parts);
        CHECK(largestError(got, expected) < bounds[parts - 1]);
        const std::vector<float> again = sequence.byKernel(pieces, parts);
        CHECK(equalBits(got.data(), again.data(), got.size()));
      }
  }
}
