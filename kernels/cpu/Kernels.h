// The C entries of the CPU kernels, as KernelTable.def lists them.
//
// Generated code declares them for itself from the table; this header is for tests and benches, and keeps the
// definitions honest. Meanings are in KernelTable.def and README.md.
#pragma once

#include "kernels/Step.h"

#include <cstdint>

/// Calls MACRO(Enumerator, suffix) for every format: the suffix is the format's name in the entry's symbol.
#define MCC_FOR_EACH_FORMAT(MACRO)                                                                                     \
  MACRO(F32, f32)                                                                                                      \
  MACRO(F16, f16)                                                                                                      \
  MACRO(BF16, bf16)                                                                                                    \
  MACRO(Q4_0, q4_0)                                                                                                    \
  MACRO(Q4_1, q4_1)                                                                                                    \
  MACRO(Q5_0, q5_0)                                                                                                    \
  MACRO(Q5_1, q5_1)                                                                                                    \
  MACRO(Q8_0, q8_0)                                                                                                    \
  MACRO(Q4_K, q4_k)                                                                                                    \
  MACRO(Q5_K, q5_k)                                                                                                    \
  MACRO(Q6_K, q6_k)                                                                                                    \
  MACRO(F8, f8)

extern "C" {

/// What `logits` leaves for `argmax`, one cache line per thread.
struct MccPartial {
  float value;     ///< the thread's largest logit
  int32_t index;   ///< its lowest index
  int32_t sawNaN;  ///< 1 where any of the thread's logits is NaN
  int32_t padding[13];
};

#define MCC_DECLARE(enumerator, suffix)                                                                                \
  void mcc_cpu_embed_##suffix(const MccStep *step, int64_t tokens, const uint8_t *table, float *y, int64_t rows,       \
                              int64_t cols, int64_t yStride, float scale);                                             \
  void mcc_cpu_positions_##suffix(const MccStep *step, int64_t tokens, const float *x, const uint8_t *table, float *y, \
                                  int64_t rows, int64_t cols, int64_t xStride, int64_t yStride, int64_t offset);       \
  void mcc_cpu_linear_##suffix(const MccStep *step, int64_t tokens, const float *x, const uint8_t *weight,             \
                               const float *bias, const float *residual, const float *normWeight,                      \
                               const float *normBias, float *normed, float *y, int64_t rows, int64_t cols,             \
                               int64_t xStride, int64_t yStride, int64_t residualStride, int64_t activation,           \
                               int64_t gated, int64_t normKind, float eps, float scale);                               \
  void mcc_cpu_logits_##suffix(const MccStep *step, int64_t tokens, const float *x, const uint8_t *weight,             \
                               const float *bias, const float *normWeight, const float *normBias,                      \
                               MccPartial *partials, float *logits, int64_t rows, int64_t cols, int64_t xStride,       \
                               int64_t normKind, float eps, float scale, float softcap);                               \
  void mcc_cpu_experts_##suffix(const MccStep *step, int64_t tokens, const float *x, const float *picks,               \
                                const uint8_t *weight, const float *bias, float *y, int64_t experts, int64_t chosen,   \
                                int64_t rows, int64_t cols, int64_t ownRows, int64_t xStride, int64_t picksStride,     \
                                int64_t yStride, int64_t activation, int64_t gated, float limit, float upOffset);
MCC_FOR_EACH_FORMAT(MCC_DECLARE)
#undef MCC_DECLARE

void mcc_cpu_norm(const MccStep *step, int64_t tokens, const float *x, const float *weight, const float *bias, float *y,
                  int64_t cols, int64_t groups, int64_t groupWeights, int64_t xStride, int64_t yStride, int64_t kind,
                  float eps);
void mcc_cpu_argmax(const MccStep *step, int64_t tokens, const MccPartial *partials, int32_t *token);
void mcc_cpu_rotary(const MccStep *step, int64_t tokens, const float *frequencies, float *cosSin, int64_t pairs,
                    int64_t original, float factor);
void mcc_cpu_rope_cache(const MccStep *step, int64_t tokens, float *q, const float *k, const float *v,
                        const float *cosSin, const float *qNorm, const float *kNorm, float *kCache, float *vCache,
                        int64_t heads, int64_t kvHeads, int64_t headDim, int64_t pairs, int64_t pairing,
                        int64_t qStride, int64_t kStride, int64_t vStride, int64_t context, int64_t normAfter,
                        float eps);
void mcc_cpu_attention(const MccStep *step, int64_t tokens, const float *q, const float *kCache, const float *vCache,
                       const float *slopes, const float *sinks, float *y, int64_t heads, int64_t kvHeads,
                       int64_t headDim, int64_t qStride, int64_t yStride, int64_t window, int64_t chunk,
                       int64_t alibiRounded, int64_t context, float scale, float softcap);
