// A placement that can be changed step by step, with its cost and memory kept up to date.
#pragma once

#include "runtime-lib/placement/Graph.h"

#include <span>

namespace mcc::placement {

/// Lists of numbers by number, in one block of memory.
class Lists {
public:
  /// Makes `count` lists out of (list, value) pairs, keeping the order of the values of each list.
  Lists(size_t count, std::span<const std::pair<uint32_t, uint32_t>> pairs);
  Lists() = default;
  std::span<const uint32_t> operator[](size_t list) const {
    return std::span(values).subspan(begins[list], begins[list + 1] - begins[list]);
  }
  size_t size() const { return begins.empty() ? 0 : begins.size() - 1; }

private:
  std::vector<uint32_t> begins, values;
};

/// What moves as one: ops that share a state, directly or through others; any other op alone.
struct Units {
  std::vector<uint32_t> ofOp;               ///< op -> unit; units are numbered by their first op
  Lists ops;                                ///< unit -> ops
  std::vector<std::optional<Device>> fixed; ///< unit -> the only device that all its ops may be on
};

/// Groups the ops of a valid problem. Fails, naming the ops and rules, where no device suits a whole unit.
Result<Units> makeUnits(const Problem &problem);

/// A placement under change. Flipping costs time in proportion to the stores and tensors of the unit's ops.
class PlanState {
public:
  /// Starts with `devices`; the problem and the units must outlive it.
  PlanState(const Problem &problem, const Units &units, std::vector<Device> devices);

  /// Moves all ops of a unit to the other device.
  void flip(uint32_t unit);
  Device device(uint32_t unit) const { return placed[units.ops[unit].front()]; }
  double cost() const { return costNs; }
  uint64_t bytes() const { return gpuBytes; }
  const std::vector<Device> &devices() const { return placed; }
  /// Returns how many flips were made.
  int64_t flips() const { return flipCount; }

private:
  double storeCost(uint32_t store) const;
  double tensorCost(uint32_t tensor) const;
  void flipOp(uint32_t op);

  const Problem &problem;
  const Units &units;
  std::vector<Device> placed;
  std::vector<std::array<double, 2>> opCost, copyCost; ///< weighted
  Lists storesOf, producedBy, readBy;                  ///< by op
  std::vector<uint32_t> storeUsers, storeGpuUsers, readers, gpuReaders;
  double costNs = 0;
  uint64_t gpuBytes = 0;
  int64_t flipCount = 0;
};

} // namespace mcc::placement
