// conv2d and pool2d on the GPU against the CPU's, which have been compared with the scalar reference.
#include "Device.h"

#include "kernels/cuda/Image.h"
#include "test/unit/kernels/Harness.h"

using namespace mcc;
using namespace mcc::test;

namespace {

int64_t outputsOf(int64_t in, int64_t pads, int64_t kernel, int64_t stride, int64_t dilation) {
  return (in + pads - dilation * (kernel - 1) - 1) / stride + 1;
}

void checkConv(cuda::Conv2d c, uint64_t seed) {
  CAPTURE(seed);
  // Pads at the ends are one less than at the beginnings.
  c.outHeight = outputsOf(c.height, 2 * c.padTop - (c.padTop > 0), c.kernelH, c.strideH, c.dilationH);
  c.outWidth = outputsOf(c.width, 2 * c.padLeft - (c.padLeft > 0), c.kernelW, c.strideW, c.dilationW);
  Random random(seed);
  const int64_t outputs = c.batch * c.outChannels * c.outHeight * c.outWidth;
  const std::vector<float> x = random.floats(c.batch * c.channels * c.height * c.width),
                           scale = random.floats(c.outChannels), bias = random.floats(c.outChannels),
                           residual = random.floats(outputs);
  const Weights weights =
      randomWeights(Format::F32, c.outChannels, c.channels / c.groups * c.kernelH * c.kernelW, seed + 1);
  std::vector<float> expected(static_cast<size_t>(outputs));
  runStep(1, 1, 0, 0, [&](const MccStep *step) {
    mcc_cpu_conv2d(step, 1, x.data(), reinterpret_cast<const float *>(weights.packed.data()), scale.data(), bias.data(),
                   residual.data(), expected.data(), c.batch, c.channels, c.height, c.width, c.outChannels, c.outHeight,
                   c.outWidth, c.kernelH, c.kernelW, c.strideH, c.strideW, c.padTop, c.padLeft, c.dilationH,
                   c.dilationW, c.groups, c.activation);
  });
  const DeviceArray<float> deviceX(x), deviceScale(scale), deviceBias(bias), deviceResidual(residual),
      y(static_cast<size_t>(outputs));
  const DeviceArray<uint8_t> deviceWeights(weights.packed);
  c.x = deviceX.get(), c.weight = reinterpret_cast<const float *>(deviceWeights.get()), c.scale = deviceScale.get(),
  c.bias = deviceBias.get();
  c.residual = deviceResidual.get(), c.y = y.get();
  REQUIRE(cuda::launchConv2d(c, nullptr) == 0);
  CHECK(largestError(y.values(), expected) < 1e-5);
}

} // namespace

TEST_CASE("conv2d is the CPU's") {
  uint64_t seed = 1;
  for (int64_t activation : {0, 1, 4}) {
    checkConv({nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 2, 3, 23, 21, 33,        0,
               0,       7,       7,       2,       2,       3,       3, 1, 1,  1,  activation},
              seed++);
    checkConv({nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 1, 6, 13, 14, 9,         0,
               0,       3,       2,       1,       2,       2,       1, 3, 2,  3,  activation},
              seed++);
    checkConv({nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 1, 21, 9, 37, 42,        0,
               0,       3,       3,       1,       1,       1,       1, 1,  1, 21, activation},
              seed++);
    checkConv({nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 3, 40, 1, 1, 50,        0,
               0,       1,       1,       1,       1,       0,       0, 1,  1, 1, activation},
              seed++);
  }
}

TEST_CASE("pool2d is the CPU's") {
  for (int64_t kind : {0, 1})
    for (int64_t includePad : {0, 1}) {
      cuda::Pool2d p = {nullptr, nullptr, kind, 3, 10, 11, 0, 0, 3, 2, 2, 3, 1, 0, 2, 1, 2, 1, includePad};
      p.outHeight = outputsOf(p.height, p.padTop + p.padBottom, p.kernelH, p.strideH, p.dilationH);
      p.outWidth = outputsOf(p.width, p.padLeft + p.padRight, p.kernelW, p.strideW, p.dilationW);
      const std::vector<float> x = Random(7).floats(p.planes * p.height * p.width);
      std::vector<float> expected(static_cast<size_t>(p.planes * p.outHeight * p.outWidth));
      runStep(1, 1, 0, 0, [&](const MccStep *step) {
        mcc_cpu_pool2d(step, 1, x.data(), expected.data(), p.kind, p.planes, p.height, p.width, p.outHeight, p.outWidth,
                       p.kernelH, p.kernelW, p.strideH, p.strideW, p.padTop, p.padLeft, p.padBottom, p.padRight,
                       p.dilationH, p.dilationW, p.includePad);
      });
      const DeviceArray<float> deviceX(x), y(expected.size());
      p.x = deviceX.get(), p.y = y.get();
      REQUIRE(cuda::launchPool2d(p, nullptr) == 0);
      CHECK(largestError(y.values(), expected) < 1e-6);
    }
}
