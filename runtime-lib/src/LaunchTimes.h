// What every launch of a program took (--profile).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mcc::runtime {

/// Times of a program's launches, each waited for before the next began. Steps of one token count as decode steps, all
/// others as the prompt's.
struct LaunchTimes {
  struct Sum {
    double prefillNs = 0, decodeNs = 0;
  };
  std::vector<Sum> launches; ///< by launch of the program
  int64_t sequences = 0;     ///< steps at position 0
  int64_t decodeSteps = 0;

  explicit LaunchTimes(size_t launchCount) : launches(launchCount) {}
  /// Counts a step.
  void begin(int64_t tokens, int64_t position) {
    sequences += position == 0;
    decodeSteps += tokens == 1;
  }
  /// Adds a launch of a step of `tokens` tokens.
  void add(uint32_t launch, int64_t tokens, double ns) {
    (tokens == 1 ? launches[launch].decodeNs : launches[launch].prefillNs) += ns;
  }
};

} // namespace mcc::runtime
