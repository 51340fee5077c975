// Scalar definitions of the kernels. Clarity first: nothing here is tuned.
#include "kernels/reference/Reference.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace mcc::reference {

double activate(double x, Activation activation) {
  switch (activation) {
  case Activation::Silu:
    return x / (1 + std::exp(-x));
  case Activation::GeluErf:
    return x * 0.5 * std::erfc(-x * 0.70710678118654752);
  case Activation::GeluTanh:
    return x * 0.5 * (1 + std::tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
  case Activation::GeluQuick:
    return x / (1 + std::exp(-1.702 * x));
  case Activation::Relu:
    return x < 0 ? 0 : x;
  case Activation::Relu2:
    return x < 0 ? 0 : x * x;
  case Activation::Sigmoid:
    return 1 / (1 + std::exp(-x));
  case Activation::None:
  case Activation::Xielu: // takes weights; not an epilogue
    break;
  }
  return x;
}

static double softplus(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }

double xielu(double x, const float *parameters) {
  const double beta = parameters[2], positive = softplus(parameters[0]), negative = beta + softplus(parameters[1]);
  if (x > 0)
    return positive * x * x + beta * x;
  return negative * (std::expm1(std::min(x, static_cast<double>(parameters[3]))) - x) + beta * x;
}

double clamp(double x, double limit) {
  if (x > limit)
    return limit;
  return x < -limit ? -limit : x;
}

float roundToBFloat16(float x) {
  if (x == 0)
    return x;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(x), -126) - 7); // distance of two bfloat16 there
  return static_cast<float>(std::nearbyint(x / unit) * unit);
}

void norm(const Norm &norm, const float *x, float *y, int64_t cols) {
  double mean = 0, squares = 0;
  if (norm.kind == 1) {
    for (int64_t i = 0; i < cols; ++i)
      mean += x[i];
    mean /= static_cast<double>(cols);
  }
  for (int64_t i = 0; i < cols; ++i)
    squares += (x[i] - mean) * (x[i] - mean);
  const double factor = norm.kind < 0 ? 1 : 1 / std::sqrt(squares / static_cast<double>(cols) + norm.eps);
  for (int64_t i = 0; i < cols; ++i) {
    double value = (x[i] - mean) * factor;
    if (norm.kind >= 0 && norm.weight)
      value *= norm.weight[i];
    if (norm.kind >= 0 && norm.bias)
      value += norm.bias[i];
    y[i] = static_cast<float>(value);
  }
}

void groupNorm(const Norm &parameters, const float *x, float *y, int64_t cols, int64_t groups, bool groupWeights) {
  const int64_t width = cols / groups;
  for (int64_t group = 0; group < groups; ++group) {
    Norm own = parameters;
    if (groupWeights && own.weight)
      own.weight += group * width;
    if (groupWeights && own.bias)
      own.bias += group * width;
    norm(own, x + group * width, y + group * width, width);
  }
}

void addPositions(const float *x, const float *table, float *y, int64_t tokens, int64_t cols, int64_t first) {
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t i = 0; i < cols; ++i)
      y[t * cols + i] = x[t * cols + i] + table[(first + t) * cols + i];
}

static double dot(const float *weight, const float *x, int64_t cols) {
  double sum = 0;
  for (int64_t k = 0; k < cols; ++k)
    sum += static_cast<double>(weight[k]) * x[k];
  return sum;
}

void linear(const Linear &linear, float *y, int64_t yStride) {
  std::vector<float> row(static_cast<size_t>(linear.cols));
  for (int64_t t = 0; t < linear.tokens; ++t) {
    norm(linear.norm, linear.x + t * linear.xStride, row.data(), linear.cols);
    for (int64_t r = 0; r < linear.rows; ++r) {
      double sum = dot(linear.weight + r * linear.cols, row.data(), linear.cols);
      sum = activate(sum + (linear.bias ? linear.bias[r] : 0), linear.activation);
      if (linear.up)
        sum *= dot(linear.up + r * linear.cols, row.data(), linear.cols) + (linear.upBias ? linear.upBias[r] : 0);
      sum *= linear.scale;
      if (linear.residual)
        sum += linear.residual[t * linear.residualStride + r];
      y[t * yStride + r] = static_cast<float>(sum);
    }
  }
}

void rotary(const float *frequencies, float *cosSin, int64_t tokens, int64_t position, int64_t pairs, float factor) {
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t i = 0; i < pairs; ++i) {
      const float angle = static_cast<float>(position + t) * frequencies[i];
      cosSin[t * 2 * pairs + i] = static_cast<float>(factor * std::cos(static_cast<double>(angle)));
      cosSin[t * 2 * pairs + pairs + i] = static_cast<float>(factor * std::sin(static_cast<double>(angle)));
    }
}

void rotate(float *head, const float *cosSin, int64_t pairs, int64_t pairing) {
  for (int64_t i = 0; i < pairs; ++i) {
    const int64_t first = pairing == 0 ? i : 2 * i, second = pairing == 0 ? i + pairs : 2 * i + 1;
    const double a = head[first], b = head[second], c = cosSin[i], s = cosSin[pairs + i];
    head[first] = static_cast<float>(a * c - b * s);
    head[second] = static_cast<float>(b * c + a * s);
  }
}

int64_t firstPosition(int64_t last, int64_t window, int64_t chunk) {
  int64_t first = last;
  while (first > 0 && (window == 0 || last - (first - 1) < window) && (chunk == 0 || (first - 1) / chunk == last / chunk))
    --first;
  return first;
}

static double slopeTerm(const Attention &attention, int64_t position) {
  if (!attention.slopeRounded)
    return static_cast<double>(attention.slope) * static_cast<double>(position);
  return roundToBFloat16(roundToBFloat16(attention.slope) * roundToBFloat16(static_cast<float>(position)));
}

void attend(const Attention &attention, float *y) {
  std::vector<double> p(static_cast<size_t>(attention.last + 1));
  double largest = attention.sink ? *attention.sink : -INFINITY, total = 0;
  for (int64_t j = attention.first; j <= attention.last; ++j) {
    double score = attention.scale * dot(attention.keys + j * attention.headDim, attention.q, attention.headDim);
    if (attention.softcap > 0)
      score = attention.softcap * std::tanh(score / attention.softcap);
    score += slopeTerm(attention, j);
    p[static_cast<size_t>(j)] = score;
    largest = std::fmax(largest, score);
  }
  for (int64_t j = attention.first; j <= attention.last; ++j)
    total += p[static_cast<size_t>(j)] = std::exp(p[static_cast<size_t>(j)] - largest);
  if (attention.sink)
    total += std::exp(*attention.sink - largest);
  for (int64_t d = 0; d < attention.headDim; ++d) {
    double sum = 0;
    for (int64_t j = attention.first; j <= attention.last; ++j)
      sum += p[static_cast<size_t>(j)] * attention.values[j * attention.headDim + d];
    y[d] = static_cast<float>(sum / total);
  }
}

int64_t argmax(const float *values, int64_t count) {
  int64_t best = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (std::isnan(values[i]))
      return -1;
    if (values[i] > values[best])
      best = i;
  }
  return best;
}

} // namespace mcc::reference
