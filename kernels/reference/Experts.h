// Mixtures of experts in plain scalar loops (KernelTable.def: route, experts, combine) and the assembly of heads (assemble).
//
// Everything is double between the inputs and the rounded result.
#pragma once

#include "kernels/Activation.h"

#include <cstdint>
#include <vector>

namespace mcc::reference {

/// A router; see KernelTable.def, `route`.
struct Router {
  int64_t experts = 0, chosen = 0;
  int64_t scoring = 0; ///< 0 softmax, 1 softmax over the chosen, 2 sigmoid
  bool normalize = false;
  int64_t groups = 1, groupsChosen = 1, groupScore = 0;
  double scale = 1;
};

/// An expert and its weight.
struct Pick {
  int64_t expert = 0;
  double weight = 0;
};

/// Returns the choice for one token's logits [experts]; bias [experts] may be null.
std::vector<Pick> route(const Router &router, const float *logits, const float *bias);

/// One expert's linear.
struct Expert {
  int64_t rows = 0, cols = 0;
  const float *weight = nullptr; ///< [rows, cols]; the gate's where `up` is set
  const float *up = nullptr;     ///< [rows, cols]
  const float *bias = nullptr, *upBias = nullptr; ///< [rows] or null
  Activation activation = Activation::None;
  double limit = 0, upOffset = 0; ///< of a gated pair
};

/// y[0, rows) for one row x[0, cols).
void expert(const Expert &expert, const float *x, float *y);

/// y[0, cols) = sum over slots of weights[slot] * x[slot * cols + i].
void combine(const float *weights, const float *x, float *y, int64_t slots, int64_t cols);

} // namespace mcc::reference
