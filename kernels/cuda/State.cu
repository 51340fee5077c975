// The kernels with a state: one thread a channel, or an entry of a head, which it takes through all tokens of the step.
//
// The recurrence is run token by token in the order of rows of the state, so that the cut of a prompt cannot change a bit.
// Parallel forms over tokens exist for the scans; they add in another order, and decode, where there is one token, is what
// these layers are chosen for.
#include "kernels/cuda/State.h"

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/math.cuh"

namespace mcc::cuda {
namespace {

constexpr int kStateThreads = 64;
constexpr int64_t kLanes = 16;

__device__ __forceinline__ void enterState() {
  if (threadIdx.x == 0)
    ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
}

__device__ __forceinline__ float sigmoid(float x) { return 1.0f / __fadd_rn(1.0f, expf(-x)); }

__global__ __launch_bounds__(kStateThreads) void conv_kernel(Conv conv, int64_t tokens) {
  enterState();
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kStateThreads + threadIdx.x;
  if (channel >= conv.channels)
    return;
  const int64_t before = conv.taps - 1, stateRow = divideUp(conv.channels, kLanes) * kLanes;
  const float *weight = conv.weight + channel / kLanes * kLanes * conv.taps + channel % kLanes;
  float *history = conv.state + channel;
  const auto input = [&](int64_t row) {
    return row < 0 ? history[(row + before) * stateRow] : conv.x[row * conv.xStride + channel];
  };
  for (int64_t t = 0; t < tokens; ++t) {
    float sum = conv.bias ? conv.bias[channel] : 0.0f;
    for (int64_t k = 0; k < conv.taps; ++k)
      sum = fmaf(weight[k * kLanes], input(t - before + k), sum);
    conv.y[t * conv.yStride + channel] = activate(sum, conv.activation);
  }
  for (int64_t row = 0; row < before; ++row) // forwards: a row moves to an earlier one
    history[row * stateRow] = input(tokens - before + row);
}

__global__ __launch_bounds__(kStateThreads) void selective_scan_kernel(SelectiveScan scan, int64_t tokens) {
  enterState();
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kStateThreads + threadIdx.x;
  if (channel >= scan.channels)
    return;
  const int64_t panel = channel / kLanes * kLanes * scan.depth + channel % kLanes;
  const float *rates = scan.a + panel;
  float *state = scan.state + panel;
  for (int64_t t = 0; t < tokens; ++t) {
    const float value = scan.x[t * scan.xStride + channel], time = softplus(scan.dt[t * scan.dtStride + channel]);
    const float added = time * value;
    const float *in = scan.b + t * scan.bStride, *out = scan.c + t * scan.cStride;
    float sum = 0.0f;
    for (int64_t n = 0; n < scan.depth; ++n) {
      const float next = fmaf(added, in[n], expf(time * rates[n * kLanes]) * state[n * kLanes]);
      state[n * kLanes] = next;
      sum = fmaf(next, out[n], sum);
    }
    scan.y[t * scan.yStride + channel] = fmaf(scan.skip[channel], value, sum);
  }
}

// Grid: (parts of a head, heads).
__global__ __launch_bounds__(kStateThreads) void state_scan_kernel(StateScan scan, int64_t tokens) {
  enterState();
  const int64_t entry = static_cast<int64_t>(blockIdx.x) * kStateThreads + threadIdx.x, head = blockIdx.y;
  if (entry >= scan.headDim)
    return;
  const int64_t panels = divideUp(scan.headDim, kLanes), column = head * scan.headDim + entry;
  const int64_t group = head / (scan.heads / scan.groups) * scan.depth;
  float *state = scan.state + (head * panels + entry / kLanes) * scan.depth * kLanes + entry % kLanes;
  for (int64_t t = 0; t < tokens; ++t) {
    float time = softplus(__fadd_rn(scan.dt[t * scan.dtStride + head], scan.dtBias[head]));
    time = time < scan.timeMin ? scan.timeMin : time;
    time = time > scan.timeMax ? scan.timeMax : time;
    const float decay = expf(time * scan.a[head]), value = scan.x[t * scan.xStride + column], added = time * value;
    const float *in = scan.b + t * scan.bStride + group, *out = scan.c + t * scan.cStride + group;
    float sum = 0.0f;
    for (int64_t n = 0; n < scan.depth; ++n) {
      const float next = fmaf(added, in[n], decay * state[n * kLanes]);
      state[n * kLanes] = next;
      sum = fmaf(next, out[n], sum);
    }
    scan.y[t * scan.yStride + column] = fmaf(scan.skip[head], value, sum);
  }
}

// Returns 1 / the Euclidean length of x[0, count).
__device__ float inverseLength(const float *x, int64_t count) {
  float squares = 0.0f;
  for (int64_t i = 0; i < count; ++i)
    squares = fmaf(x[i], x[i], squares);
  return 1.0f / sqrtf(__fadd_rn(squares, 1e-6f));
}

// Grid: (parts of a head, value heads).
__global__ __launch_bounds__(kStateThreads) void delta_scan_kernel(DeltaScan scan, int64_t tokens) {
  enterState();
  const int64_t entry = static_cast<int64_t>(blockIdx.x) * kStateThreads + threadIdx.x, head = blockIdx.y;
  if (entry >= scan.valueDim)
    return;
  const int64_t panels = divideUp(scan.valueDim, kLanes), column = head * scan.valueDim + entry;
  const int64_t keyColumn = head / (scan.valueHeads / scan.keyHeads) * scan.keyDim;
  const float scale = 1.0f / sqrtf(static_cast<float>(scan.keyDim));
  float *state = scan.state + (head * panels + entry / kLanes) * scan.keyDim * kLanes + entry % kLanes;
  for (int64_t t = 0; t < tokens; ++t) {
    const float *query = scan.q + t * scan.qStride + keyColumn, *key = scan.k + t * scan.kStride + keyColumn;
    const float queryFactor = inverseLength(query, scan.keyDim) * scale, keyFactor = inverseLength(key, scan.keyDim);
    const float rate = softplus(__fadd_rn(scan.decay[t * scan.decayStride + head], scan.dtBias[head]));
    const float decay = expf(scan.a[head] * rate);
    float known = 0.0f;
    for (int64_t i = 0; i < scan.keyDim; ++i) {
      const float kept = decay * state[i * kLanes];
      state[i * kLanes] = kept;
      known = fmaf(kept, key[i] * keyFactor, known);
    }
    const float change = __fadd_rn(scan.v[t * scan.vStride + column], -known) * sigmoid(scan.beta[t * scan.betaStride + head]);
    float sum = 0.0f;
    for (int64_t i = 0; i < scan.keyDim; ++i) {
      const float next = fmaf(change, key[i] * keyFactor, state[i * kLanes]);
      state[i * kLanes] = next;
      sum = fmaf(next, query[i] * queryFactor, sum);
    }
    scan.y[t * scan.yStride + column] = sum;
  }
}

dim3 gridOf(int64_t entries, int64_t heads = 1) {
  return dim3(static_cast<unsigned>(divideUp(entries, kStateThreads)), static_cast<unsigned>(heads));
}

} // namespace

Status launchConv(const Step &step, const Conv &conv, cudaStream_t stream) {
  if (conv.channels < 1 || conv.taps < 1 || (conv.taps > 1 && !conv.state))
    return kInvalidValue;
  return launch(conv_kernel, gridOf(conv.channels), dim3(kStateThreads), 0, stream, conv, step.tokens);
}

Status launchSelectiveScan(const Step &step, const SelectiveScan &scan, cudaStream_t stream) {
  if (scan.channels < 1 || scan.depth < 1)
    return kInvalidValue;
  return launch(selective_scan_kernel, gridOf(scan.channels), dim3(kStateThreads), 0, stream, scan, step.tokens);
}

Status launchStateScan(const Step &step, const StateScan &scan, cudaStream_t stream) {
  if (scan.heads < 1 || scan.headDim < 1 || scan.depth < 1 || scan.groups < 1 || scan.heads % scan.groups)
    return kInvalidValue;
  return launch(state_scan_kernel, gridOf(scan.headDim, scan.heads), dim3(kStateThreads), 0, stream, scan, step.tokens);
}

Status launchDeltaScan(const Step &step, const DeltaScan &scan, cudaStream_t stream) {
  if (scan.valueHeads < 1 || scan.keyHeads < 1 || scan.valueHeads % scan.keyHeads || scan.keyDim < 1 || scan.valueDim < 1)
    return kInvalidValue;
  return launch(delta_scan_kernel, gridOf(scan.valueDim, scan.valueHeads), dim3(kStateThreads), 0, stream, scan, step.tokens);
}

} // namespace mcc::cuda
