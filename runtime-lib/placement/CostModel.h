// What a launch costs on a device, from its kernel's arguments and a profile.
#pragma once

#include "runtime-lib/placement/Profile.h"

#include <span>

namespace mcc::placement {

/// One launch of a kernel of kernels/KernelTable.def.
struct Launch {
  std::string_view kernel;
  Format format = Format::F32;   ///< of its weight; for kernels that have one per format
  std::span<const int64_t> ints; ///< its int arguments, in the table's order
};

/// What a launch does, in the units that profiles measure.
struct Work {
  double m = 0, n = 0, k = 0, weightBytes = 0; ///< a matrix product; m 0: none
  double rowBytes = 0;                         ///< bytes read and written element by element
  double keyBytes = 0, attentionMacs = 0;      ///< attention
};

/// Returns the work of a launch with `tokens` tokens from cache position `position`; fails where the kernel is unknown
/// or has another number of arguments.
Result<Work> workOf(const Launch &launch, int64_t tokens, int64_t position);

/// What the user is expected to do with the model (--expect-prompt, --expect-new), at least 1 and 0 tokens.
struct Workload {
  int64_t prompt = 128;
  int64_t newTokens = 128;
  int64_t chunk = 512; ///< most tokens in one step of the prefill
};

/// Whether host memory is page-locked, which copies use well.
enum class HostMemory : uint8_t { Pinned, Pageable };

/// Costs from a profile, which must outlive it.
class CostModel {
public:
  explicit CostModel(const Profile &profile);

  /// Returns whether the profile has the device.
  bool has(Device device) const { return device == Device::Cpu || profile.gpu; }

  /// Returns the time of some work done by one launch on a device that the profile has.
  double costOf(Device device, const Work &work, Format format) const;
  /// Returns the time of one launch, as workOf and costOf.
  Result<double> costOf(Device device, const Launch &launch, int64_t tokens, int64_t position) const;
  /// Returns the time of a launch in the whole prefill, by chunks, and in a decode step halfway through the new tokens.
  Result<PhaseNs> costOf(Device device, const Launch &launch, const Workload &workload) const;

  /// Returns the time of a copy to a device; one to the CPU includes waiting for the GPU.
  double copyNs(Device to, double bytes, HostMemory memory = HostMemory::Pinned) const;
  /// Returns the time of copying a tensor of `bytesPerToken` in the whole prefill and in a decode step.
  PhaseNs copyNs(Device to, double bytesPerToken, const Workload &workload) const;

private:
  const DeviceProfile &profileOf(Device device) const { return device == Device::Cpu ? profile.cpu : *profile.gpu; }
  const Profile &profile;
  std::array<double, 2> launchNs = {};
  double syncNs = 0;
};

} // namespace mcc::placement
