// Benches of the CUDA kernels on one GPU: the weight stream of `linear` by format and shape, and whole decode steps of
// the Llama-3.2-1B and Llama-3.1-8B shapes as one replayed graph.
//
// Every launch is captured into a graph and the graph replayed, so what is measured is what a generating program does.
// Matrices rotate through more memory than the caches hold. Weights are random numbers of the format, never zeros.
#include "kernels/cuda/Attention.h"
#include "kernels/cuda/Linear.h"
#include "kernels/cuda/Rows.h"
#include "kernels/pack/Pack.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

using namespace mcc;

namespace {

void check(int status, const char *what) {
  if (status == 0)
    return;
  std::printf("%s: %s\n", what, cudaGetErrorName(static_cast<cudaError_t>(status)));
  std::exit(1);
}
#define CHECK(call) check(static_cast<int>(call), #call)

cudaStream_t stream;

// Device memory that lives as long as the program part that asked.
class Pool {
public:
  ~Pool() {
    for (void *block : blocks)
      (void)cudaFree(block);
  }
  template <class T>
  T *take(int64_t count) {
    void *block;
    CHECK(cudaMalloc(&block, static_cast<size_t>(count) * sizeof(T)));
    CHECK(cudaMemset(block, 0, static_cast<size_t>(count) * sizeof(T)));
    blocks.push_back(block);
    return static_cast<T *>(block);
  }

private:
  std::vector<void *> blocks;
};

// 32 MiB or so of a format's packed blocks: random quants, small scales.
std::vector<uint8_t> patternOf(Format format) {
  const FormatInfo &info = formatInfo(format);
  const size_t block = static_cast<size_t>(info.blockBytes) * 16;
  std::vector<uint8_t> bytes((size_t{1} << 25) / block * block);
  std::mt19937_64 random(1);
  for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    const uint64_t word = random();
    std::memcpy(&bytes[i], &word, 8);
  }
  if (info.blockElems == 1) { // numbers of magnitude 2^-6 to 2^-5, any sign
    for (size_t i = 0; i < bytes.size(); i += static_cast<size_t>(info.blockBytes)) {
      const uint8_t top = format == Format::F16 ? 0x24 : 0x3c;
      bytes[i + static_cast<size_t>(info.blockBytes) - 1] = static_cast<uint8_t>(top | (bytes[i] & 0x80));
    }
    return bytes;
  }
  for (size_t i = 0; i < bytes.size(); i += block)
    for (size_t lane = 0; lane < 16; ++lane)
      bytes[i + 2 * lane + 1] = 0x10; // scales of about 2^-11
  return bytes;
}

// Fills device memory with the pattern, repeated.
void fill(uint8_t *to, int64_t bytes, const std::vector<uint8_t> &pattern) {
  const int64_t size = static_cast<int64_t>(pattern.size());
  for (int64_t at = 0; at < bytes; at += size) {
    const size_t part = static_cast<size_t>(std::min(size, bytes - at));
    CHECK(at == 0 ? cudaMemcpy(to, pattern.data(), part, cudaMemcpyHostToDevice)
                  : cudaMemcpy(to + at, to, part, cudaMemcpyDeviceToDevice));
  }
}

