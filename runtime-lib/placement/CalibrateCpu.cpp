// A calibration is a list of points, each one kernel at one size (Sampling.h). A sample is a job on all workers that
// repeats the launch, with a barrier after each as in a real step, for long enough to be timed; each launch reads other
// weights, so that they come from memory as in a step. What the barrier and the start of a job take is measured first
// and taken off.
#include "runtime-lib/placement/CalibrateCpu.h"

#include "kernels/Activation.h"
#include "kernels/cpu/Sizes.h"
#include "runtime-lib/placement/Sampling.h"
#include "runtime-lib/src/Files.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace mcc::placement {

namespace {

enum class Kind : uint8_t { Barrier, Linear, Add, Attention };

/// What all workers do in one job.
struct Job {
  Kind kind = Kind::Barrier;
  int64_t repeats = 0;
  int64_t tokens = 1, rows = 0, cols = 0, position = 0;
  decltype(&mcc_cpu_linear_f32) linear = nullptr;
  decltype(&mcc_cpu_add) add = nullptr;
  decltype(&mcc_cpu_attention) attention = nullptr;
  const uint8_t *weights = nullptr;
  uint64_t weightBytes = 0; ///< of one launch
  uint64_t firstOffset = 0, regionBytes = 0;
  const float *x = nullptr;
  float *y = nullptr;
  const float *cache = nullptr;
};

/// Frees what std::aligned_alloc gave.
struct FreeMemory {
  void operator()(uint8_t *memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<uint8_t, FreeMemory>;

/// The attention that is measured: a group of 4 query heads on each kv head.
constexpr int64_t heads = 16, kvHeads = 4, headDim = 64, mostKeys = 2048;
/// Jobs are repeated up to this, which the clock resolves well.
constexpr double shortestJobNs = 20e3;
constexpr int64_t mostTokens = 128, mostCols = 4096, mostRows = 8192;

} // namespace

/// Returns the weights of a job's launch number `repeat`: the next in the region, around its end.
static const uint8_t *weightsOf(const Job &job, int64_t repeat) {
  const uint64_t slots = std::max<uint64_t>(job.regionBytes / std::max<uint64_t>(job.weightBytes, 64), 1);
  const uint64_t slot = (job.firstOffset + static_cast<uint64_t>(repeat)) % slots;
  return job.weights + slot * job.weightBytes;
}

void calibrationStep(const MccStep *step) {
  const Job &job = *reinterpret_cast<const Job *>(step->arena);
  const int64_t xStride = cpu::rowStride(job.cols), yStride = job.rows;
  for (int64_t repeat = 0; repeat < job.repeats; ++repeat) {
    switch (job.kind) {
    case Kind::Barrier:
      break;
    case Kind::Linear:
      job.linear(step, job.tokens, job.x, weightsOf(job, repeat), nullptr, nullptr, nullptr, nullptr, nullptr, job.y,
                 job.rows, job.cols, xStride, yStride, yStride, static_cast<int64_t>(Activation::None), 0, -1, 0, 1);
      break;
    case Kind::Add:
      job.add(step, job.tokens, job.x, job.x, job.y, job.cols, xStride, xStride, xStride);
      break;
    case Kind::Attention:
      job.attention(step, job.tokens, job.x, job.cache, job.cache + cpu::keyCacheBytes(kvHeads, headDim, mostKeys) / 4,
                    nullptr, nullptr, job.y, heads, kvHeads, headDim, heads * headDim, heads * headDim, 0, 0, 0,
                    mostKeys, 0.125f, 0);
      break;
    }
    mccrt_barrier(step);
  }
}

namespace {

/// One size of one kernel.
struct Point {
  Job job;
  double size = 0; ///< for a curve
  double work = 0; ///< grows as the time is expected to
};

/// Points of one curve or table, in order of size.
using Family = std::vector<Point>;

class Calibrator {
public:
  Calibrator(const CpuKernels &kernels, const CpuWorkers &workers, const CpuCalibration &options)
      : kernels(kernels), workers(workers), options(options) {}
  Result<DeviceProfile> run();

private:
  using Clock = std::chrono::steady_clock;
  bool allocate();
  void addFamilies();
  Point linearPoint(const CpuKernels::Linear &kernel, int64_t tokens, int64_t rows, int64_t cols) const;
  Point addPoint(int64_t tokens, int64_t cols) const;
  Point attentionPoint(int64_t tokens, int64_t position) const;
  double elapsed(Job &job);
  void measureBarrier();
  double sample(Job job, double expectedNs);
  void measure();
  Result<DeviceProfile> collect();

