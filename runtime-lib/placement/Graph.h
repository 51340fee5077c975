// A placement problem: which device runs each op of the step, what that costs, and what has to lie where.
//
// Costs are additive: every op costs its time on its device, every tensor one copy where it crosses, every
// weight one upload where it is used on the GPU. All times are nanoseconds. The objective is the user's work:
// one prefill of the whole prompt plus `decodeSteps` decode steps, plus the uploads.
#pragma once

#include "runtime-lib/src/Result.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mcc::placement {

using runtime::Failure;
using runtime::Result;
using runtime::Status;

/// Where an op runs. The values index arrays of two.
enum class Device : uint8_t { Cpu, Gpu };

/// Returns the device that is not `device`.
constexpr Device other(Device device) { return device == Device::Cpu ? Device::Gpu : Device::Cpu; }
/// Returns the index of `device` in an array of two.
constexpr size_t index(Device device) { return static_cast<size_t>(device); }
/// Returns "cpu" or "gpu".
const char *deviceName(Device device);

/// A time in the two phases of the work.
struct PhaseNs {
  double prefill = 0; ///< once, for the whole prompt
  double decode = 0;  ///< each decode step
};

/// One launch of the step.
struct Op {
  std::string name;
  std::array<PhaseNs, 2> cost = {}; ///< by Device; ignored where not allowed
  std::array<bool, 2> allowed = {true, true};
  std::optional<Device> forced = {}; ///< by an override rule
  std::string rule = {};             ///< what forced it, for messages ("rules.txt:3")
};

/// Something that lies in a device's memory and that ops need on their own device.
struct Store {
  /// A weight may be on both devices; a state (a KV cache) is on one, with every op that uses it.
  enum class Kind : uint8_t { Weight, State };
  std::string name;
  Kind kind = Kind::Weight;
  uint64_t bytes = 0;               ///< GPU memory it takes there
  double uploadNs = 0;              ///< paid once where it is on the GPU
  double duplicateNs = 0;           ///< paid once where a weight is on both
  std::vector<uint32_t> users = {}; ///< indices of ops
};

/// A value that one op writes and others read; it crosses at most once whatever the number of readers.
struct Tensor {
  std::string name;
  uint32_t producer = 0;
  std::vector<uint32_t> consumers = {};
  uint64_t prefillBytes = 0, decodeBytes = 0;
  std::array<PhaseNs, 2> copyTo = {}; ///< cost of the copy, by the Device that it goes to
};

/// The whole problem. Ops are in the order of execution.
struct Problem {
  std::vector<Op> ops;
  std::vector<Store> stores;
  std::vector<Tensor> tensors;
  double decodeSteps = 0;
  std::optional<uint64_t> gpuMemory; ///< most bytes of stores on the GPU

  /// Returns the whole work's share of a time in both phases.
  double weighted(PhaseNs ns) const { return ns.prefill + decodeSteps * ns.decode; }
  /// Returns whether op `op` may be on `device`: allowed there, and not forced elsewhere.
  bool mayBeOn(uint32_t op, Device device) const {
    return ops[op].allowed[index(device)] && (!ops[op].forced || *ops[op].forced == device);
  }
};

/// Checks indices, times (finite, not negative) and that every op may be somewhere. The message names the op.
Status validate(const Problem &problem);

/// What a placement costs.
struct Evaluation {
  double opsNs = 0, copiesNs = 0, storesNs = 0;
  uint64_t gpuBytes = 0;
  double totalNs() const { return opsNs + copiesNs + storesNs; }
};

/// Evaluates a device for each op, from the definition. States and forced devices are not checked.
Evaluation evaluate(const Problem &problem, const std::vector<Device> &devices);

} // namespace mcc::placement
