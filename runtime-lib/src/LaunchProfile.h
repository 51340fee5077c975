// Predicted against measured times of a run (--profile).
#pragma once

#include "runtime-lib/placement/Profile.h"
#include "runtime-lib/src/MachineCosts.h"
#include "runtime-lib/src/Session.h"

#include <memory>

namespace mcc::runtime {

/// What a run's launches were predicted to take, and took. Lives as long as the session that it measures.
class LaunchProfile {
public:
  /// Begins to measure a session, before it takes a GPU. Without a calibration nothing is predicted.
  static Result<std::unique_ptr<LaunchProfile>> start(Session &session, MachineCosts &costs);
  /// Says where launches run; by launch.
  void setPlan(std::vector<bool> plan) { onGpu = std::move(plan); }
  /// Returns the table (placement/ProfileTable.h) for sequences of `prompt` tokens in steps of at most `chunk` and
  /// `newTokens` steps after it. Fails where the GPU was given up on the way.
  Result<std::string> table(const Session &session, int64_t prompt, int64_t newTokens, int64_t chunk) const;

private:
  explicit LaunchProfile(size_t launches) : times(launches) {}
  LaunchTimes times;
  std::optional<placement::Profile> machine;
  std::vector<bool> onGpu;
};

} // namespace mcc::runtime
