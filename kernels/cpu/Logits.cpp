// The language-model head: logits of the last row, each thread's best of its share, and the merge of those.
//
// A tie goes to the lowest index, whatever the number of threads: shares are contiguous and every comparison
// prefers the lower index. A NaN anywhere gives the token -1.
#include "kernels/cpu/Linear.h"

using namespace mcc::cpu;

// Scales and caps the logits [begin, end) in place and finds the best of them.
MCC_INLINE MccPartial finishLogits(float *logits, Range range, float scale, float softcap) {
  MccPartial best = {-__builtin_inff(), INT32_MAX, 0, {}};
  for (int64_t i = range.begin; i < range.end; i += kLanes) {
    const int64_t left = range.end - i;
    F32x16 value = loadPart(logits + i, left) * scale;
    if (softcap > 0.0f)
      value = softcap * hyperbolicTangent(value / softcap);
    storePart(logits + i, value, left);
    for (int64_t lane = 0; lane < (left < kLanes ? left : kLanes); ++lane) {
      const float logit = value[lane];
      if (logit != logit)
        best.sawNaN = 1;
      if (logit > best.value || best.index == INT32_MAX) {
        best.value = logit;
        best.index = static_cast<int32_t>(i + lane);
      }
    }
  }
  return best;
}

template <class PanelFormat>
MCC_INLINE void logits(LinearLaunch launch, const Norm &norm, MccPartial *partials, float scale, float softcap) {
  const Range panels = shareOf(launch.step, (launch.epilogue.rows + kLanes - 1) / kLanes);
  const int64_t rows = launch.epilogue.rows, end = panels.end * kLanes < rows ? panels.end * kLanes : rows;
  normalisePrologue(launch, norm, nullptr);
  multiplyDirect<PanelFormat, 1>(launch, panels);
  partials[launch.step->thread] = finishLogits(launch.epilogue.y, {panels.begin * kLanes, end}, scale, softcap);
}

#define MCC_DEFINE(enumerator, suffix)                                                                                 \
  MCC_VECTOR void mcc_cpu_logits_##suffix(const MccStep *step, int64_t tokens, const float *x, const uint8_t *weight,  \
                                          const float *bias, const float *normWeight, const float *normBias,           \
                                          MccPartial *partials, float *y, int64_t rows, int64_t cols,                  \
                                          int64_t xStride, int64_t normKind, float eps, float scale, float softcap) {  \
    const Epilogue epilogue = {bias, nullptr, y, rows, 0, 0, 0, false, 1.0f};                                          \
    const float *last = x + (tokens - 1) * xStride;                                                                    \
    logits<Panel##enumerator>(                                                                                         \
        {step, 1, last, weight, cols, xStride, reinterpret_cast<float *>(step->scratch), epilogue},                    \
        {normWeight, normBias, normKind, eps}, partials, scale, softcap);                                              \
  }
MCC_FOR_EACH_FORMAT(MCC_DEFINE)
#undef MCC_DEFINE

void mcc_cpu_argmax(const MccStep *step, int64_t, const MccPartial *partials, int32_t *token) {
  if (step->thread != 0)
    return;
  MccPartial best = partials[0];
  int32_t sawNaN = best.sawNaN;
  for (int64_t i = 1; i < step->threads; ++i) {
    const MccPartial &other = partials[i];
    sawNaN |= other.sawNaN;
    // Later threads hold higher indices, so that an equal value does not replace.
    if (other.index != INT32_MAX && (best.index == INT32_MAX || other.value > best.value))
      best = other;
  }
  *token = sawNaN ? -1 : best.index;
}
