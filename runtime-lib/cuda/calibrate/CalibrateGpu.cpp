// A calibration is a list of points, each one kernel at one size (placement/Sampling.h). A sample replays a graph of
// some launches of it, each with other weights or another cache, which begin outside the second-level cache as in a
// step; activations are wherever they are, as in a step too. What a graph and each of its nodes take besides is
// measured first, with a kernel that does next to nothing, and taken off.
#include "runtime-lib/cuda/calibrate/CalibrateGpu.h"

#include "kernels/cpu/Sizes.h"
#include "kernels/cuda/Attention.h"
#include "kernels/cuda/Linear.h"
#include "kernels/cuda/Rows.h"
#include "runtime-lib/cuda/calibrate/CalibrateLink.h"
#include "runtime-lib/placement/Sampling.h"

#include <algorithm>
#include <cstring>

namespace mcc::placement {

using runtime::call;
using runtime::DeviceMemory;

namespace {

constexpr int64_t mostTokens = 2048, mostCols = 4096, mostRows = 14336;
/// The attention that is measured: a group of 4 query heads on each kv head.
constexpr int64_t heads = 32, kvHeads = 8, headDim = 128;
constexpr int32_t positions[] = {0, 63, 511, 2047, 8191};
/// Samples take about this at least, which events resolve well, in up to so many launches.
constexpr double shortestSampleNs = 20e3;
constexpr int64_t mostLaunches = 32;

/// One size of one kernel.
struct Point {
  /// Starts a launch whose weights or caches are at `region`.
  std::function<cuda::Status(const uint8_t *region)> start;
  uint64_t regionBytes = 0; ///< of one launch; 0: reads activations only
  double size = 0, work = 0;
  runtime::Graph graph = {}; ///< once it was sampled
  int64_t launches = 0;      ///< in the graph
};
using Family = std::vector<Point>;

class GpuCalibrator {
public:
  GpuCalibrator(const GpuCalibration &options, runtime::GraphTimer timer) : options(options), timer(std::move(timer)) {}
  Result<GpuMeasurements> run(const runtime::GpuInfo &info);

private:
  Status takeMemory(uint64_t freeBytes);
  Status fill();
  cuda::Step stepOf(int64_t tokens, size_t position = 0) const;
  cuda::Status startAdd(int64_t tokens, int64_t cols) const;
  Point linearPoint(Format format, int64_t tokens, int64_t rows, int64_t cols) const;
  Point addPoint(int64_t tokens, int64_t cols) const;
  Point attentionPoint(int64_t tokens, size_t position) const;
  void addFamilies();
  Status measureOverheads(DeviceProfile &device);
  Result<double> sample(Point &point, double expectedNs);
  Status measure(double budgetNs);
  Status collect(DeviceProfile &device) const;

