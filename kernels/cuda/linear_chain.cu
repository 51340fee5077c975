// `linear` and `logits` by f32 multiply-adds, for the formats that do not go to the tensor cores.
//
// A block of 256 threads computes one panel of 16 rows (a gate and its up panel where gated): thread = 16 rows x 16
// slices; slice s takes the groups of 32 columns g = s mod 16, in order, for every token. Slices are then added in
// order. x is read as it is: a norm comes before. Weights are decoded one by one; expected: bound by that decoding,
// some tenths of the read bandwidth.
#include "kernels/cuda/linear_epilogue.cuh"

#include "kernels/cuda/panel_decode.cuh"

namespace mcc::cuda {

namespace {

constexpr int kSlices = 16, kGroupCols = 32, kChainThreads = kSlices * kPanel;

// The sums of one panel: slices added in order into sums[token][row].
template <class PanelFormat, int tokens>
__device__ void multiplyPanel(const LinearLaunch &launch, int64_t panel, float (*partial)[tokens][kPanel],
                              float (*sums)[kPanel]) {
  const int row = threadIdx.x % kPanel, slice = threadIdx.x / kPanel;
  const uint8_t *weights = launch.weight + panel * launch.panelBytes;
  float chain[tokens] = {};
  for (int begin = slice * kGroupCols; begin < launch.cols; begin += kSlices * kGroupCols) {
    const int end = min(begin + kGroupCols, launch.cols);
    for (int column = begin; column < end; ++column) {
      const float weight = PanelFormat::value(weights, row, column);
#pragma unroll
      for (int t = 0; t < tokens; ++t)
        if (t < launch.tokens)
          chain[t] = fmaf(weight, launch.x[t * launch.xStride + column], chain[t]);
    }
  }
#pragma unroll
  for (int t = 0; t < tokens; ++t)
    partial[slice][t][row] = chain[t];
  __syncthreads();
  for (int t = slice; t < tokens; t += kSlices) {
    float sum = partial[0][t][row];
    for (int s = 1; s < kSlices; ++s)
      sum += partial[s][t][row];
    sums[t][row] = sum;
  }
  __syncthreads();
}

template <class PanelFormat, int tokens>
__global__ __launch_bounds__(kChainThreads) void linear_chain_kernel(const __grid_constant__ LinearLaunch launch) {
  __shared__ float partial[kSlices][tokens][kPanel];
  __shared__ float sums[2][tokens][kPanel];
  if (threadIdx.x == 0)
    ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  const int perUnit = launch.gated ? 2 : 1, lane = threadIdx.x % kPanel;
  Partial best = {0.0f, -1, 0, 0};
  for (int unit = blockIdx.x; unit < launch.panels / perUnit; unit += gridDim.x) {
    for (int p = 0; p < perUnit; ++p)
      multiplyPanel<PanelFormat, tokens>(launch, static_cast<int64_t>(unit) * perUnit + p, partial, sums[p]);
    const int row = unit * kPanel + lane;
    for (int token = threadIdx.x / kPanel; token < launch.tokens && row < launch.rows; token += kSlices) {
      float value = finishSums(launch, sums[0][token][lane], sums[1][token][lane], lane, row, token);
      if (launch.partials)
        value = finishLogit(launch, value, row, best);
      launch.y[token * launch.yStride + row] = value;
    }
    __syncthreads();
  }
  if (launch.partials)
    storeBest(launch, best, threadIdx.x);
}

template <class PanelFormat, int tokens>
Status start(const LinearLaunch &launch, cudaStream_t stream) {
  const int64_t units = launch.panels / (launch.gated ? 2 : 1);
  const int64_t most = launch.partials ? kLogitPartials : 8 * multiprocessors();
  return mcc::cuda::launch(linear_chain_kernel<PanelFormat, tokens>,
                           dim3(static_cast<unsigned>(units < most ? units : most)), dim3(kChainThreads), 0, stream,
                           launch);
}

} // namespace

Status launchChain(Format format, const LinearLaunch &launch, cudaStream_t stream) {
  return withPanelFormat(format, [&]<class PanelFormat>() {
    if (launch.tokens == 1)
      return start<PanelFormat, 1>(launch, stream);
    return launch.tokens <= 4 ? start<PanelFormat, 4>(launch, stream) : start<PanelFormat, 16>(launch, stream);
  });
}

} // namespace mcc::cuda
