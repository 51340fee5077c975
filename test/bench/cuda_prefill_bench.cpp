// Bench of prefill on one GPU: every linear and the attention of a Llama-3.1-8B layer for many tokens, and the whole
// prefill as one replayed graph, in TFLOP/s of the model's own arithmetic (2 a weight and token; attention 4 a visible
// position, dimension and head), however many bf16 parts the kernels multiply.
//
// Usage: cuda-prefill-bench [whole]; `whole` leaves the single kernels out.
#include "BenchDevice.h"

#include "kernels/cuda/Attention.h"
#include "kernels/cuda/Linear.h"
#include "kernels/cuda/Rows.h"
#include "kernels/pack/Pack.h"

#include <string>

using namespace mcc;
using mcc::bench::Pool;

namespace {

cudaStream_t stream;

constexpr double kRoof = 790.0; // TFLOP/s bf16 that an H200 reaches

struct LinearShape {
  const char *name;
  int64_t rows, cols;
  bool gated, normed, residual;
};

constexpr int64_t kHidden = 4096, kHeads = 32, kKvHeads = 8, kHeadDim = 128, kInner = 14336, kLayers = 32,
                  kVocabulary = 128256, kWidth = kHeads * kHeadDim, kQkvRows = (kHeads + 2 * kKvHeads) * kHeadDim;
constexpr LinearShape kQkv = {"qkv", kQkvRows, kHidden, false, true, false},
                      kOut = {"out", kHidden, kWidth, false, false, true},
                      kGateUp = {"gate+up", kInner, kHidden, true, true, false},
                      kDown = {"down", kHidden, kInner, false, false, true};

double operations(const LinearShape &shape, int64_t tokens) {
  return 2.0 * static_cast<double>((shape.gated ? 2 : 1) * shape.rows * shape.cols * tokens);
}

// Of a causal layer's attention, the first token at `position`.
double attentionOperations(int64_t tokens, int64_t position) {
  const double seen =
      static_cast<double>(tokens) * (static_cast<double>(position) + static_cast<double>(tokens + 1) / 2);
  return 4.0 * seen * static_cast<double>(kWidth);
}

cuda::Linear describe(const LinearShape &shape, Format format, const uint8_t *weight, const float *x, float *y,
                      const float *norm, uint8_t *workspace, int parts) {
  cuda::Linear linear;
  linear.format = format, linear.rows = shape.rows, linear.cols = shape.cols, linear.x = x, linear.weight = weight;
  linear.y = y, linear.xStride = shape.cols, linear.yStride = linear.residualStride = shape.rows;
  linear.gated = shape.gated, linear.activation = shape.gated ? 1 : 0;
  linear.residual = shape.residual ? y : nullptr;
  if (shape.normed)
    linear.norm = {0, norm, nullptr, 1e-5f};
  linear.workspace = workspace, linear.prefillParts = parts;
  return linear;
}

void benchLinear(const LinearShape &shape, Format format, int64_t tokens, int parts) {
  Pool pool;
  const int64_t bytes = (shape.gated ? 2 : 1) * packedBytes(format, shape.rows, shape.cols);
  const int copies = 4;
  const uint8_t *weights = pool.randomWeights(format, bytes * copies);
  const float *x = pool.randomFloats(tokens * shape.cols), *norm = pool.randomFloats(shape.cols);
  float *y = pool.take<float>(tokens * shape.rows);
  uint8_t *workspace = pool.take<uint8_t>(cuda::linearWorkspaceBytes(tokens, shape.cols, parts));
  const double milliseconds =
      bench::replay(
          stream,
          [&] {
            for (int i = 0; i < copies; ++i)
              BENCH_CHECK(cuda::launchLinear({tokens, nullptr, nullptr},
                                             describe(shape, format, weights + i * bytes, x, y, norm, workspace, parts),
                                             stream));
          },
          5) /
      copies;
  std::printf("%-5s %5lld tokens %-8s %6lld x %5lld parts %d %9.1f us %6.1f TFLOP/s\n",
              std::string(formatInfo(format).name).c_str(), static_cast<long long>(tokens), shape.name,
              static_cast<long long>(shape.rows), static_cast<long long>(shape.cols), parts, milliseconds * 1e3,
              operations(shape, tokens) * 1e-9 / milliseconds);
  std::fflush(stdout);
}

// A layer's buffers for attention and its launch.
struct Mixer {
  int64_t context;
  float *keys, *values;
  uint8_t *workspace;