  const GpuCalibration &options;
  runtime::GraphTimer timer;
  DeviceMemory weights, activations, linearSpace, attentionSpace, positionTable;
  uint64_t weightBytes = 0;
  float *x = nullptr, *y = nullptr;
  double startNs = 0, launchNs = 0;
  /// rows, attention over keys, attention over multiply-adds, then gemv and gemm of each format.
  std::vector<Family> families;
  std::vector<SampleFamily> samples; ///< as families
  std::array<GemmTable::Axis, 3> axes = {{{2, 16, 64, 512, mostTokens}, {1024, 8192}, {1024, mostCols}}};
};

} // namespace

static Status take(DeviceMemory &memory, uint64_t bytes) {
  Result<DeviceMemory> taken = DeviceMemory::create(bytes);
  if (!taken.ok())
    return taken.failure();
  memory = std::move(taken.value());
  return {};
}

Status GpuCalibrator::takeMemory(uint64_t freeBytes) {
  weightBytes = std::min<uint64_t>(uint64_t(512) << 20, freeBytes / 4);
  RETURN_IF_FAILED(take(weights, weightBytes));
  const uint64_t xElems = mostTokens * mostCols, yElems = mostTokens * std::max(mostCols, int64_t(8192));
  RETURN_IF_FAILED(take(activations, (xElems + yElems) * sizeof(float)));
  x = reinterpret_cast<float *>(activations.data());
  y = x + xElems;
  const int64_t linear = std::max(cuda::linearWorkspaceBytes(mostTokens, mostCols, options.prefillParts),
                                  cuda::linearWorkspaceBytes(1, mostCols, 0));
  const int64_t attention = cuda::attentionWorkspaceBytes(mostTokens, heads, kvHeads, headDim);
  RETURN_IF_FAILED(take(linearSpace, static_cast<uint64_t>(linear)));
  RETURN_IF_FAILED(take(attentionSpace, static_cast<uint64_t>(attention)));
  RETURN_IF_FAILED(call(CUDA_NAME(cudaMemset), attentionSpace.data(), 0, static_cast<size_t>(attention)));
  RETURN_IF_FAILED(take(positionTable, sizeof positions));
  return call(CUDA_NAME(cudaMemcpy), positionTable.data(), positions, sizeof positions, cudaMemcpyHostToDevice);
}

/// Fills weights and activations with bytes that are ordinary numbers in every format and switch the arithmetic's bits.
Status GpuCalibrator::fill() {
  std::vector<uint8_t> pattern(size_t(4) << 20);
  uint32_t state = 1;
  for (uint8_t &byte : pattern) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<uint8_t>(0x30 | (state >> 24 & 0x8f));
  }
  const uint64_t activationBytes = (mostTokens * (mostCols + std::max(mostCols, int64_t(8192)))) * sizeof(float);
  for (const auto &[to, bytes] : {std::pair(weights.data(), weightBytes), {activations.data(), activationBytes}})
    for (uint64_t at = 0; at < bytes; at += pattern.size()) {
      const uint64_t part = std::min<uint64_t>(pattern.size(), bytes - at);
      RETURN_IF_FAILED(at == 0 ? call(CUDA_NAME(cudaMemcpy), to, pattern.data(), part, cudaMemcpyHostToDevice)
                               : call(CUDA_NAME(cudaMemcpy), to + at, to, part, cudaMemcpyDeviceToDevice));
    }
  return call(CUDA_NAME(cudaDeviceSynchronize));
}

cuda::Step GpuCalibrator::stepOf(int64_t tokens, size_t position) const {
  cuda::Step step;
  step.tokens = tokens;
  step.position = reinterpret_cast<const int32_t *>(positionTable.data()) + position;
  return step;
}

cuda::Status GpuCalibrator::startAdd(int64_t tokens, int64_t cols) const {
  cuda::Elementwise add;
  add.a = x, add.b = x, add.y = y;
  add.cols = add.aStride = add.bStride = add.yStride = cols;
  return cuda::launchAdd(stepOf(tokens), add, timer.stream());
}

Point GpuCalibrator::addPoint(int64_t tokens, int64_t cols) const {
  Point point;
  point.start = [this, tokens, cols](const uint8_t *) { return startAdd(tokens, cols); };
  point.size = static_cast<double>(tokens * cols * 3 * 4);
  point.work = point.size + 1e6;
  return point;
}

Point GpuCalibrator::linearPoint(Format format, int64_t tokens, int64_t rows, int64_t cols) const {
  cuda::Linear linear;
  linear.format = format;
  linear.rows = linear.yStride = rows;
  linear.cols = linear.xStride = cols;
  linear.x = x, linear.y = y;
  linear.prefillParts = options.prefillParts;
  linear.workspace = linearSpace.data();
  Point point;
  point.start = [this, linear, tokens](const uint8_t *region) {
    cuda::Linear launch = linear;
    launch.weight = region;
    return cuda::launchLinear(stepOf(tokens), launch, timer.stream());
  };
  // Whole panels, padded as they are packed.
  point.regionBytes =
      static_cast<uint64_t>(rows / cpu::kPanelRows * cpu::roundUp(cpu::kPanelRows * formatBytes(format, cols), 64));
  point.size = static_cast<double>(point.regionBytes);
  point.work = static_cast<double>(rows * cols) * static_cast<double>(tokens + 64);
  return point;
}