  const CpuKernels &kernels;
  const CpuWorkers &workers;
  const CpuCalibration &options;
  Memory madeWeights, floats, scratch;
  std::span<const uint8_t> weights;
  uint64_t scratchStride = 0, nextOffset = 0;
  float *x = nullptr, *y = nullptr, *cache = nullptr;
  double startNs = 0, barrierNs = 0;
  RawNs barrierRaw;
  /// rows, attention over keys, attention over multiply-adds, then gemv and gemm of each format.
  std::vector<Family> families;
  std::vector<SampleFamily> samples; ///< as families
  std::array<std::vector<double>, 3> axes;
};

} // namespace

static Memory allocateBytes(uint64_t bytes) {
  return Memory(static_cast<uint8_t *>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)));
}

/// Allocates and touches all memory; the values are small normal numbers in every format.
bool Calibrator::allocate() {
  constexpr int value = 0x3c;
  weights = options.weights;
  if (weights.size() < 1 << 20) {
    const uint64_t bytes = uint64_t(options.budgetNs < 200e6 ? 8 : 64) << 20;
    if (!(madeWeights = allocateBytes(bytes)))
      return false;
    std::memset(madeWeights.get(), value, bytes);
    weights = {madeWeights.get(), bytes};
  }
  const uint64_t xBytes = static_cast<uint64_t>(mostTokens * cpu::rowStride(mostCols)) * 4;
  const uint64_t yBytes = static_cast<uint64_t>(mostTokens * std::max(cpu::rowStride(mostCols), mostRows)) * 4;
  const uint64_t cacheBytes = static_cast<uint64_t>(cpu::keyCacheBytes(kvHeads, headDim, mostKeys) +
                                                    cpu::valueCacheBytes(kvHeads, headDim, mostKeys));
  scratchStride = static_cast<uint64_t>(
      cpu::roundUp(std::max(cpu::linearScratchBytes(mostTokens, mostCols), cpu::attentionScratchBytes(headDim)), 4096));
  floats = allocateBytes(xBytes + yBytes + cacheBytes);
  scratch = allocateBytes(scratchStride * static_cast<uint64_t>(workers.threads));
  if (!floats || !scratch)
    return false;
  std::memset(floats.get(), value, xBytes + yBytes + cacheBytes);
  std::memset(scratch.get(), 0, scratchStride * static_cast<uint64_t>(workers.threads));
  x = reinterpret_cast<float *>(floats.get());
  y = x + xBytes / 4;
  cache = y + yBytes / 4;
  return true;
}

Point Calibrator::linearPoint(const CpuKernels::Linear &kernel, int64_t tokens, int64_t rows, int64_t cols) const {
  Point point;
  point.job.kind = Kind::Linear;
  point.job.linear = kernel.run;
  point.job.tokens = tokens;
  point.job.rows = rows;
  point.job.cols = cols;
  // Whole panels, padded as they are packed.
  point.job.weightBytes =
      static_cast<uint64_t>(rows / cpu::kPanelRows * cpu::roundUp(cpu::kPanelRows * formatBytes(kernel.format, cols), 64));
  point.size = static_cast<double>(point.job.weightBytes);
  point.work = static_cast<double>(rows * cols) * static_cast<double>(tokens + 4);
  return point;
}

Point Calibrator::addPoint(int64_t tokens, int64_t cols) const {
  Point point;
  point.job.kind = Kind::Add;
  point.job.add = kernels.add;
  point.job.tokens = tokens;
  point.job.cols = cols;
  point.size = point.work = static_cast<double>(tokens * cols * 3 * 4);
  return point;
}

Point Calibrator::attentionPoint(int64_t tokens, int64_t position) const {
  Point point;
  point.job.kind = Kind::Attention;
  point.job.attention = kernels.attention;
  point.job.tokens = tokens;
  point.job.position = position;
  const int64_t keys = tokens * position + tokens * (tokens + 1) / 2;
  point.size = tokens == 1 ? static_cast<double>(kvHeads * (position + 1) * headDim * 2 * 4)
                           : static_cast<double>(heads * keys * headDim * 2);
  point.work = static_cast<double>(keys);
  return point;
}

void Calibrator::addFamilies() {
  families.push_back({addPoint(1, 1024), addPoint(1, 4096), addPoint(16, 4096), addPoint(128, 4096)});
  families.push_back({attentionPoint(1, 63), attentionPoint(1, 511), attentionPoint(1, mostKeys - 1)});
  families.push_back({attentionPoint(16, 0), attentionPoint(64, 0), attentionPoint(128, 0)});
  axes = {{{2, 8, 32, 128}, {256, 1024, 4096}, {256, 1024, 4096}}};
  for (const CpuKernels::Linear &kernel : kernels.linear) {
    Family gemv, gemm;
    for (const auto &[rows, cols] : {std::pair<int64_t, int64_t>{256, 256},
                                     {512, 512},
                                     {1024, 1024},
                                     {2048, 2048},
                                     {4096, 2048},
                                     {4096, 4096},
                                     {mostRows, mostCols}})
      if (Point point = linearPoint(kernel, 1, rows, cols); point.job.weightBytes <= weights.size())
        gemv.push_back(point);
    for (const double m : axes[0])
      for (const double n : axes[1])
        for (const double k : axes[2])
          gemm.push_back(
              linearPoint(kernel, static_cast<int64_t>(m), static_cast<int64_t>(n), static_cast<int64_t>(k)));
    families.push_back(std::move(gemv));
    families.push_back(std::move(gemm));
  }
}

