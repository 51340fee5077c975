// Mixtures of experts on the GPU, and heads put together.
//
// `experts`: a block computes one panel of one slot of one token, as linear_chain.cu computes a panel: 16 slices of 32-column
// groups, added in order. A token's outputs depend on nothing but its row and its expert. A weight is read once for each
// token that chose its expert: right for decode, where the chosen experts are all that is read.
#include "kernels/cuda/Experts.h"

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/panel_decode.cuh"

namespace mcc::cuda {
namespace {

constexpr int kRows = 16, kSlices = 16, kGroupCols = 32, kThreads = kRows * kSlices;
constexpr int kMostExperts = 1024;

__device__ __forceinline__ void enterExperts() {
  if (threadIdx.x == 0)
    ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
}

// Replaces values[0, count) by exp(value - maximum); returns the sum. One thread.
__device__ float exponentials(float *values, int64_t count) {
  float most = values[0];
  for (int64_t i = 1; i < count; ++i)
    most = values[i] > most ? values[i] : most;
  float sum = 0.0f;
  for (int64_t i = 0; i < count; ++i) {
    values[i] = expf(__fadd_rn(values[i], -most));
    sum = __fadd_rn(sum, values[i]);
  }
  return sum;
}

__device__ float groupRank(const Route &route, const float *ranks, int64_t group) {
  const int64_t size = route.experts / route.groups;
  float best = -INFINITY, second = -INFINITY;
  for (int64_t i = group * size; i < (group + 1) * size; ++i) {
    const float rank = ranks[i];
    second = rank > best ? best : rank > second ? rank : second;
    best = rank > best ? rank : best;
  }
  return route.groupScore == 0 ? best : __fadd_rn(best, second);
}

// Makes the ranks of experts outside the best groups -infinity; `kept` is scratch for a rank a group.
__device__ void keepBestGroups(const Route &route, float *ranks, float *kept) {
  const int64_t size = route.experts / route.groups;
  for (int64_t group = 0; group < route.groups; ++group)
    kept[group] = groupRank(route, ranks, group);
  for (int64_t group = 0; group < route.groups; ++group) {
    int64_t better = 0;
    for (int64_t other = 0; other < route.groups; ++other)
      better += kept[other] > kept[group] || (kept[other] == kept[group] && other < group);
    for (int64_t i = group * size; better >= route.groupsChosen && i < (group + 1) * size; ++i)
      ranks[i] = -INFINITY;
  }
}

// One warp a token; sums and choices are those of its first thread, the others fetch. A router is a few hundred numbers.
__global__ __launch_bounds__(32) void route_kernel(Route route) {
  __shared__ float scores[kMostExperts], ranks[kMostExperts], groups[kMostExperts];
  enterExperts();
  const float *logits = route.x + static_cast<int64_t>(blockIdx.x) * route.xStride;
  float *y = route.y + static_cast<int64_t>(blockIdx.x) * route.yStride;
  for (int64_t i = threadIdx.x; i < route.experts; i += 32)
    scores[i] = route.scoring == 2 ? 1.0f / __fadd_rn(1.0f, expf(-logits[i])) : logits[i];
  __syncwarp();
  if (threadIdx.x == 0 && route.scoring == 0) {
    const float sum = exponentials(scores, route.experts);
    for (int64_t i = 0; i < route.experts; ++i)
      scores[i] = scores[i] / sum;
  }
  __syncwarp();
  for (int64_t i = threadIdx.x; i < route.experts; i += 32)
    ranks[i] = route.bias ? __fadd_rn(scores[i], route.bias[i]) : scores[i];
  __syncwarp();
  if (threadIdx.x != 0)
    return;
  if (route.groups > 1)
    keepBestGroups(route, ranks, groups);
  for (int64_t slot = 0; slot < route.chosen; ++slot) {
    int64_t best = 0;
    for (int64_t i = 1; i < route.experts; ++i)
      best = ranks[i] > ranks[best] ? i : best;
    y[slot] = scores[best];
    y[route.chosen + slot] = static_cast<float>(best);
    ranks[best] = -INFINITY;
  }
  float factor = route.scale;
  if (route.scoring == 1) {
    const float sum = exponentials(y, route.chosen);
    for (int64_t slot = 0; slot < route.chosen; ++slot)
      y[slot] = y[slot] / sum;
  }
  if (route.normalize) {
    float sum = route.scoring == 2 ? 1e-20f : 0.0f;
    for (int64_t slot = 0; slot < route.chosen; ++slot)
      sum = __fadd_rn(sum, y[slot]);
    factor = factor / sum;
  }
  for (int64_t slot = 0; slot < route.chosen; ++slot)
    y[slot] = y[slot] * factor;
}

// The sum of one panel for one row of x: slices added in order. Valid in threads below kRows.
template <class PanelFormat>
__device__ float multiplyPanel(const uint8_t *panel, const float *x, int cols, float (*partial)[kRows]) {
  const int row = threadIdx.x % kRows, slice = threadIdx.x / kRows;
  float chain = 0.0f;
  for (int begin = slice * kGroupCols; begin < cols; begin += kSlices * kGroupCols) {
    const int end = min(begin + kGroupCols, cols);
    for (int column = begin; column < end; ++column)
      chain = fmaf(PanelFormat::value(panel, row, column), x[column], chain);
  }
  partial[slice][row] = chain;
  __syncthreads();
  float sum = partial[0][row];
  for (int s = 1; s < kSlices; ++s)
    sum = __fadd_rn(sum, partial[s][row]);
  __syncthreads();
  return sum;
}

__device__ float finishGated(const Experts &launch, float gate, float up) {
  if (launch.limit != 0.0f) { // a NaN stays
    gate = gate > launch.limit ? launch.limit : gate;
    up = up > launch.limit ? launch.limit : up < -launch.limit ? -launch.limit : up;
  }
  if (launch.upOffset != 0.0f)
    up = __fadd_rn(up, launch.upOffset);
  return activate(gate, launch.activation) * up;
}

// Grid: (panels of outputs, slots, tokens).
template <class PanelFormat>
__global__ __launch_bounds__(kThreads) void experts_kernel(const __grid_constant__ Experts launch) {
  __shared__ float partial[kSlices][kRows];
  enterExperts();
  const int64_t token = blockIdx.z, slot = blockIdx.y, unit = blockIdx.x;
  const int64_t expert = static_cast<int64_t>(launch.picks[token * launch.picksStride + launch.chosen + slot]);
  const int64_t perUnit = launch.gated ? 2 : 1, outputs = launch.rows * perUnit;
  const int64_t bytes = panelBytes<PanelFormat>(launch.cols);
  const uint8_t *weight = launch.weight + (expert * (outputs / kRows) + unit * perUnit) * bytes;
  const float *x = launch.x + token * launch.xStride + (launch.ownRows ? slot * launch.cols : 0);
  const float *bias = launch.bias ? launch.bias + expert * outputs + unit * perUnit * kRows : nullptr;
  const int row = threadIdx.x % kRows;
  float value = multiplyPanel<PanelFormat>(weight, x, static_cast<int>(launch.cols), partial);
  value = bias ? __fadd_rn(value, bias[row]) : value;
  if (launch.gated) {
    float up = multiplyPanel<PanelFormat>(weight + bytes, x, static_cast<int>(launch.cols), partial);
    up = bias ? __fadd_rn(up, bias[kRows + row]) : up;
    value = finishGated(launch, value, up);
  } else {
    value = activate(value, launch.activation);
  }
  if (threadIdx.x < kRows)
    launch.y[token * launch.yStride + slot * launch.rows + unit * kRows + row] = value;
}

// Grid: (columns, tokens).
__global__ __launch_bounds__(kThreads) void combine_kernel(Combine combine) {
  enterExperts();
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x, token = blockIdx.y;
  if (column >= combine.cols)
    return;
  const float *x = combine.x + token * combine.xStride + column, *weights = combine.weights + token * combine.weightsStride;
  float sum = 0.0f;
  for (int64_t slot = 0; slot < combine.slots; ++slot)
    sum = fmaf(x[slot * combine.cols], weights[slot], sum);
  combine.y[token * combine.yStride + column] = sum;
}

// Grid: (features, tokens).
__global__ __launch_bounds__(kThreads) void assemble_kernel(Assemble assemble) {
  enterExperts();
  const int64_t feature = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x, token = blockIdx.y;
  if (feature >= assemble.heads * assemble.headDim)
    return;
  const int64_t head = feature / assemble.headDim, entry = feature % assemble.headDim;
  float value = 0.0f;
  if (entry < assemble.first)
    value = assemble.a[token * assemble.aStride + head * assemble.aHead + entry];
  else if (entry < assemble.first + assemble.second)
    value = assemble.b[token * assemble.bStride + head * assemble.bHead + entry - assemble.first];
  assemble.y[token * assemble.yStride + feature] = value;
}

dim3 gridOf(int64_t columns, int64_t tokens) {
  return dim3(static_cast<unsigned>(divideUp(columns, kThreads)), static_cast<unsigned>(tokens));
}

} // namespace

Status launchRoute(const Step &step, const Route &route, cudaStream_t stream) {
  if (route.experts < 1 || route.experts > kMostExperts || route.chosen < 1 || route.chosen > route.experts || route.groups < 1 ||
      route.experts % route.groups)
    return kInvalidValue;
  return launch(route_kernel, dim3(static_cast<unsigned>(step.tokens)), dim3(32), 0, stream, route);
}

Status launchExperts(const Step &step, const Experts &experts, cudaStream_t stream) {
  if (experts.rows < 1 || experts.rows % kRows || experts.cols < 1 || experts.chosen < 1)
    return kInvalidValue;
  const dim3 grid(static_cast<unsigned>(experts.rows / kRows), static_cast<unsigned>(experts.chosen), static_cast<unsigned>(step.tokens));
  return withPanelFormat(experts.format,
                         [&]<class PanelFormat>() { return launch(experts_kernel<PanelFormat>, grid, dim3(kThreads), 0, stream, experts); });
}

Status launchCombine(const Step &step, const Combine &combine, cudaStream_t stream) {
  if (combine.cols < 1 || combine.slots < 1)
    return kInvalidValue;
  return launch(combine_kernel, gridOf(combine.cols, step.tokens), dim3(kThreads), 0, stream, combine);
}

Status launchAssemble(const Step &step, const Assemble &assemble, cudaStream_t stream) {
  if (assemble.heads < 1 || assemble.headDim < 1 || (assemble.second > 0 && !assemble.b))
    return kInvalidValue;
  return launch(assemble_kernel, gridOf(assemble.heads * assemble.headDim, step.tokens), dim3(kThreads), 0, stream, assemble);
}

} // namespace mcc::cuda
