// conv2d and pool2d against the scalar reference: every trap of a window's arithmetic, odd sizes, any number of
// threads.
#include "Harness.h"

#include "kernels/reference/Image.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace mcc;
using namespace mcc::test;
using reference::WindowAxis;

namespace {

// Outputs of an axis whose input is padded.
WindowAxis axis(int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t padBegin, int64_t padEnd) {
  return {
      in,    (in + padBegin + padEnd - dilation * (kernel - 1) - 1) / stride + 1, kernel, stride, dilation, padBegin,
      padEnd};
}

struct Shape {
  int64_t batch, channels, outChannels, groups;
  WindowAxis height, width;
};

// The kernel's result by `threads` workers; what nobody writes stays NaN.
std::vector<float> convolve(const reference::Conv2d &c, const float *packed, size_t outputs, int64_t threads) {
  std::vector<float> y(outputs, NAN);
  runStep(threads, 1, 0, 0, [&](const MccStep *step) {
    mcc_cpu_conv2d(step, 1, c.x, packed, c.scale, c.bias, c.residual, y.data(), c.batch, c.channels, c.height.in,
                   c.width.in, c.outChannels, c.height.out, c.width.out, c.height.kernel, c.width.kernel,
                   c.height.stride, c.width.stride, c.height.padBegin, c.width.padBegin, c.height.dilation,
                   c.width.dilation, c.groups, static_cast<int64_t>(c.activation));
  });
  return y;
}

void checkConv(const Shape &s, uint64_t seed, bool scaled, bool biased, bool residual, Activation activation) {
  CAPTURE(seed);
  Random random(seed);
  const int64_t columns = s.channels / s.groups * s.height.kernel * s.width.kernel;
  const std::vector<float> x = random.floats(s.batch * s.channels * s.height.in * s.width.in),
                           scales = random.floats(s.outChannels), biases = random.floats(s.outChannels);
  const size_t outputs = static_cast<size_t>(s.batch * s.outChannels * s.height.out * s.width.out);
  const std::vector<float> added = random.floats(static_cast<int64_t>(outputs));
  const Weights weights = randomWeights(Format::F32, s.outChannels, columns, seed + 1);
  reference::Conv2d conv = {s.batch,  s.channels, s.outChannels, s.groups,
                            s.height, s.width,    x.data(),      weights.values.data()};
  conv.scale = scaled ? scales.data() : nullptr, conv.bias = biased ? biases.data() : nullptr;
  conv.residual = residual ? added.data() : nullptr, conv.activation = activation;
  std::vector<float> expected(outputs);
  reference::conv2d(conv, expected.data());
  const float *packed = reinterpret_cast<const float *>(weights.packed.data());
  const std::vector<float> first = convolve(conv, packed, outputs, 1);
  float largest = 0;
  for (float value : expected)
    largest = std::max(largest, std::fabs(value));
  CHECK(largestDifference(first.data(), 1, expected.data(), 1, static_cast<int64_t>(outputs), 1) <
        1e-5 * std::max(1.0f, largest));
  for (int64_t threads : {2, 5})
    CHECK(sameBits(convolve(conv, packed, outputs, threads), first));
}

} // namespace

TEST_CASE("conv2d: strides, pads at either end, dilations and groups") {
  const Shape shapes[] = {
      {1, 3, 5, 1, axis(7, 3, 1, 1, 1, 1), axis(9, 3, 1, 1, 1, 1)},     // the plain one
      {2, 3, 33, 1, axis(23, 7, 2, 1, 3, 3), axis(21, 7, 2, 1, 3, 3)},  // a stem
      {1, 4, 16, 1, axis(11, 3, 2, 1, 0, 1), axis(10, 5, 1, 1, 2, 0)},  // pads at one end
      {1, 2, 17, 1, axis(13, 3, 1, 3, 2, 2), axis(14, 3, 2, 2, 1, 3)},  // each axis its own dilation, with a stride
      {1, 6, 32, 2, axis(5, 3, 1, 1, 1, 1), axis(19, 1, 1, 1, 0, 0)},   // groups of a panel each
      {1, 6, 9, 3, axis(6, 2, 1, 1, 0, 0), axis(7, 3, 1, 1, 1, 1)},     // groups that share a panel
      {2, 21, 21, 21, axis(9, 3, 1, 1, 1, 1), axis(37, 3, 1, 1, 1, 1)}, // depthwise
      {1, 8, 24, 8, axis(12, 5, 2, 1, 2, 2), axis(12, 5, 2, 1, 2, 2)},  // a channel multiplier
      {1, 3, 20, 1, axis(12, 2, 5, 1, 0, 0), axis(17, 3, 4, 1, 0, 0)},  // strides greater than the window
      {3, 40, 50, 1, axis(1, 1, 1, 1, 0, 0), axis(1, 1, 1, 1, 0, 0)},   // one cell
      {1, 5, 18, 1, axis(1, 1, 1, 1, 0, 0), axis(50, 4, 3, 2, 5, 4)},   // one dimension
      {1, 1, 1, 1, axis(2, 3, 1, 1, 2, 2), axis(1, 3, 1, 1, 4, 4)},     // windows that lie in the pads as a whole
  };
  uint64_t seed = 100;
  for (const Shape &shape : shapes) {
    checkConv(shape, seed++, false, false, false, Activation::None);
    checkConv(shape, seed++, true, true, true, Activation::Relu);
    checkConv(shape, seed++, false, true, false, Activation::Silu);
  }
}

TEST_CASE("pool2d: the largest and the mean, with and without pads") {
  const std::pair<WindowAxis, WindowAxis> shapes[] = {
      {axis(8, 2, 2, 1, 0, 0), axis(9, 3, 2, 1, 1, 1)},  {axis(7, 3, 2, 1, 1, 1), axis(11, 2, 3, 1, 0, 1)},
      {axis(10, 3, 1, 2, 1, 2), axis(6, 2, 1, 3, 0, 0)}, {axis(5, 5, 1, 1, 0, 0), axis(13, 13, 1, 1, 0, 0)},
      {{7, 4, 3, 2, 1, 0, 0}, {7, 3, 4, 3, 1, 1, 1}}, // rounded up: the last window reaches beyond the pads
  };
  uint64_t seed = 300;
  for (const auto &[height, width] : shapes)
    for (reference::Pool2d::Kind kind : {reference::Pool2d::Max, reference::Pool2d::Mean})
      for (bool includePad : {false, true}) {
        CAPTURE(seed);
        const int64_t planes = 3;
        std::vector<float> x = Random(seed++).floats(planes * height.in * width.in);
        x[5] = kind == reference::Pool2d::Max ? NAN : 1.0f;
        std::vector<float> expected(static_cast<size_t>(planes * height.out * width.out));
        reference::pool2d({kind, planes, height, width, includePad, x.data()}, expected.data());
        for (int64_t threads : {1, 4}) {
          std::vector<float> y(expected.size(), 99.0f);
          runStep(threads, 1, 0, 0, [&](const MccStep *step) {
            mcc_cpu_pool2d(step, 1, x.data(), y.data(), kind, planes, height.in, width.in, height.out, width.out,
                           height.kernel, width.kernel, height.stride, width.stride, height.padBegin, width.padBegin,
                           height.padEnd, width.padEnd, height.dilation, width.dilation, includePad);
          });
          for (size_t i = 0; i < y.size(); ++i)
            CHECK((std::isnan(expected[i]) ? std::isnan(y[i]) : std::fabs(y[i] - expected[i]) < 1e-6f));
        }
      }
}