  static Mixer make(Pool &pool, int64_t tokens, int64_t context, int parts) {
    const int64_t cache = kKvHeads * ((context + 15) / 16 * 16) * kHeadDim;
    return {context, pool.randomFloats(cache), pool.randomFloats(cache),
            pool.take<uint8_t>(cuda::attentionWorkspaceBytes(tokens, kHeads, kKvHeads, kHeadDim, context, parts))};
  }

  void launch(const cuda::Step &now, const float *qkv, float *mixed, int parts) const {
    cuda::Attention attention;
    attention.q = qkv, attention.kCache = keys, attention.vCache = values, attention.y = mixed;
    attention.heads = kHeads, attention.kvHeads = kKvHeads, attention.headDim = kHeadDim;
    attention.qStride = kQkvRows, attention.yStride = kWidth, attention.context = context, attention.scale = 0.088f;
    attention.workspace = workspace, attention.prefillParts = parts;
    BENCH_CHECK(cuda::launchAttention(now, attention, stream));
  }
};

void benchAttention(int64_t tokens, int32_t position, int parts) {
  Pool pool;
  const Mixer mixer = Mixer::make(pool, tokens, position + tokens, parts);
  const float *qkv = pool.randomFloats(tokens * kQkvRows);
  float *mixed = pool.take<float>(tokens * kWidth);
  int32_t *place = pool.take<int32_t>(1);
  BENCH_CHECK(cudaMemcpy(place, &position, 4, cudaMemcpyHostToDevice));
  const double milliseconds =
      bench::replay(stream, [&] { mixer.launch({tokens, nullptr, place}, qkv, mixed, parts); }, 5);
  std::printf("attention %5lld tokens at %6d parts %d %9.1f us %6.1f TFLOP/s\n", static_cast<long long>(tokens),
              position, parts, milliseconds * 1e3, attentionOperations(tokens, position) * 1e-9 / milliseconds);
  std::fflush(stdout);
}

// A decoder of the shape, and its step over a prompt.
class Decoder {
public:
  Decoder(Format format, int64_t tokens, int parts) : format(format), tokens(tokens), parts(parts) {
    for (int64_t i = 0; i < kLayers; ++i) {
      Layer layer = {};
      for (int k = 0; k < 4; ++k)
        layer.weights[k] = weightsOf(*shapes[k]);
      layers.push_back(layer);
    }
    mixer = Mixer::make(pool, tokens, tokens, parts);
    head = pool.randomWeights(format, packedBytes(format, kVocabulary, kHidden));
    hidden = pool.randomFloats(tokens * kHidden), qkv = pool.take<float>(tokens * kQkvRows);
    mixed = pool.take<float>(tokens * kWidth), inner = pool.take<float>(tokens * kInner);
    cosSin = pool.take<float>(tokens * kHeadDim), frequencies = pool.randomFloats(kHeadDim / 2);
    norm = pool.randomFloats(kHidden), logits = pool.take<float>(kVocabulary);
    partials = pool.take<cuda::Partial>(cuda::kLogitPartials);
    ids = pool.take<int32_t>(tokens), place = pool.take<int32_t>(1), token = pool.take<int32_t>(1);
    workspace = pool.take<uint8_t>(cuda::linearWorkspaceBytes(tokens, kInner, parts));
  }

  void step(bool withAttention) const {
    const cuda::Step now = {tokens, ids, place};
    BENCH_CHECK(cuda::launchEmbed(now, {format, head, hidden, kVocabulary, kHidden, kHidden, 1.0f}, stream));
    BENCH_CHECK(cuda::launchRotary(now, {frequencies, cosSin, kHeadDim / 2, 1.0f}, stream));
    for (const Layer &layer : layers) {
      launchLinear(now, kQkv, layer.weights[0], hidden, qkv);
      if (withAttention)
        attend(now);
      launchLinear(now, kOut, layer.weights[1], mixed, hidden);
      launchLinear(now, kGateUp, layer.weights[2], hidden, inner);
      launchLinear(now, kDown, layer.weights[3], inner, hidden);
    }
    cuda::Logits last;
    last.linear =
        describe({"head", kVocabulary, kHidden, false, true, false}, format, head, hidden, logits, norm, workspace, 0);
    last.partials = partials;
    BENCH_CHECK(cuda::launchLogits(now, last, stream));
    BENCH_CHECK(cuda::launchArgmax(now, {partials, token}, stream));
  }

private:
  struct Layer {
    uint8_t *weights[4];
  };
  static constexpr const LinearShape *shapes[4] = {&kQkv, &kOut, &kGateUp, &kDown};

