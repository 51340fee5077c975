// Calibration with the real kernels on the real threads, within small budgets.
#include "runtime-lib/placement/CalibrateCpu.h"
#include "runtime-lib/placement/CostModel.h"
#include "runtime-lib/src/ThreadPool.h"

#include <doctest/doctest.h>

#include <chrono>

using namespace mcc;
using namespace mcc::placement;

static void runOnPool(void *context, const MccStep &shared, uint64_t scratchStride) {
  static_cast<runtime::ThreadPool *>(context)->run(shared, scratchStride);
}

static const CpuKernels kernels = {
    {{Format::BF16, mcc_cpu_linear_bf16}, {Format::Q4_0, mcc_cpu_linear_q4_0}}, mcc_cpu_add, mcc_cpu_attention};

/// Calibrates on `threads` threads.
static Result<DeviceProfile> calibrate(int64_t threads, const CpuCalibration &options) {
  auto pool = runtime::ThreadPool::create(calibrationStep, threads, runtime::usableProcessors());
  REQUIRE(pool.ok());
  return calibrateCpu(kernels, {pool.value().get(), threads, runOnPool}, options);
}

TEST_CASE("a short calibration keeps its budget and gives a whole profile") {
  CpuCalibration options;
  options.budgetNs = 60e6;
  const auto start = std::chrono::steady_clock::now();
  Result<DeviceProfile> device = calibrate(2, options);
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  REQUIRE_MESSAGE(device.ok(), device.message());
  MESSAGE("60 ms of samples in " << ms << " ms");
  CHECK(ms < 1000); // a busy machine; a budget not kept takes many seconds
  Profile profile;
  profile.machine.cpu = cpuName();
  profile.machine.threads = 2;
  profile.cpu = device.value();
  CHECK(profile.cpu.launch.size() == 9);
  REQUIRE(profile.cpu.matrices.size() == 2);
  CHECK(profile.cpu.rows.samples().size() >= 1);
  CHECK(profile.cpu.attentionKeys.at(1 << 20) > 0);
  Result<Profile> read = readProfile("m.json", writeProfile(profile));
  REQUIRE_MESSAGE(read.ok(), read.message());
  CHECK(writeProfile(read.value()) == writeProfile(profile));
}

TEST_CASE("a longer calibration predicts the order of real costs") {
  CpuCalibration options;
  options.budgetNs = 400e6;
  Result<DeviceProfile> device = calibrate(1, options);
  REQUIRE_MESSAGE(device.ok(), device.message());
  const MatrixTimes &times = device.value().matrices[0];
  const double mib = 1 << 20;
  MESSAGE("bf16 8 MiB: one row " << times.at(1, 2048, 2048, 8 * mib) / 1e3 << " us (fit residual "
                                 << times.gemv.fit().residual << "), 32 rows "
                                 << times.at(32, 2048, 2048, 8 * mib) / 1e3 << " us (" << times.gemm.fit().residual
                                 << "), add of 1 MiB " << device.value().rows.at(mib) / 1e3 << " us, keys of 1 MiB "
                                 << device.value().attentionKeys.at(mib) / 1e3 << " us");
  // Physical bounds with a wide margin: 8 MiB are read at 0.2 to 400 GB/s, and 32 rows take longer than one.
  CHECK(times.at(1, 2048, 2048, 8 * mib) > 8 * mib / 400);
  CHECK(times.at(1, 2048, 2048, 8 * mib) < 8 * mib * 5);
  CHECK(times.at(32, 2048, 2048, 8 * mib) > times.at(1, 2048, 2048, 8 * mib));
  CHECK(times.gemv.samples().size() >= 4);
  CHECK(times.gemv.samples()[0].rawNs.size() >= 3);
}

TEST_CASE("nothing to measure") {
  CHECK(calibrateCpu({}, {nullptr, 1, runOnPool}).message() ==
        "calibration needs a linear kernel of at least one storage format");
}

TEST_CASE("this processor has a name") { CHECK(!cpuName().empty()); }