/// Runs a job and returns its time.
double Calibrator::elapsed(Job &job) {
  job.x = x;
  job.y = y;
  job.cache = cache;
  job.weights = weights.data();
  job.regionBytes = weights.size();
  job.firstOffset = nextOffset;
  nextOffset += static_cast<uint64_t>(job.repeats);
  MccStep step{};
  step.arena = reinterpret_cast<uint8_t *>(&job);
  step.scratch = scratch.get();
  step.count = job.tokens;
  step.position = job.position;
  const Clock::time_point start = Clock::now();
  workers.run(workers.context, step, scratchStride);
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

/// Measures the start of a job and the barrier, which all else contains.
void Calibrator::measureBarrier() {
  RawNs starts;
  Job empty, barriers;
  barriers.repeats = 64;
  for (int i = 0; i < 9; ++i) {
    starts.push_back(elapsed(empty));
    startNs = median(starts);
    const double ns = (elapsed(barriers) - startNs) / static_cast<double>(barriers.repeats);
    barrierRaw.push_back(std::max(ns, 1.0));
  }
  barrierNs = median(barrierRaw);
}

/// Takes a sample of a job that is expected to take so long.
double Calibrator::sample(Job job, double expectedNs) {
  // Long enough to be timed well, and for the start of the job not to matter.
  const double wanted = std::max(shortestJobNs, 4 * startNs);
  job.repeats = std::clamp<int64_t>(static_cast<int64_t>(wanted / std::max(expectedNs, 200.0)), 1, 64);
  const double ns = (elapsed(job) - startNs) / static_cast<double>(job.repeats);
  return std::max({ns - barrierNs, ns / 20, 1.0});
}

void Calibrator::measure() {
  for (const Family &family : families) {
    SampleFamily &points = samples.emplace_back();
    for (const Point &point : family)
      points.push_back({point.size, point.work, point.job.weightBytes <= weights.size()});
  }
  const SampleBudget budget{options.budgetNs, options.mostRepeats, shortestJobNs, startNs};
  takeSamples(samples, budget, [&](size_t family, size_t point, double expectedNs) {
    return sample(families[family][point].job, expectedNs);
  });
}

/// Makes the profile out of the samples.
Result<DeviceProfile> Calibrator::collect() {
  DeviceProfile profile;
  profile.launch = barrierRaw;
  for (size_t i = 0; i < 3; ++i) {
    Result<Curve> curve = curveOf(samples[i]);
    if (!curve.ok())
      return curve.failure();
    (i == 0 ? profile.rows : i == 1 ? profile.attentionKeys : profile.attentionMacs) = std::move(curve.value());
  }
  for (size_t i = 0; i < kernels.linear.size(); ++i) {
    Result<Curve> gemv = curveOf(samples[3 + 2 * i]);
    if (!gemv.ok())
      return gemv.failure();
    Result<GemmTable> gemm = tableOf(axes, samples[4 + 2 * i]);
    if (!gemm.ok())
      return gemm.failure();
    profile.matrices.push_back({kernels.linear[i].format, std::move(gemv.value()), std::move(gemm.value())});
  }
  return profile;
}

Result<DeviceProfile> Calibrator::run() {
  if (kernels.linear.empty())
    return Failure{"calibration needs a linear kernel of at least one storage format"};
  if (!allocate())
    return Failure{"no memory for the calibration; it needs up to 100 MB"};
  addFamilies();
  measureBarrier();
  measure();
  return collect();
}

Result<DeviceProfile> calibrateCpu(const CpuKernels &kernels, const CpuWorkers &workers,
                                   const CpuCalibration &options) {
  return Calibrator(kernels, workers, options).run();
}

std::string cpuName() {
  const std::optional<std::string> text = runtime::readSmallFile("/proc/cpuinfo");
  const std::string_view key = "model name";
  size_t at = text ? text->find(key) : std::string::npos;
  if (at == std::string::npos || (at = text->find(':', at)) == std::string::npos)
    return "unknown";
  const size_t begin = text->find_first_not_of(" \t", at + 1);
  return begin == std::string::npos ? "unknown" : text->substr(begin, text->find('\n', begin) - begin);
}

} // namespace mcc::placement
