// Splitting work over the threads of a step: static, contiguous, by output.
#pragma once

#include "kernels/Step.h"
#include "kernels/cpu/Vector.h"

namespace mcc::cpu {

/// A half-open range of items.
struct Range {
  int64_t begin, end;
};

/// Returns this thread's share of `count` items; the shares cover all items and differ by at most one.
MCC_INLINE Range shareOf(const MccStep *step, int64_t count) {
  return {count * step->thread / step->threads, count * (step->thread + 1) / step->threads};
}

} // namespace mcc::cpu
