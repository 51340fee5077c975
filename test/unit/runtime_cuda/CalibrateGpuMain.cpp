// Calibrates the GPU of this machine, prints the profile and checks what any GPU must show. Without one: exit 77, which
// ctest counts as skipped.
//   calibrate-gpu-test [MILLISECONDS]
#include "runtime-lib/cuda/Devices.h"
#include "runtime-lib/cuda/calibrate/CalibrateGpu.h"
#include "runtime-lib/placement/CostModel.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

using namespace mcc;
using namespace mcc::placement;

static int failures = 0;

static void expect(bool holds, const char *what, double value) {
  std::fprintf(stderr, "%s  %s: %g\n", holds ? "ok  " : "FAIL", what, value);
  failures += !holds;
}

/// Returns bytes a ns (GB/s) of a curve over bytes at its largest sample.
static double rateOf(const Curve &curve) {
  const double size = curve.samples().back().size;
  return size / curve.at(size);
}

/// Medians may fall a little between sizes by noise, never by half.
static void expectRising(const Curve &curve, const char *what) {
  double worst = 1, last = 0;
  for (const Curve::Sample &sample : curve.samples()) {
    const double ns = median(sample.rawNs);
    worst = std::min(worst, last > 0 ? ns / last : 1);
    last = ns;
  }
  expect(worst > 0.5, what, worst);
}

static void checkDevice(const DeviceProfile &device) {
  expect(median(device.launch) > 200 && median(device.launch) < 20e3, "a node of a graph, ns", median(device.launch));
  expect(median(device.sync) > 1e3 && median(device.sync) < 500e3, "launch and wait, ns", median(device.sync));
  expectRising(device.rows, "element-wise times rise");
  expectRising(device.attentionKeys, "attention's times rise with keys");
  expectRising(device.attentionMacs, "attention's times rise with tokens");
  for (const MatrixTimes &times : device.matrices) {
    std::fprintf(stderr, "%s\n", std::string(formatInfo(times.format).name).c_str());
    expectRising(times.gemv, "  times rise with bytes");
    expect(rateOf(times.gemv) > 50 && rateOf(times.gemv) < 20000, "  weights, GB/s", rateOf(times.gemv));
    const double macs = 2048.0 * 8192 * 4096, flops = 2 * macs / times.gemm.at(2048, 8192, 4096) * 1e-3;
    expect(flops > 0.5 && flops < 5000, "  2048 tokens, TFLOP/s", flops);
  }
}

int main(int argc, char **argv) {
  GpuCalibration options;
  options.budgetNs = (argc > 1 ? std::atof(argv[1]) : 2000) * 1e6;
  options.formats = {Format::BF16, Format::F16, Format::Q8_0, Format::Q4_0, Format::Q4_K, Format::F32};
  const auto start = std::chrono::steady_clock::now();
  if (Result<runtime::GpuInfo> info = runtime::openGpu(); !info.ok()) {
    std::fprintf(stderr, "skipped: %s\n", info.message().c_str());
    return 77;
  }
  Result<GpuMeasurements> gpu = calibrateGpu(options);
  if (!gpu.ok()) {
    std::fprintf(stderr, "FAIL  %s\n", gpu.message().c_str());
    return 1;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::fprintf(stderr, "%s, driver %s, link %s: %.3f s with opening the device\n", gpu.value().name.c_str(),
               gpu.value().driver.c_str(), gpu.value().linkName.c_str(), seconds);
  checkDevice(gpu.value().device);
  const Link &link = gpu.value().link;
  for (const auto &[curve, name] : {std::pair(&link.toGpu.pinned, "pinned to the GPU, GB/s"),
                                    {&link.toGpu.pageable, "pageable to the GPU, GB/s"},
                                    {&link.toCpu.pinned, "pinned to the CPU, GB/s"},
                                    {&link.toCpu.pageable, "pageable to the CPU, GB/s"}})
    expect(rateOf(*curve) > 0.5 && rateOf(*curve) < 1000, name, rateOf(*curve));
  Profile profile;
  profile.machine = {"not measured",   1, "", gpu.value().name, gpu.value().driver, gpu.value().linkName,
                     gpu.value().bytes};
  profile.cpu = gpu.value().device;
  profile.gpu = std::move(gpu.value().device);
  profile.link = link;
  const std::string text = writeProfile(profile);
  expect(readProfile("profile", text).ok(), "the profile is read back", 1);
  std::fputs(text.c_str(), stdout);
  return failures > 0;
}
