// A program's table (mcc/Program.h) as a placement problem, and its solution.
#pragma once

#include "mcc/Program.h"
#include "runtime-lib/placement/CostModel.h"
#include "runtime-lib/placement/Rules.h"
#include "runtime-lib/placement/Solve.h"

namespace mcc::placement {

/// Returns at most how many bytes a program takes of GPU memory for steps of up to `chunk` tokens beside its weights
/// and caches: the activations and the kernels' workspaces.
uint64_t gpuActivationBytes(const MccProgram &program, int64_t chunk);

/// Returns the problem of placing a program's launches, one op for each in their order:
/// - a weight for each region of the weights, a state for each cache and for what `logits` leaves to `argmax`;
/// - a tensor for each version of a region of the arena that a later launch reads. A launch that writes a region which
///   was written before in the step counts as reading it too.
/// Costs are all 0 where `costs` is null. Launches without a CUDA launcher stay on the CPU; all do where `costs` has no
/// GPU. Fails where the table is not one of this version's.
Result<Problem> problemOf(const MccProgram &program, const CostModel *costs, const Workload &workload);

/// What to place for.
struct PlacementRequest {
  const Profile *profile = nullptr; ///< null: the rules decide everything
  std::vector<Rule> rules;
  Workload workload;
  /// Bytes that the program may take of the GPU's memory; nullopt: 15/16 of what the profile's has, where it says so.
  std::optional<uint64_t> gpuMemory;
};

/// A placed program: what was solved, the solution, and rules that matched nothing.
struct Placed {
  Problem problem;
  Plan plan;
  std::vector<std::string> notes;
};

/// Places a program's launches. A profile without a GPU counts as none where a rule asks for the GPU. Fails where
/// problemOf, applyRules and solve do, and where a launch is left to its cost without a profile.
Result<Placed> placeProgram(const MccProgram &program, const PlacementRequest &request);

} // namespace mcc::placement