// Median milliseconds of a replay of what `record` launches.
double replay(const std::function<void()> &record, int repeats) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  record();
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  std::vector<double> times;
  for (int i = 0; i < repeats + 3; ++i) {
    CHECK(cudaEventRecord(begin, stream));
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaEventRecord(end, stream));
    CHECK(cudaStreamSynchronize(stream));
    float milliseconds;
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    if (i >= 3)
      times.push_back(milliseconds);
  }
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));
  std::nth_element(times.begin(), times.begin() + static_cast<int64_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

std::vector<float> randomFloats(int64_t count) {
  std::mt19937 random(2);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(static_cast<size_t>(count));
  for (float &value : values)
    value = uniform(random);
  return values;
}

// `linear` over copies of one shape, as many as fill 2 GiB, each launch depending on the one before.
void benchLinear(Format format, int64_t rows, int64_t cols, int64_t tokens, bool gated, bool normed,
                 int prefillParts = 0) {
  Pool pool;
  const int64_t bytes = (gated ? 2 : 1) * packedBytes(format, rows, cols),
                copies = std::clamp<int64_t>((int64_t{1} << 31) / bytes, 4, tokens > 16 ? 8 : 64);
  uint8_t *weights = pool.take<uint8_t>(bytes * copies);
  fill(weights, bytes * copies, patternOf(format));
  float *x = pool.take<float>(tokens * cols), *y = pool.take<float>(tokens * rows), *ones = pool.take<float>(cols);
  const std::vector<float> values = randomFloats(tokens * cols);
  CHECK(cudaMemcpy(x, values.data(), values.size() * 4, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(ones, values.data(), static_cast<size_t>(cols) * 4, cudaMemcpyHostToDevice));
  cuda::Linear linear;
  linear.format = format, linear.rows = rows, linear.cols = cols, linear.x = x, linear.y = y, linear.xStride = cols,
  linear.yStride = rows;
  linear.gated = gated, linear.activation = gated ? 1 : 0;
  if (normed)
    linear.norm = {0, ones, nullptr, 1e-5f};
  linear.workspace = pool.take<uint8_t>(cuda::linearWorkspaceBytes(tokens, cols, prefillParts)),
  linear.prefillParts = prefillParts;
  const double milliseconds = replay(
      [&] {
        for (int64_t i = 0; i < copies; ++i) {
          linear.weight = weights + i * bytes;
          CHECK(cuda::launchLinear({tokens, nullptr, nullptr}, linear, stream));
        }
      },
      10);
  const double each = milliseconds / static_cast<double>(copies);
  if (tokens > 16) {
    const double operations = 2.0 * static_cast<double>((gated ? 2 : 1) * rows * cols * tokens);
    std::printf("%-5s %4lld tokens %6lld x %5lld%s parts %d %10.1f us %6.1f TFLOP/s\n",
                std::string(formatInfo(format).name).c_str(), static_cast<long long>(tokens),
                static_cast<long long>(rows), static_cast<long long>(cols), gated ? " gated" : "      ", prefillParts,
                each * 1e3, operations * 1e-9 / each);
    std::fflush(stdout);
    return;
  }
  std::printf("%-5s %2lld tokens %6lld x %5lld%s%s %8.1f MB %8.2f us %6.2f TB/s\n",
              std::string(formatInfo(format).name).c_str(), static_cast<long long>(tokens),
              static_cast<long long>(rows), static_cast<long long>(cols), gated ? " gated" : "      ",
              normed ? " norm" : "     ", static_cast<double>(bytes) * 1e-6, each * 1e3,
              static_cast<double>(bytes) * 1e-9 / each);
  std::fflush(stdout);
}

struct ModelShape {
  const char *name;
  int64_t hidden, heads, kvHeads, headDim, inner, layers, vocabulary;
};

constexpr ModelShape llama1B = {"Llama-3.2-1B", 2048, 32, 8, 64, 8192, 16, 128256};
constexpr ModelShape llama8B = {"Llama-3.1-8B", 4096, 32, 8, 128, 14336, 32, 128256};

// A decoder of a shape, with weights of one format, and its step.
class Decoder {
public:
  Decoder(const ModelShape &shape, Format format, int64_t tokens, int32_t position)
      : shape(shape), format(format), tokens(tokens), context(position + 64),
        qkvRows((shape.heads + 2 * shape.kvHeads) * shape.headDim) {
    const std::vector<uint8_t> pattern = patternOf(format);
    const auto weights = [&](int64_t rows, int64_t cols, int64_t times) {
      const int64_t bytes = times * packedBytes(format, rows, cols);
      uint8_t *to = pool.take<uint8_t>(bytes);
      fill(to, bytes, pattern);
      weightBytes += bytes;
      return to;
    };
    const int64_t width = shape.heads * shape.headDim,
                  cache = shape.kvHeads * ((context + 15) / 16 * 16) * shape.headDim;
    for (int64_t i = 0; i < shape.layers; ++i)
      layers.push_back({weights(qkvRows, shape.hidden, 1), weights(shape.hidden, width, 1),
                        weights(shape.inner, shape.hidden, 2), weights(shape.hidden, shape.inner, 1),
                        pool.take<float>(cache), pool.take<float>(cache)});
    head = weights(shape.vocabulary, shape.hidden, 1);
    hidden = pool.take<float>(tokens * shape.hidden), qkv = pool.take<float>(tokens * qkvRows);
    mixed = pool.take<float>(tokens * width), inner = pool.take<float>(tokens * shape.inner);
    cosSin = pool.take<float>(tokens * shape.headDim), frequencies = pool.take<float>(shape.headDim / 2);
    normWeight = pool.take<float>(shape.hidden), logits = pool.take<float>(shape.vocabulary);
    const std::vector<float> values = randomFloats(std::max(shape.hidden, shape.headDim));
    CHECK(cudaMemcpy(normWeight, values.data(), static_cast<size_t>(shape.hidden) * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(frequencies, values.data(), static_cast<size_t>(shape.headDim) * 2, cudaMemcpyHostToDevice));
    partials = pool.take<cuda::Partial>(cuda::kLogitPartials);
    ids = pool.take<int32_t>(tokens), place = pool.take<int32_t>(1);
    CHECK(cudaMemcpy(place, &position, 4, cudaMemcpyHostToDevice));
    linearWorkspace = pool.take<uint8_t>(cuda::linearWorkspaceBytes(tokens, std::max(shape.hidden, shape.inner)));
    attentionWorkspace =
        pool.take<uint8_t>(cuda::attentionWorkspaceBytes(tokens, shape.heads, shape.kvHeads, shape.headDim));
  }

  int64_t weightBytes = 0;

  /// Launches one step; the token goes back to where the step begins.
  void step(bool withAttention = true) const {
    const cuda::Step now = {tokens, ids, place};
    CHECK(cuda::launchEmbed(now, {format, head, hidden, shape.vocabulary, shape.hidden, shape.hidden, 1.0f}, stream));
    CHECK(cuda::launchRotary(now, {frequencies, cosSin, shape.headDim / 2, 1.0f}, stream));
    for (const Layer &layer : layers)
      stepLayer(now, layer, withAttention);
    cuda::Logits last;
    last.linear = linear(head, shape.vocabulary, shape.hidden, hidden, logits, true, false, false);
    last.partials = partials;
    CHECK(cuda::launchLogits(now, last, stream));
    CHECK(cuda::launchArgmax(now, {partials, ids}, stream));
  }

  int32_t token() const {
    int32_t value;
    CHECK(cudaMemcpy(&value, ids, 4, cudaMemcpyDeviceToHost));
    return value;
  }

private:
  struct Layer {
    uint8_t *qkv, *out, *gateUp, *down;
    float *keys, *values;
  };

  cuda::Linear linear(const uint8_t *weight, int64_t rows, int64_t cols, const float *x, float *y, bool normed,
                      bool gated, bool residual) const {
    cuda::Linear result;
    result.format = format, result.rows = rows, result.cols = cols, result.x = x, result.weight = weight, result.y = y;
    result.xStride = cols, result.yStride = rows, result.residualStride = rows;
    result.residual = residual ? y : nullptr;
    result.gated = gated, result.activation = gated ? 1 : 0;
    if (normed)
      result.norm = {0, normWeight, nullptr, 1e-5f};
    result.workspace = linearWorkspace;
    return result;
  }

  void stepLayer(const cuda::Step &now, const Layer &layer, bool withAttention) const {
    const int64_t width = shape.heads * shape.headDim;
    CHECK(cuda::launchLinear(now, linear(layer.qkv, qkvRows, shape.hidden, hidden, qkv, true, false, false), stream));
    if (withAttention) {
      cuda::RopeCache rope;
      rope.q = qkv, rope.k = qkv + width, rope.v = rope.k + shape.kvHeads * shape.headDim, rope.cosSin = cosSin,
      rope.kCache = layer.keys, rope.vCache = layer.values;
      rope.heads = shape.heads, rope.kvHeads = shape.kvHeads, rope.headDim = shape.headDim,
      rope.pairs = shape.headDim / 2;
      rope.qStride = rope.kStride = rope.vStride = qkvRows, rope.context = context;
      CHECK(cuda::launchRopeCache(now, rope, stream));
      cuda::Attention attention;
      attention.q = qkv, attention.kCache = layer.keys, attention.vCache = layer.values, attention.y = mixed;
      attention.heads = shape.heads, attention.kvHeads = shape.kvHeads, attention.headDim = shape.headDim;
      attention.qStride = qkvRows, attention.yStride = width, attention.context = context, attention.scale = 0.125f;
      attention.workspace = attentionWorkspace;
      CHECK(cuda::launchAttention(now, attention, stream));
    }
    CHECK(cuda::launchLinear(now, linear(layer.out, shape.hidden, width, mixed, hidden, false, false, true), stream));
    CHECK(cuda::launchLinear(now, linear(layer.gateUp, shape.inner, shape.hidden, hidden, inner, true, true, false),
                             stream));
    CHECK(cuda::launchLinear(now, linear(layer.down, shape.hidden, shape.inner, inner, hidden, false, false, true),
                             stream));
  }

  ModelShape shape;
  Format format;
  int64_t tokens, context, qkvRows;
  Pool pool;
  std::vector<Layer> layers;
  uint8_t *head, *linearWorkspace, *attentionWorkspace;
  float *hidden, *qkv, *mixed, *inner, *cosSin, *frequencies, *normWeight, *logits;
  cuda::Partial *partials;
  int32_t *ids, *place;
};

void benchStep(const ModelShape &shape, Format format, int64_t tokens, int32_t position) {
  const Decoder decoder(shape, format, tokens, position);
  const double whole = replay([&] { decoder.step(); }, 30), without = replay([&] { decoder.step(false); }, 30);
  std::printf("%s %-5s %2lld tokens at %5d: %7.3f ms, without attention %7.3f ms (%5.2f us a layer), "
              "weights %6.3f GB = %5.2f TB/s\n",
              shape.name, std::string(formatInfo(format).name).c_str(), static_cast<long long>(tokens), position, whole,
              without, (whole - without) * 1e3 / static_cast<double>(shape.layers),
              static_cast<double>(decoder.weightBytes) * 1e-9,
              static_cast<double>(decoder.weightBytes) * 1e-9 / whole);
  std::fflush(stdout);
}

void benchLinears() {
  for (const Format format : {Format::BF16, Format::Q8_0, Format::Q4_0, Format::F8, Format::F16}) {
    benchLinear(format, 3072, 2048, 1, false, true);
    benchLinear(format, 2048, 2048, 1, false, false);
    benchLinear(format, 8192, 2048, 1, true, true);
    benchLinear(format, 2048, 8192, 1, false, false);
    benchLinear(format, 6144, 4096, 1, false, true);
    benchLinear(format, 4096, 4096, 1, false, false);
    benchLinear(format, 14336, 4096, 1, true, true);
    benchLinear(format, 4096, 14336, 1, false, false);
    benchLinear(format, 128256, 2048, 1, false, true);
    benchLinear(format, 128256, 4096, 1, false, true);
  }
  for (const int64_t tokens : {2, 4, 8, 16})
    for (const Format format : {Format::BF16, Format::Q4_0}) {
      benchLinear(format, 14336, 4096, tokens, true, true);
      benchLinear(format, 4096, 14336, tokens, false, false);
    }
  for (int parts = 0; parts <= 3; ++parts) {
    benchLinear(Format::BF16, 14336, 4096, 2048, true, true, parts);
    benchLinear(Format::BF16, 4096, 14336, 2048, false, false, parts);
    benchLinear(Format::BF16, 4096, 4096, 512, false, false, parts);
  }
  for (const Format format : {Format::F32, Format::Q6_K})
    benchLinear(format, 4096, 4096, 1, false, false);
}

} // namespace

/// cuda-bench [steps]: everything, or the steps alone.
int main(int argc, char **argv) {
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) {
    std::printf("skipped: no GPU\n");
    return 77;
  }
  std::printf("%s, %d multiprocessors, %d MiB L2\n", properties.name, properties.multiProcessorCount,
              properties.l2CacheSize >> 20);
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  if (argc < 2 || std::strcmp(argv[1], "steps") != 0)
    benchLinears();
  for (const Format format : {Format::BF16, Format::Q8_0, Format::F8, Format::Q4_0}) {
    benchStep(llama1B, format, 1, 512);
    benchStep(llama8B, format, 1, 512);
  }
  benchStep(llama1B, Format::BF16, 1, 8000);
  benchStep(llama8B, Format::BF16, 1, 8000);
  benchStep(llama1B, Format::BF16, 4, 512);
  benchStep(llama1B, Format::BF16, 16, 512);
  return 0;
}
