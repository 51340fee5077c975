// Entries of `linear`, one per weight format.
#include "kernels/cpu/Linear.h"

using namespace mcc::cpu;

// The launch's constants reach the body through this one inlined function.
template <class PanelFormat>
MCC_INLINE void linear(LinearLaunch launch, const Norm &norm, float *normed) {
  normalisePrologue(launch, norm, normed);
  multiply<PanelFormat>(launch);
}

#define MCC_DEFINE(enumerator, suffix)                                                                                 \
  MCC_VECTOR void mcc_cpu_linear_##suffix(                                                                             \
      const MccStep *step, int64_t tokens, const float *x, const uint8_t *weight, const float *bias,                   \
      const float *residual, const float *normWeight, const float *normBias, float *normed, float *y, int64_t rows,    \
      int64_t cols, int64_t xStride, int64_t yStride, int64_t residualStride, int64_t activation, int64_t gated,       \
      int64_t normKind, float eps, float scale) {                                                                      \
    const Epilogue epilogue = {bias, residual, y, rows, yStride, residualStride, activation, gated != 0, scale};       \
    linear<Panel##enumerator>(                                                                                         \
        {step, tokens, x, weight, cols, xStride, reinterpret_cast<float *>(step->scratch), epilogue},                  \
        {normWeight, normBias, normKind, eps}, normed);                                                                \
  }
MCC_FOR_EACH_FORMAT(MCC_DEFINE)
#undef MCC_DEFINE

extern "C" __attribute__((weak)) int64_t mcc_cpu_wide_registers(void) {
#ifdef __AVX512F__
  return 1;
#else
  return 0;
#endif
}