  uint8_t *weightsOf(const LinearShape &shape) {
    return pool.randomWeights(format, (shape.gated ? 2 : 1) * packedBytes(format, shape.rows, shape.cols));
  }
  void launchLinear(const cuda::Step &now, const LinearShape &shape, const uint8_t *weight, const float *x,
                    float *y) const {
    BENCH_CHECK(cuda::launchLinear(now, describe(shape, format, weight, x, y, norm, workspace, parts), stream));
  }
  void attend(const cuda::Step &now) const {
    cuda::RopeCache rope;
    rope.q = qkv, rope.k = qkv + kWidth, rope.v = rope.k + kKvHeads * kHeadDim, rope.cosSin = cosSin;
    rope.kCache = mixer.keys, rope.vCache = mixer.values;
    rope.heads = kHeads, rope.kvHeads = kKvHeads, rope.headDim = kHeadDim, rope.pairs = kHeadDim / 2;
    rope.qStride = rope.kStride = rope.vStride = kQkvRows, rope.context = mixer.context;
    BENCH_CHECK(cuda::launchRopeCache(now, rope, stream));
    mixer.launch(now, qkv, mixed, parts);
  }

  Format format;
  int64_t tokens;
  int parts;
  Pool pool;
  std::vector<Layer> layers;
  Mixer mixer;
  uint8_t *head, *workspace;
  float *hidden, *qkv, *mixed, *inner, *cosSin, *frequencies, *norm, *logits;
  cuda::Partial *partials;
  int32_t *ids, *place, *token;
};

void benchWhole(Format format, int64_t tokens, int parts) {
  const Decoder decoder(format, tokens, parts);
  const double whole = bench::replay(
                   stream, [&] { decoder.step(true); }, 5),
               without = bench::replay(stream, [&] { decoder.step(false); }, 5);
  double work = 0;
  for (const LinearShape &shape : {kQkv, kOut, kGateUp, kDown})
    work += operations(shape, tokens) * kLayers;
  const double linears = work;
  work += attentionOperations(tokens, 0) * kLayers;
  std::printf("Llama-3.1-8B %-5s prefill of %5lld tokens parts %d: %8.2f ms %6.1f TFLOP/s (%.0f%% of %.0f), without "
              "attention %8.2f ms %6.1f TFLOP/s\n",
              std::string(formatInfo(format).name).c_str(), static_cast<long long>(tokens), parts, whole,
              work * 1e-9 / whole, work * 1e-7 / whole / kRoof, kRoof, without, linears * 1e-9 / without);
  std::fflush(stdout);
}

void benchKernels() {
  for (const int parts : {1, 2}) {
    for (const LinearShape &shape : {kQkv, kOut, kGateUp, kDown})
      benchLinear(shape, Format::BF16, 2048, parts);
    for (const int64_t tokens : {64, 128, 512})
      benchLinear(kGateUp, Format::BF16, tokens, parts), benchLinear(kOut, Format::BF16, tokens, parts);
    for (const Format format : {Format::F16, Format::Q8_0, Format::Q4_0, Format::Q6_K})
      benchLinear(kGateUp, format, 2048, parts), benchLinear(kDown, format, 2048, parts);
    benchAttention(2048, 0, parts);
    benchAttention(2048, 6144, parts);
    benchAttention(512, 0, parts);
  }
}

} // namespace

int main(int argc, char **argv) {
  cudaDeviceProp properties;
  BENCH_CHECK(cudaGetDeviceProperties(&properties, 0));
  std::printf("%s, %d multiprocessors\n", properties.name, properties.multiProcessorCount);
  BENCH_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  if (argc < 2 || std::string(argv[1]) != "whole")
    benchKernels();
  for (const int parts : {1, 2})
    benchWhole(Format::BF16, 2048, parts);
  benchWhole(Format::BF16, 512, 1);
  benchWhole(Format::Q4_0, 2048, 1);
  return 0;
}