Point GpuCalibrator::attentionPoint(int64_t tokens, size_t position) const {
  cuda::Attention attention;
  attention.q = x, attention.y = y;
  attention.heads = heads, attention.kvHeads = kvHeads, attention.headDim = headDim;
  attention.qStride = attention.yStride = heads * headDim;
  attention.context = cpu::roundUp(positions[position] + tokens, cpu::kPanelRows);
  attention.scale = 0.088f;
  attention.workspace = attentionSpace.data();
  const int64_t keyBytes = cpu::keyCacheBytes(kvHeads, headDim, attention.context);
  Point point;
  point.start = [this, attention, tokens, position, keyBytes](const uint8_t *region) {
    cuda::Attention launch = attention;
    launch.kCache = reinterpret_cast<const float *>(region);
    launch.vCache = reinterpret_cast<const float *>(region + keyBytes);
    return cuda::launchAttention(stepOf(tokens, position), launch, timer.stream());
  };
  point.regionBytes = static_cast<uint64_t>(keyBytes + cpu::valueCacheBytes(kvHeads, headDim, attention.context));
  const int64_t at = positions[position], keys = tokens * at + tokens * (tokens + 1) / 2;
  point.size = static_cast<double>(tokens == 1 ? kvHeads * (at + 1) * headDim * 2 * 4 : heads * keys * headDim * 2);
  point.work = static_cast<double>(keys) * 1e3 + 1e6;
  return point;
}

void GpuCalibrator::addFamilies() {
  families.emplace_back();
  for (const auto &[tokens, cols] :
       {std::pair<int64_t, int64_t>{1, 1024}, {1, 4096}, {16, 4096}, {256, 4096}, {mostTokens, 4096}})
    families.back().push_back(addPoint(tokens, cols));
  families.emplace_back();
  for (size_t position = 1; position < std::size(positions); ++position)
    families.back().push_back(attentionPoint(1, position));
  families.emplace_back();
  for (const int64_t tokens : {16, 128, 512, 2048})
    families.back().push_back(attentionPoint(tokens, 0));
  for (const Format format : options.formats) {
    families.emplace_back();
    for (const auto &[rows, cols] :
         {std::pair<int64_t, int64_t>{256, 256}, {1024, 1024}, {2048, 2048}, {4096, 4096}, {mostRows, mostCols}})
      families.back().push_back(linearPoint(format, 1, rows, cols));
    families.emplace_back();
    for (const double m : axes[0])
      for (const double n : axes[1])
        for (const double k : axes[2])
          families.back().push_back(
              linearPoint(format, static_cast<int64_t>(m), static_cast<int64_t>(n), static_cast<int64_t>(k)));
  }
}

/// Measures what a graph takes to start, each of its nodes, and the host to learn of its end.
Status GpuCalibrator::measureOverheads(DeviceProfile &device) {
  constexpr int64_t nodes = 65;
  const auto small = [&](int64_t count) {
    return timer.capture([&] {
      cuda::Status status = 0;
      for (int64_t i = 0; i < count && status == 0; ++i)
        status = startAdd(1, 64);
      return status;
    });
  };
  Result<runtime::Graph> one = small(1), many = small(nodes);
  for (const Result<runtime::Graph> *graph : {&one, &many})
    if (!graph->ok())
      return graph->failure();
  RawNs starts;
  for (int i = 0; i < 12; ++i) {
    Result<double> oneNs = timer.deviceNs(one.value(), runtime::Cached::Anything),
                   manyNs = timer.deviceNs(many.value(), runtime::Cached::Anything), host = timer.hostNs(one.value());
    for (const Result<double> *ns : {&oneNs, &manyNs, &host})
      if (!ns->ok())
        return ns->failure();
    if (i < 3) // clocks rise, code comes in
      continue;
    const double node = std::max((manyNs.value() - oneNs.value()) / (nodes - 1), 1.0);
    device.launch.push_back(node);
    starts.push_back(std::max(oneNs.value() - node, 0.0));
    device.sync.push_back(std::max(host.value() - node, 1.0));
  }
  launchNs = median(device.launch);
  startNs = median(starts);
  return {};
}

