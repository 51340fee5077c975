// Each kernel is one or two kinds of measured work. Left out, as below a percent of a step: the norm that is folded
// into `linear` and `logits`, their biases and residuals, and the trigonometry of `rotary`.
#include "runtime-lib/placement/CostModel.h"

#include "kernels/KernelTable.h"
#include "runtime-lib/src/Text.h"

#include <algorithm>

namespace mcc::placement {

using runtime::concat;

namespace {

/// The named int arguments of a launch.
struct Arguments {
  const KernelInfo &kernel;
  std::span<const int64_t> ints;
  double operator[](std::string_view name) const { return static_cast<double>(ints[kernel.intIndex(name)]); }
};

} // namespace

/// Returns the bytes of `elems` elements, blocks begun counted in part.
static double bytesOf(Format format, double elems) {
  const FormatInfo &info = formatInfo(format);
  return elems * static_cast<double>(info.blockBytes) / static_cast<double>(info.blockElems);
}

static Work productWork(const Arguments &arguments, Format format, double m, double rows) {
  Work work;
  work.m = m;
  work.n = rows;
  work.k = arguments["cols"];
  work.weightBytes = bytesOf(format, work.n * work.k);
  return work;
}

/// Returns the first key that a query at `position` sees.
static int64_t firstKey(int64_t position, int64_t window, int64_t chunk) {
  const int64_t inWindow = window > 0 ? std::max<int64_t>(position - window + 1, 0) : 0;
  return std::max(inWindow, chunk > 0 ? position / chunk * chunk : 0);
}

static Work attentionWork(const Arguments &arguments, int64_t tokens, int64_t position) {
  const auto window = static_cast<int64_t>(arguments["window"]), chunk = static_cast<int64_t>(arguments["chunk"]);
  int64_t keys = tokens * position + tokens * (tokens + 1) / 2;
  if (window > 0 || chunk > 0)
    for (int64_t query = position; query < position + tokens; ++query)
      keys -= firstKey(query, window, chunk);
  // A cache read cannot avoid what any of the queries sees; the first of them sees the first key.
  const int64_t read = position + tokens - firstKey(position, window, chunk);
  const double elements = 2 * arguments["head_dim"];
  Work work;
  work.keyBytes = arguments["kv_heads"] * static_cast<double>(read) * elements * sizeof(float);
  work.attentionMacs = arguments["heads"] * static_cast<double>(keys) * elements;
  return work;
}

/// Returns the work of element-wise kernels per token, in bytes; negative for any other kernel.
static double rowBytes(const Arguments &arguments, Format format) {
  const std::string &name = arguments.kernel.name;
  constexpr double word = sizeof(float);
  if (name == "embed")
    return bytesOf(format, arguments["cols"]) + word * arguments["cols"];
  if (name == "positions")
    return bytesOf(format, arguments["cols"]) + 2 * word * arguments["cols"];
  if (name == "norm" || name == "activate" || name == "clamp" || name == "scale" || name == "xielu")
    return 2 * word * arguments["cols"];
  if (name == "gate" || name == "add")
    return 3 * word * arguments["cols"];
  if (name == "rotary")
    return 2 * word * arguments["pairs"];
  if (name == "route")
    return word * arguments["experts"] * (2 + arguments["chosen"]);
  if (name == "combine")
    return word * (1 + arguments["slots"]) * arguments["cols"];
  if (name == "assemble")
    return 2 * word * arguments["heads"] * arguments["head_dim"];
  if (name == "conv")
    return word * (2 + arguments["taps"]) * arguments["channels"];
  // A state is read and written; its exponentials cost as much again.
  if (name == "selective_scan")
    return 4 * word * arguments["channels"] * arguments["depth"];
  if (name == "state_scan")
    return 2 * word * arguments["heads"] * arguments["head_dim"] * arguments["depth"];
  if (name == "delta_scan")
    return 4 * word * arguments["value_heads"] * arguments["value_dim"] * arguments["key_dim"];
  if (name == "rope_cache")
    return 2 * word * (arguments["heads"] + 2 * arguments["kv_heads"]) * arguments["head_dim"];
  return -1;
}

// Images, whose work does not know of tokens: a convolution is a product over all windows.
static Work convolutionWork(const Arguments &arguments) {
  Work work;
  work.m = arguments["batch"] * arguments["out_height"] * arguments["out_width"];
  work.n = arguments["out_channels"];
  work.k = arguments["channels"] / arguments["groups"] * arguments["kernel_h"] * arguments["kernel_w"];
  work.weightBytes = bytesOf(Format::F32, work.n * work.k);
  return work;
}

static Work poolingWork(const Arguments &arguments) {
  Work work;
  work.rowBytes = sizeof(float) * arguments["planes"] * arguments["out_height"] * arguments["out_width"] *
                  (1 + arguments["kernel_h"] * arguments["kernel_w"]);
  return work;
}

Result<Work> workOf(const Launch &launch, int64_t tokens, int64_t position) {
  const KernelInfo *kernel = findKernel(launch.kernel);
  if (!kernel)
    return Failure{concat("there is no kernel '", launch.kernel, "'")};
  if (launch.ints.size() != kernel->ints.size())
    return Failure{concat("kernel '", launch.kernel, "' has ", kernel->ints.size(), " int arguments; the launch has ",
                          launch.ints.size())};
  const Arguments arguments{*kernel, launch.ints};
  if (kernel->name == "linear")
    return productWork(arguments, launch.format, static_cast<double>(tokens),
                       arguments["rows"] * (arguments["gated"] != 0 ? 2 : 1));
  if (kernel->name == "logits")
    return productWork(arguments, launch.format, 1, arguments["rows"]);
  if (kernel->name == "experts") { // at most all experts are read
    const double pairs = static_cast<double>(tokens) * arguments["chosen"], rows = arguments["rows"] * (arguments["gated"] != 0 ? 2 : 1);
    return productWork(arguments, launch.format, std::max(1.0, pairs / arguments["experts"]), rows * std::min(pairs, arguments["experts"]));
  }
  if (kernel->name == "attention")
    return attentionWork(arguments, tokens, position);
  if (kernel->name == "conv2d")
    return convolutionWork(arguments);
  if (kernel->name == "pool2d")
    return poolingWork(arguments);
  if (kernel->name == "argmax") // a record of each worker: nothing beside its launch
    return Work{};
  const double bytes = rowBytes(arguments, launch.format);
  if (bytes < 0)
    return Failure{concat("kernel '", launch.kernel, "' has no cost model")};
  Work work;
  work.rowBytes = bytes * static_cast<double>(tokens);
  return work;
}

CostModel::CostModel(const Profile &profile) : profile(profile) {
  launchNs[index(Device::Cpu)] = median(profile.cpu.launch);
  if (profile.gpu) {
    launchNs[index(Device::Gpu)] = median(profile.gpu->launch);
    syncNs = median(profile.gpu->sync);
  }
}

double CostModel::costOf(Device device, const Work &work, Format format) const {
  const DeviceProfile &times = profileOf(device);
  double ns = launchNs[index(device)] + times.rows.at(work.rowBytes);
  if (const MatrixTimes *matrix = work.m > 0 ? times.matrix(format) : nullptr)
    ns += matrix->at(work.m, work.n, work.k, work.weightBytes);
  // Attention is bound by reading the cache or by its arithmetic.
  return ns + std::max(times.attentionKeys.at(work.keyBytes), times.attentionMacs.at(work.attentionMacs));
}

Result<double> CostModel::costOf(Device device, const Launch &launch, int64_t tokens, int64_t position) const {
  Result<Work> work = workOf(launch, tokens, position);
  if (!work.ok())
    return work.failure();
  return costOf(device, work.value(), launch.format);
}

Result<PhaseNs> CostModel::costOf(Device device, const Launch &launch, const Workload &workload) const {
  PhaseNs ns;
  for (int64_t at = 0; at < workload.prompt; at += workload.chunk) {
    Result<double> step = costOf(device, launch, std::min(workload.chunk, workload.prompt - at), at);
    if (!step.ok())
      return step.failure();
    ns.prefill += step.value();
  }
  Result<double> step = costOf(device, launch, 1, workload.prompt + workload.newTokens / 2);
  if (!step.ok())
    return step.failure();
  ns.decode = step.value();
  return ns;
}

double CostModel::copyNs(Device to, double bytes, HostMemory memory) const {
  if (!profile.link || bytes <= 0)
    return 0;
  const Link::Direction &direction = to == Device::Gpu ? profile.link->toGpu : profile.link->toCpu;
  const double ns = (memory == HostMemory::Pinned ? direction.pinned : direction.pageable).at(bytes);
  return to == Device::Gpu ? ns : ns + syncNs;
}

PhaseNs CostModel::copyNs(Device to, double bytesPerToken, const Workload &workload) const {
  PhaseNs ns;
  for (int64_t at = 0; at < workload.prompt; at += workload.chunk)
    ns.prefill += copyNs(to, bytesPerToken * static_cast<double>(std::min(workload.chunk, workload.prompt - at)));
  ns.decode = copyNs(to, bytesPerToken);
  return ns;
}

} // namespace mcc::placement
