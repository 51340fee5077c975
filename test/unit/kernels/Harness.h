// What the kernel tests share: random data in every format, steps run on threads, entries looked up by format.
#pragma once

#include "kernels/Format.h"
#include "kernels/cpu/Kernels.h"

#include <functional>
#include <string>
#include <vector>

namespace mcc::test {

/// A small deterministic generator.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed * 0x9E3779B97F4A7C15ull + 1) {}
  uint64_t bits();
  /// Uniform in [-1, 1).
  float uniform();
  /// `count` values uniform in [-scale, scale).
  std::vector<float> floats(int64_t count, float scale = 1.0f);

private:
  uint64_t state;
};

/// All formats of FormatTable.def.
const std::vector<Format> &allFormats();

/// A weight matrix in a format: the checkpoint's bytes, their exact values, and the packed panels.
struct Weights {
  Format format;
  int64_t rows, cols;
  std::vector<uint8_t> bytes;  ///< row-major, formatBytes(format, cols) each
  std::vector<float> values;   ///< [rows, cols]
  std::vector<uint8_t> packed; ///< panel16
};

/// Random weights of about unit variance over a row, with negative scales and zeros among them.
Weights randomWeights(Format format, int64_t rows, int64_t cols, uint64_t seed);

/// Fills in `values` and `packed` of weights whose `bytes` are set.
void finishWeights(Weights &weights);

/// Packs two matrices as a gated pair.
std::vector<uint8_t> packGated(const Weights &gate, const Weights &up);

/// Runs `body` on `threads` workers of one step of `tokens` tokens at `position`, with `scratchBytes` of scratch each.
void runStep(int64_t threads, int64_t tokens, int64_t position, int64_t scratchBytes,
             const std::function<void(const MccStep *)> &body, const int32_t *ids = nullptr);

using EmbedEntry = decltype(&mcc_cpu_embed_f32);
using PositionsEntry = decltype(&mcc_cpu_positions_f32);
using LinearEntry = decltype(&mcc_cpu_linear_f32);
using LogitsEntry = decltype(&mcc_cpu_logits_f32);
using ExpertsEntry = decltype(&mcc_cpu_experts_f32);
EmbedEntry embedEntry(Format format);
PositionsEntry positionsEntry(Format format);
LinearEntry linearEntry(Format format);
LogitsEntry logitsEntry(Format format);
ExpertsEntry expertsEntry(Format format);

/// Largest |a - b| over rows [rows, cols] of the given strides.
double largestDifference(const float *a, int64_t aStride, const float *b, int64_t bStride, int64_t rows, int64_t cols);

/// True where both arrays hold the same bits.
bool sameBits(const std::vector<float> &a, const std::vector<float> &b);

} // namespace mcc::test
