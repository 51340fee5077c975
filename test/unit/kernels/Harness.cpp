// Test data and thread steps. `mccrt_barrier` is defined here, over std::barrier, in place of the runtime's.
#include "Harness.h"

#include "kernels/pack/Pack.h"
#include "kernels/reference/Dequantize.h"

#include <barrier>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>

struct MccBarrier {
  explicit MccBarrier(int64_t threads) : arrivals(threads) {}
  std::barrier<> arrivals;
};

extern "C" void mccrt_barrier(const MccStep *step) { step->barrier->arrivals.arrive_and_wait(); }

namespace mcc::test {

uint64_t Random::bits() {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state * 0x2545F4914F6CDD1Dull;
}

float Random::uniform() { return static_cast<float>(static_cast<int64_t>(bits() >> 40) - (1 << 23)) / (1 << 23); }

std::vector<float> Random::floats(int64_t count, float scale) {
  std::vector<float> result(static_cast<size_t>(count));
  for (float &value : result)
    value = scale * uniform();
  return result;
}

const std::vector<Format> &allFormats() {
  static const std::vector<Format> formats = {
#define MCC_FORMAT(enumerator, text, elems, bytes, ggufId) Format::enumerator,
#include "kernels/FormatTable.def"
  };
  return formats;
}

static void putHalf(uint8_t *to, float value) {
  const _Float16 half = static_cast<_Float16>(value);
  std::memcpy(to, &half, 2);
}

// Offsets of a block's f16 scales.
static std::vector<int64_t> scaleOffsets(Format format) {
  switch (format) {
  case Format::Q4_1:
  case Format::Q5_1:
  case Format::Q4_K:
  case Format::Q5_K:
    return {0, 2};
  case Format::Q6_K:
    return {208};
  case Format::F32:
  case Format::F16:
  case Format::BF16:
    return {};
  default:
    return {0};
  }
}

// A scale, and another byte for every NaN among the elements.
static void finishF8Block(Random &random, uint8_t *block) {
  const float scale = random.bits() % 31 == 0 ? 0.0f : random.uniform() / 100.0f;
  std::memcpy(block, &scale, 4);
  for (int64_t i = 4; i < formatInfo(Format::F8).blockBytes; ++i)
    if ((block[i] & 127) == 127)
      block[i] &= 0xfe;
}

static void randomBlock(Format format, Random &random, uint8_t *block) {
  const FormatInfo &info = formatInfo(format);
  const float value = random.uniform();
  switch (format) {
  case Format::F32:
    std::memcpy(block, &value, 4);
    return;
  case Format::F16:
    return putHalf(block, value);
  case Format::BF16:
    std::memcpy(block, reinterpret_cast<const uint8_t *>(&value) + 2, 2);
    return;
  default:
    break;
  }
  for (int64_t i = 0; i < info.blockBytes; ++i)
    block[i] = static_cast<uint8_t>(random.bits() >> 56);
  if (format == Format::F8)
    return finishF8Block(random, block);
  const float range = format == Format::Q8_0 ? 127.0f : format == Format::Q6_K ? 2000.0f : info.blockElems == 256 ? 500.0f : 8.0f;
  for (int64_t offset : scaleOffsets(format))
    putHalf(block + offset, random.bits() % 31 == 0 ? 0.0f : random.uniform() / range);
}

void finishWeights(Weights &weights) {
  const int64_t rowBytes = formatBytes(weights.format, weights.cols);
  weights.values.resize(static_cast<size_t>(weights.rows * weights.cols));
  for (int64_t r = 0; r < weights.rows; ++r)
    dequantize(weights.format, weights.bytes.data() + r * rowBytes, weights.values.data() + r * weights.cols,
               weights.cols);
  weights.packed.resize(static_cast<size_t>(packedBytes(weights.format, weights.rows, weights.cols)));
  packPanels(weights.format, weights.bytes.data(), rowBytes, weights.rows, weights.cols, weights.packed.data());
}

Weights randomWeights(Format format, int64_t rows, int64_t cols, uint64_t seed) {
  Random random(seed);
  Weights weights = {format, rows, cols, {}, {}, {}};
  const FormatInfo &info = formatInfo(format);
  weights.bytes.resize(static_cast<size_t>(rows * formatBytes(format, cols)));
  for (size_t at = 0; at < weights.bytes.size(); at += static_cast<size_t>(info.blockBytes))
    randomBlock(format, random, weights.bytes.data() + at);
  finishWeights(weights);
  return weights;
}

std::vector<uint8_t> packGated(const Weights &gate, const Weights &up) {
  std::vector<uint8_t> packed(static_cast<size_t>(packedGatedBytes(gate.format, gate.rows, gate.cols)));
  packGatedPanels(gate.format, gate.bytes.data(), up.bytes.data(), formatBytes(gate.format, gate.cols), gate.rows, gate.cols,
                  packed.data());
  return packed;
}

void runStep(int64_t threads, int64_t tokens, int64_t position, int64_t scratchBytes,
             const std::function<void(const MccStep *)> &body, const int32_t *ids) {
  MccBarrier barrier(threads);
  const auto work = [&](int64_t thread) {
    // aligned_alloc takes whole multiples of the alignment; NaN bits show a read of what nobody wrote.
    const size_t bytes = static_cast<size_t>((scratchBytes + 127) / 64 * 64);
    uint8_t *scratch = static_cast<uint8_t *>(std::aligned_alloc(64, bytes));
    std::memset(scratch, 0xFF, bytes);
    MccStep step = {};
    step.scratch = scratch;
    step.tokens = ids;
    step.count = tokens;
    step.position = position;
    step.thread = thread;
    step.threads = threads;
    step.barrier = &barrier;
    body(&step);
    std::free(scratch);
  };
  std::vector<std::thread> workers;
  for (int64_t i = 1; i < threads; ++i)
    workers.emplace_back(work, i);
  work(0);
  for (std::thread &worker : workers)
    worker.join();
}

#define MCC_LOOKUP(enumerator, suffix)                                                                                 \
  {mcc_cpu_embed_##suffix, mcc_cpu_positions_##suffix, mcc_cpu_linear_##suffix, mcc_cpu_logits_##suffix,              \
   mcc_cpu_experts_##suffix},
static const struct {
  EmbedEntry embed;
  PositionsEntry positions;
  LinearEntry linear;
  LogitsEntry logits;
  ExpertsEntry experts;
} entries[] = {MCC_FOR_EACH_FORMAT(MCC_LOOKUP)};

EmbedEntry embedEntry(Format format) { return entries[static_cast<size_t>(format)].embed; }
PositionsEntry positionsEntry(Format format) { return entries[static_cast<size_t>(format)].positions; }
LinearEntry linearEntry(Format format) { return entries[static_cast<size_t>(format)].linear; }
LogitsEntry logitsEntry(Format format) { return entries[static_cast<size_t>(format)].logits; }
ExpertsEntry expertsEntry(Format format) { return entries[static_cast<size_t>(format)].experts; }

double largestDifference(const float *a, int64_t aStride, const float *b, int64_t bStride, int64_t rows, int64_t cols) {
  double largest = 0;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) {
      const double difference = std::fabs(static_cast<double>(a[r * aStride + c]) - b[r * bStride + c]);
      if (!(difference <= largest))
        largest = difference;
    }
  return largest;
}

bool sameBits(const std::vector<float> &a, const std::vector<float> &b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

} // namespace mcc::test