void mcc_cpu_conv(const MccStep *step, int64_t tokens, const float *x, const float *weight, const float *bias,
                  float *state, float *y, int64_t channels, int64_t taps, int64_t xStride, int64_t yStride,
                  int64_t activation);
void mcc_cpu_selective_scan(const MccStep *step, int64_t tokens, const float *x, const float *dt, const float *b,
                            const float *c, const float *a, const float *skip, float *state, float *y,
                            int64_t channels, int64_t depth, int64_t xStride, int64_t dtStride, int64_t bStride,
                            int64_t cStride, int64_t yStride);
void mcc_cpu_state_scan(const MccStep *step, int64_t tokens, const float *x, const float *dt, const float *b,
                        const float *c, const float *a, const float *dtBias, const float *skip, float *state, float *y,
                        int64_t heads, int64_t headDim, int64_t groups, int64_t depth, int64_t xStride,
                        int64_t dtStride, int64_t bStride, int64_t cStride, int64_t yStride, float timeMin,
                        float timeMax);
void mcc_cpu_delta_scan(const MccStep *step, int64_t tokens, const float *q, const float *k, const float *v,
                        const float *beta, const float *decay, const float *a, const float *dtBias, float *state,
                        float *y, int64_t keyHeads, int64_t valueHeads, int64_t keyDim, int64_t valueDim,
                        int64_t qStride, int64_t kStride, int64_t vStride, int64_t betaStride, int64_t decayStride,
                        int64_t yStride);
void mcc_cpu_route(const MccStep *step, int64_t tokens, const float *x, const float *bias, float *y, int64_t experts,
                   int64_t chosen, int64_t scoring, int64_t normalize, int64_t groups, int64_t groupsChosen,
                   int64_t groupScore, int64_t xStride, int64_t yStride, float scale);
void mcc_cpu_combine(const MccStep *step, int64_t tokens, const float *weights, const float *x, float *y,
                     int64_t slots, int64_t cols, int64_t weightsStride, int64_t xStride, int64_t yStride);
void mcc_cpu_assemble(const MccStep *step, int64_t tokens, const float *a, const float *b, float *y, int64_t heads,
                      int64_t headDim, int64_t first, int64_t second, int64_t aHead, int64_t bHead, int64_t aStride,
                      int64_t bStride, int64_t yStride);
void mcc_cpu_activate(const MccStep *step, int64_t tokens, const float *x, float *y, int64_t cols, int64_t xStride,
                      int64_t yStride, int64_t activation);
void mcc_cpu_gate(const MccStep *step, int64_t tokens, const float *a, const float *b, float *y, int64_t cols,
                  int64_t aStride, int64_t bStride, int64_t yStride, int64_t activation);
void mcc_cpu_add(const MccStep *step, int64_t tokens, const float *a, const float *b, float *y, int64_t cols,
                 int64_t aStride, int64_t bStride, int64_t yStride);
void mcc_cpu_clamp(const MccStep *step, int64_t tokens, const float *x, float *y, int64_t cols, int64_t xStride,
                   int64_t yStride, float limit);
void mcc_cpu_scale(const MccStep *step, int64_t tokens, const float *x, float *y, int64_t cols, int64_t xStride,
                   int64_t yStride, float factor);
void mcc_cpu_xielu(const MccStep *step, int64_t tokens, const float *x, const float *parameters, float *y, int64_t cols,
                   int64_t xStride, int64_t yStride);

void mcc_cpu_conv2d(const MccStep *step, int64_t tokens, const float *x, const float *weight, const float *scale,
                    const float *bias, const float *residual, float *y, int64_t batch, int64_t channels, int64_t height,
                    int64_t width, int64_t outChannels, int64_t outHeight, int64_t outWidth, int64_t kernelH,
                    int64_t kernelW, int64_t strideH, int64_t strideW, int64_t padTop, int64_t padLeft,
                    int64_t dilationH, int64_t dilationW, int64_t groups, int64_t activation);
void mcc_cpu_pool2d(const MccStep *step, int64_t tokens, const float *x, float *y, int64_t kind, int64_t planes,
                    int64_t height, int64_t width, int64_t outHeight, int64_t outWidth, int64_t kernelH,
                    int64_t kernelW, int64_t strideH, int64_t strideW, int64_t padTop, int64_t padLeft,
                    int64_t padBottom, int64_t padRight, int64_t dilationH, int64_t dilationW, int64_t includePad);

/// Returns 1 where the target has 32 registers of 512 bits, which doubles the tiles of `linear`. Results do not
/// depend on it. A weak default; codegen may replace its body for its target.
int64_t mcc_cpu_wide_registers(void);
}
