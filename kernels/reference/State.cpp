// Scalar definitions of the kernels with a state: the recurrences as their papers write them.
#include "kernels/reference/State.h"

#include "kernels/reference/Reference.h"

#include <cmath>
#include <vector>

namespace mcc::reference {

double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

void conv(const Conv &conv, double *state, float *y, int64_t yStride) {
  const int64_t before = conv.taps - 1;
  std::vector<double> inputs(static_cast<size_t>(before + conv.tokens));
  for (int64_t c = 0; c < conv.channels; ++c) {
    for (int64_t i = 0; i < before; ++i)
      inputs[static_cast<size_t>(i)] = state[i * conv.channels + c];
    for (int64_t t = 0; t < conv.tokens; ++t)
      inputs[static_cast<size_t>(before + t)] = conv.x.row(t)[c];
    for (int64_t t = 0; t < conv.tokens; ++t) {
      double sum = conv.bias ? conv.bias[c] : 0;
      for (int64_t k = 0; k < conv.taps; ++k)
        sum += conv.weight[c * conv.taps + k] * inputs[static_cast<size_t>(t + k)];
      y[t * yStride + c] = static_cast<float>(activate(sum, conv.activation));
    }
    for (int64_t i = 0; i < before; ++i)
      state[i * conv.channels + c] = inputs[static_cast<size_t>(conv.tokens + i)];
  }
}

void selectiveScan(const SelectiveScan &scan, double *state, float *y, int64_t yStride) {
  for (int64_t t = 0; t < scan.tokens; ++t)
    for (int64_t c = 0; c < scan.channels; ++c) {
      const double time = softplus(scan.dt.row(t)[c]), value = scan.x.row(t)[c];
      double sum = scan.skip[c] * value;
      for (int64_t n = 0; n < scan.depth; ++n) {
        double &h = state[c * scan.depth + n];
        h = std::exp(time * scan.a[c * scan.depth + n]) * h + time * scan.b.row(t)[n] * value;
        sum += h * scan.c.row(t)[n];
      }
      y[t * yStride + c] = static_cast<float>(sum);
    }
}

void stateScan(const StateScan &scan, double *state, float *y, int64_t yStride) {
  for (int64_t t = 0; t < scan.tokens; ++t)
    for (int64_t head = 0; head < scan.heads; ++head) {
      const int64_t group = head / (scan.heads / scan.groups);
      const float *b = scan.b.row(t) + group * scan.depth, *c = scan.c.row(t) + group * scan.depth;
      double time = softplus(static_cast<double>(scan.dt.row(t)[head]) + scan.dtBias[head]);
      time = std::fmin(std::fmax(time, scan.timeMin), scan.timeMax);
      const double decay = std::exp(time * scan.a[head]);
      for (int64_t i = 0; i < scan.headDim; ++i) {
        const int64_t entry = head * scan.headDim + i;
        const double value = scan.x.row(t)[entry];
        double sum = scan.skip[head] * value;
        for (int64_t n = 0; n < scan.depth; ++n) {
          double &s = state[entry * scan.depth + n];
          s = decay * s + time * b[n] * value;
          sum += s * c[n];
        }
        y[t * yStride + entry] = static_cast<float>(sum);
      }
    }
}

// Returns x[0, count) divided by its length.
static std::vector<double> unitVector(const float *x, int64_t count) {
  std::vector<double> unit(x, x + count);
  double squares = 0;
  for (double value : unit)
    squares += value * value;
  for (double &value : unit)
    value /= std::sqrt(squares + 1e-6);
  return unit;
}

void deltaScan(const DeltaScan &scan, double *state, float *y, int64_t yStride) {
  const int64_t keyDim = scan.keyDim, valueDim = scan.valueDim;
  for (int64_t t = 0; t < scan.tokens; ++t)
    for (int64_t head = 0; head < scan.valueHeads; ++head) {
      const int64_t keyHead = head / (scan.valueHeads / scan.keyHeads);
      const std::vector<double> q = unitVector(scan.q.row(t) + keyHead * keyDim, keyDim);
      const std::vector<double> k = unitVector(scan.k.row(t) + keyHead * keyDim, keyDim);
      const double rate = softplus(static_cast<double>(scan.decay.row(t)[head]) + scan.dtBias[head]);
      const double decay = std::exp(scan.a[head] * rate), beta = 1 / (1 + std::exp(-scan.beta.row(t)[head]));
      double *s = state + head * keyDim * valueDim;
      for (int64_t j = 0; j < valueDim; ++j) {
        double known = 0, sum = 0;
        for (int64_t i = 0; i < keyDim; ++i)
          known += k[static_cast<size_t>(i)] * (s[i * valueDim + j] *= decay);
        const double change = beta * (scan.v.row(t)[head * valueDim + j] - known);
        for (int64_t i = 0; i < keyDim; ++i)
          sum += q[static_cast<size_t>(i)] * (s[i * valueDim + j] += k[static_cast<size_t>(i)] * change);
        y[t * yStride + head * valueDim + j] = static_cast<float>(sum / std::sqrt(static_cast<double>(keyDim)));
      }
    }
}

} // namespace mcc::reference
