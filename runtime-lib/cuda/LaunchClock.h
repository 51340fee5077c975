// Times of launches on a stream, by events between them.
#pragma once

#include "runtime-lib/cuda/Calls.h"
#include "runtime-lib/src/LaunchTimes.h"

namespace mcc::runtime {

/// Marks launches and adds their times once they are done. A mark keeps a launch from starting before the one before it
/// has ended.
class LaunchClock {
public:
  LaunchClock() = default;
  LaunchClock(const LaunchClock &) = delete;
  LaunchClock &operator=(const LaunchClock &) = delete;
  ~LaunchClock();
  /// Marks that what comes next on the stream is `launch`, or none of the program's launches where noLaunch.
  Status mark(cudaStream_t stream, uint32_t launch);
  /// Adds the times between the marks so far, of a step of `tokens` tokens, and forgets the marks. The stream must be
  /// idle.
  Status collect(LaunchTimes &times, int64_t tokens);

  static constexpr uint32_t noLaunch = UINT32_MAX;

private:
  std::vector<cudaEvent_t> events; ///< made as they are needed, used again
  std::vector<uint32_t> marks;     ///< by event in use, what comes after it
};

} // namespace mcc::runtime