Result<double> GpuCalibrator::sample(Point &point, double expectedNs) {
  if (point.launches == 0) {
    const auto wanted = static_cast<int64_t>(shortestSampleNs / std::max(expectedNs, 500.0));
    const int64_t slots = point.regionBytes > 0 ? static_cast<int64_t>(weightBytes / point.regionBytes) : mostLaunches;
    const int64_t launches = std::clamp<int64_t>(wanted, 1, std::min(slots, mostLaunches));
    Result<runtime::Graph> graph = timer.capture([&] {
      cuda::Status status = 0;
      for (int64_t i = 0; i < launches && status == 0; ++i)
        status = point.start(weights.data() + static_cast<uint64_t>(i) * point.regionBytes);
      return status;
    });
    if (!graph.ok())
      return graph.failure();
    point.graph = std::move(graph.value());
    point.launches = launches;
    // The first run loads code.
    if (Result<double> first = timer.deviceNs(point.graph, runtime::Cached::Anything); !first.ok())
      return first;
  }
  const runtime::Cached cached = point.regionBytes > 0 ? runtime::Cached::Nothing : runtime::Cached::Anything;
  Result<double> whole = timer.deviceNs(point.graph, cached);
  if (!whole.ok())
    return whole;
  const double ns = (whole.value() - startNs) / static_cast<double>(point.launches);
  return std::max({ns - launchNs, ns / 20, 1.0});
}

Status GpuCalibrator::measure(double budgetNs) {
  for (const Family &family : families) {
    SampleFamily &points = samples.emplace_back();
    for (const Point &point : family)
      points.push_back({point.size, point.work, point.regionBytes <= weightBytes});
  }
  Status status;
  // A sample also sweeps the cache and waits.
  constexpr double overheadNs = 100e3;
  takeSamples(samples, {budgetNs, options.mostRepeats, shortestSampleNs, overheadNs},
              [&](size_t family, size_t point, double expectedNs) {
                Result<double> ns = sample(families[family][point], expectedNs);
                if (ns.ok())
                  return ns.value();
                status = ns.failure();
                return -1.0;
              });
  return status;
}

/// Makes the profile out of the samples.
Status GpuCalibrator::collect(DeviceProfile &device) const {
  Curve *curves[] = {&device.rows, &device.attentionKeys, &device.attentionMacs};
  for (size_t i = 0; i < std::size(curves); ++i) {
    Result<Curve> curve = curveOf(samples[i]);
    if (!curve.ok())
      return curve.failure();
    *curves[i] = std::move(curve.value());
  }
  for (size_t i = 0; i < options.formats.size(); ++i) {
    Result<Curve> gemv = curveOf(samples[3 + 2 * i]);
    if (!gemv.ok())
      return gemv.failure();
    Result<GemmTable> gemm = tableOf(axes, samples[4 + 2 * i]);
    if (!gemm.ok())
      return gemm.failure();
    device.matrices.push_back({options.formats[i], std::move(gemv.value()), std::move(gemm.value())});
  }
  return {};
}

Result<GpuMeasurements> GpuCalibrator::run(const runtime::GpuInfo &info) {
  GpuMeasurements result;
  result.name = info.name;
  result.bytes = info.totalBytes;
  result.driver = driverName(info.driver);
  result.linkName = linkName();
  RETURN_IF_FAILED(takeMemory(info.freeBytes));
  RETURN_IF_FAILED(fill());
  RETURN_IF_FAILED(measureOverheads(result.device));
  Result<Link> link = calibrateLink(timer, weights.data(), weightBytes, options.budgetNs / 5);
  if (!link.ok())
    return link.failure();
  result.link = std::move(link.value());
  RETURN_IF_FAILED(fill()); // the copies wrote into it
  addFamilies();
  RETURN_IF_FAILED(measure(options.budgetNs * 4 / 5));
  RETURN_IF_FAILED(collect(result.device));
  return result;
}

Result<GpuMeasurements> calibrateGpu(const GpuCalibration &options) {
  Result<runtime::GpuInfo> info = runtime::openGpu();
  if (!info.ok())
    return info.failure();
  Result<runtime::GraphTimer> timer = runtime::GraphTimer::create();
  if (!timer.ok())
    return timer.failure();
  return GpuCalibrator(options, std::move(timer.value())).run(info.value());
}

} // namespace mcc::placement

const MccGpuCalibrator mccrt_gpu_calibrator = {mcc::placement::calibrateGpu};
