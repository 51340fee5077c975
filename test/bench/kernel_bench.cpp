// Speeds of the CPU kernels against the machine's: memory read, GEMV per format, GEMM by rows, attention.
//
//   kernel-bench [--threads N] [--repeats N] [read|gemv|gemm|attention]...
//
// GEMV walks through copies that exceed the caches together. Figures are medians; findings go to LOG.md.
#include "BenchTeam.h"

#include "kernels/Format.h"
#include "kernels/cpu/Kernels.h"
#include "kernels/cpu/Sizes.h"
#include "kernels/pack/Pack.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

using namespace mcc;
using namespace mcc::bench;

namespace {

constexpr int64_t kBlobBytes = 512ll << 20;

// Huge-page memory of finite f16-ish and f32-ish junk: every half word decodes to a small number.
uint8_t *makeBlob() {
  void *memory = mmap(nullptr, kBlobBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    std::abort();
  madvise(memory, kBlobBytes, MADV_HUGEPAGE);
  uint16_t *halves = static_cast<uint16_t *>(memory);
  for (int64_t i = 0; i < kBlobBytes / 2; ++i)
    halves[i] = static_cast<uint16_t>(0x2000 + i * 2654435761u % 0x1000);
  return static_cast<uint8_t *>(memory);
}

struct Bench {
  Team team;
  int64_t threads, repeats;
  uint8_t *blob;
  std::vector<float> x, y, normed;

  Bench(int64_t threads, int64_t repeats, uint8_t *blob)
      : team(threads, cpu::linearScratchBytes(512, 8192)), threads(threads), repeats(repeats), blob(blob), x(512 * 8192, 0.01f),
        y(512 * 8192), normed(512 * 8192) {}
};

#define MCC_ENTRY(enumerator, suffix) mcc_cpu_linear_##suffix,
const decltype(&mcc_cpu_linear_f32) linearEntries[] = {MCC_FOR_EACH_FORMAT(MCC_ENTRY)};

void benchRead(Bench &bench) {
  std::atomic<uint64_t> sink{0};
  const Timing timing = bench.team.time(5, 1, 0, [&](const MccStep *step) {
    const uint64_t *words = reinterpret_cast<const uint64_t *>(bench.blob) + kBlobBytes / 8 * step->thread / step->threads;
    uint64_t sums[8] = {};
    for (int64_t i = 0; i < kBlobBytes / 8 / step->threads; i += 8)
      for (int64_t j = 0; j < 8; ++j)
        sums[j] += words[i + j];
    for (uint64_t sum : sums)
      sink += sum;
  });
  std::printf("read       %lld threads  %6.1f GB/s\n", static_cast<long long>(bench.threads), kBlobBytes / timing.seconds * 1e-9);
}

Timing timeLinear(Bench &bench, Format format, int64_t tokens, int64_t rows, int64_t cols, bool cycle) {
  const int64_t bytes = packedBytes(format, rows, cols), copies = cycle ? std::max<int64_t>(1, kBlobBytes / bytes) : 1;
  int64_t call = 0;
  return bench.team.time(bench.repeats, tokens, 0, [&](const MccStep *step) {
    const uint8_t *weight = bench.blob + call % copies * bytes;
    linearEntries[static_cast<size_t>(format)](step, tokens, bench.x.data(), weight, nullptr, nullptr, nullptr, nullptr, nullptr,
                                               bench.y.data(), rows, cols, cpu::rowStride(cols), rows, rows, 0, 0, -1, 0.0f, 1.0f);
    if (step->thread == 0)
      mccrt_barrier(step), ++call, mccrt_barrier(step);
    else
      mccrt_barrier(step), mccrt_barrier(step);
  });
}

void benchGemv(Bench &bench) {
  for (size_t i = 0; i < std::size(linearEntries); ++i) {
    const Format format = static_cast<Format>(i);
    const int64_t rows = 4096, cols = 4096;
    const Timing timing = timeLinear(bench, format, 1, rows, cols, true);
    std::printf("gemv %-5s %lld threads  %6.1f GB/s  %6.2f Gweights/s  %5.2f weights/cycle\n", formatInfo(format).name.data(),
                static_cast<long long>(bench.threads), static_cast<double>(packedBytes(format, rows, cols)) / timing.seconds * 1e-9,
                static_cast<double>(rows * cols) / timing.seconds * 1e-9,
                static_cast<double>(rows * cols) / timing.cycles);
  }
}

void benchGemm(Bench &bench) {
  for (Format format : {Format::F32, Format::BF16, Format::Q8_0, Format::Q4_0, Format::Q4_K, Format::Q6_K}) {
    std::printf("gemm %-5s %lld threads ", formatInfo(format).name.data(), static_cast<long long>(bench.threads));
    for (int64_t tokens : {1, 2, 4, 5, 8, 16, 64, 128, 512}) {
      const int64_t rows = 2048, cols = 2048;
      const Timing timing = timeLinear(bench, format, tokens, rows, cols, false);
      std::printf("  M=%lld %.1f (%.1f)", static_cast<long long>(tokens), 2.0 * static_cast<double>(rows * cols * tokens) / timing.seconds * 1e-9,
                  2.0 * static_cast<double>(rows * cols * tokens) / timing.cycles);
    }
    std::printf("  GFLOP/s (per cycle)\n");
  }
}

void benchAttention(Bench &bench) {
  const int64_t heads = 32, kvHeads = 8, headDim = 64, context = 4096;
  std::vector<float> keys(static_cast<size_t>(cpu::keyCacheBytes(kvHeads, headDim, context) / 4), 0.01f);
  std::vector<float> values(static_cast<size_t>(cpu::valueCacheBytes(kvHeads, headDim, context) / 4), 0.01f);
  const struct { int64_t tokens, position; } cases[] = {{1, 127}, {1, 1023}, {1, 4095}, {4, 1020}, {128, 0}, {128, 896}, {512, 0}};
  for (const auto &c : cases) {
    const Timing timing = bench.team.time(bench.repeats, c.tokens, c.position, [&](const MccStep *step) {
      mcc_cpu_attention(step, c.tokens, bench.x.data(), keys.data(), values.data(), nullptr, nullptr, bench.y.data(), heads, kvHeads,
                        headDim, heads * headDim, heads * headDim, 0, 0, 0, context, 0.125f, 0.0f);
    });
    double pairs = 0;
    for (int64_t t = 0; t < c.tokens; ++t)
      pairs += static_cast<double>(c.position + t + 1);
    std::printf("attention  %lld threads  T=%lld at %lld  %8.1f us  %6.1f GFLOP/s  %5.1f per cycle\n", static_cast<long long>(bench.threads),
                static_cast<long long>(c.tokens), static_cast<long long>(c.position), timing.seconds * 1e6,
                4.0 * pairs * static_cast<double>(heads * headDim) / timing.seconds * 1e-9,
                4.0 * pairs * static_cast<double>(heads * headDim) / timing.cycles);
  }
}

} // namespace

int main(int argc, char **argv) {
  int64_t threads = 1, repeats = 15;
  std::vector<std::string> parts;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--threads" && i + 1 < argc)
      threads = std::max(1, std::atoi(argv[++i]));
    else if (argument == "--repeats" && i + 1 < argc)
      repeats = std::max(1, std::atoi(argv[++i]));
    else
      parts.push_back(argument);
  }
  Bench bench(threads, repeats, makeBlob());
  const struct { const char *name; void (*run)(Bench &); } benches[] = {
      {"read", benchRead}, {"gemv", benchGemv}, {"gemm", benchGemm}, {"attention", benchAttention}};
  for (const auto &entry : benches)
    if (parts.empty() || std::find(parts.begin(), parts.end(), entry.name) != parts.end())
      entry.run(bench);
}
