// Launchers of route, experts, combine and assemble (kernels/KernelTable.def): mixtures of experts, and heads put together.
#pragma once

#include "kernels/Format.h"
#include "kernels/cuda/Launch.h"

namespace mcc::cuda {

/// y[t] = weights and numbers of the chosen experts. At most 1024 experts.
struct Route {
  const float *x = nullptr, *bias = nullptr; ///< bias may be null
  float *y = nullptr;
  int64_t experts = 0, chosen = 0, scoring = 0;
  bool normalize = false;
  int64_t groups = 1, groupsChosen = 1, groupScore = 0, xStride = 0, yStride = 0;
  float scale = 1.0f;
};
Status launchRoute(const Step &step, const Route &route, cudaStream_t stream);

/// y[t, s, :] = the linear of the expert that token t chose s-th.
struct Experts {
  Format format = Format::BF16;
  const float *x = nullptr, *picks = nullptr;
  const uint8_t *weight = nullptr;
  const float *bias = nullptr; ///< may be null
  float *y = nullptr;
  int64_t experts = 0, chosen = 0, rows = 0, cols = 0;
  bool ownRows = false; ///< x has a row for every slot
  int64_t xStride = 0, picksStride = 0, yStride = 0, activation = 0;
  bool gated = false;
  float limit = 0.0f, upOffset = 0.0f;
};
Status launchExperts(const Step &step, const Experts &experts, cudaStream_t stream);

/// y[t, :] = sum over slots, in order, of weights[t, s] * x[t, s, :].
struct Combine {
  const float *weights = nullptr, *x = nullptr;
  float *y = nullptr;
  int64_t slots = 0, cols = 0, weightsStride = 0, xStride = 0, yStride = 0;
};
Status launchCombine(const Step &step, const Combine &combine, cudaStream_t stream);

/// y[t, h, :] = [first of a, second of b, zeros].
struct Assemble {
  const float *a = nullptr, *b = nullptr; ///< b may be null
  float *y = nullptr;
  int64_t heads = 0, headDim = 0, first = 0, second = 0, aHead = 0, bHead = 0, aStride = 0, bStride = 0, yStride = 0;
};
Status launchAssemble(const Step &step, const Assemble &assemble, cudaStream_t stream);

} // namespace mcc::cuda
