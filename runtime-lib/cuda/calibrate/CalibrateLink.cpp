// Pinned copies are timed on the device, for in a step they run in its stream; pageable ones on the host, which they
// occupy.
#include "runtime-lib/cuda/calibrate/CalibrateLink.h"

#include "runtime-lib/placement/Sampling.h"
#include "runtime-lib/src/Files.h"
#include "runtime-lib/src/Text.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstring>

namespace mcc::placement {

using runtime::call;
using runtime::concat;

namespace {

/// One of the four ways of copying.
struct Way {
  cudaMemcpyKind kind;
  bool pinned;
};

class LinkCalibrator {
public:
  LinkCalibrator(runtime::GraphTimer &timer, uint8_t *device) : timer(timer), device(device) {}
  Result<Link> run(uint64_t most, double budgetNs);

private:
  Result<double> copyNs(Way way, uint64_t bytes);

  runtime::GraphTimer &timer;
  uint8_t *device;
  runtime::PinnedMemory pinned;
  std::vector<uint8_t> pageable;
};

constexpr Way ways[] = {{cudaMemcpyHostToDevice, true},
                        {cudaMemcpyHostToDevice, false},
                        {cudaMemcpyDeviceToHost, true},
                        {cudaMemcpyDeviceToHost, false}};

} // namespace

Result<double> LinkCalibrator::copyNs(Way way, uint64_t bytes) {
  uint8_t *host = way.pinned ? pinned.data() : pageable.data();
  const bool toGpu = way.kind == cudaMemcpyHostToDevice;
  void *to = toGpu ? device : host;
  const void *from = toGpu ? host : device;
  if (way.pinned)
    return timer.deviceNs([&] { return call(CUDA_NAME(cudaMemcpyAsync), to, from, bytes, way.kind, timer.stream()); });
  const auto start = std::chrono::steady_clock::now();
  RETURN_IF_FAILED(call(CUDA_NAME(cudaMemcpy), to, from, bytes, way.kind));
  RETURN_IF_FAILED(call(CUDA_NAME(cudaDeviceSynchronize)));
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

Result<Link> LinkCalibrator::run(uint64_t most, double budgetNs) {
  Result<runtime::PinnedMemory> memory = runtime::PinnedMemory::create(most);
  if (!memory.ok())
    return memory.failure();
  pinned = std::move(memory.value());
  std::memset(pinned.data(), 1, most);
  pageable.assign(most, 1);
  std::vector<SampleFamily> families(std::size(ways));
  for (SampleFamily &family : families)
    for (uint64_t bytes = 4096; bytes <= most; bytes *= 8)
      family.push_back({static_cast<double>(bytes), static_cast<double>(bytes) + 1e5});
  Status status;
  takeSamples(families, {budgetNs, 15, 10e3, 20e3}, [&](size_t way, size_t point, double) {
    Result<double> ns = copyNs(ways[way], static_cast<uint64_t>(families[way][point].size));
    if (ns.ok())
      return ns.value();
    status = ns.failure();
    return -1.0;
  });
  RETURN_IF_FAILED(status);
  Link link;
  Curve *curves[] = {&link.toGpu.pinned, &link.toGpu.pageable, &link.toCpu.pinned, &link.toCpu.pageable};
  for (size_t way = 0; way < std::size(ways); ++way) {
    Result<Curve> curve = curveOf(families[way]);
    if (!curve.ok())
      return curve.failure();
    *curves[way] = std::move(curve.value());
  }
  return link;
}

Result<Link> calibrateLink(runtime::GraphTimer &timer, uint8_t *device, uint64_t bytes, double budgetNs) {
  // Page-locking takes a third of a millisecond a megabyte, which is not of the budget.
  const uint64_t most = std::min<uint64_t>(bytes, uint64_t(budgetNs < 100e6 ? 4 : 128) << 20);
  return LinkCalibrator(timer, device).run(most, budgetNs);
}

std::string linkName() {
  char bus[32] = {};
  if (cudaDeviceGetPCIBusId(bus, sizeof bus, 0) != cudaSuccess)
    return "unknown";
  std::string folder = "/sys/bus/pci/devices/";
  for (const char *c = bus; *c != 0; ++c)
    folder += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  const std::optional<std::string> speed = runtime::readSmallFile(folder + "/max_link_speed"),
                                   width = runtime::readSmallFile(folder + "/max_link_width");
  return speed && width ? concat(*speed, " x", *width) : "unknown";
}

std::string driverName(int cudaVersion) {
  // "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build ..."
  if (const std::optional<std::string> text = runtime::readSmallFile("/proc/driver/nvidia/version"))
    for (size_t at = 0; (at = text->find("  ", at)) != std::string::npos; ++at) {
      const size_t begin = text->find_first_not_of(' ', at), end = text->find_first_not_of("0123456789.", begin);
      if (begin != std::string::npos && end != std::string::npos && (*text)[end] == ' ' && end > begin + 2)
        return text->substr(begin, end - begin);
    }
  return concat("CUDA ", cudaVersion / 1000, '.', cudaVersion % 1000 / 10);
}

} // namespace mcc::placement
