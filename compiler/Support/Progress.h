// A progress bar for long work: drawn on a terminal, silent in a pipe.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace mcc {

/// Draws `title [#####     ] 42%` on stderr, at most ten times a second, and wipes it when destroyed.
class Progress {
public:
  Progress(std::string title, uint64_t total);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;
  /// Adds `amount` of the total.
  void advance(uint64_t amount);

private:
  void draw();
  std::string title;
  uint64_t total, done = 0;
  bool terminal, drawn = false;
  std::chrono::steady_clock::time_point last;
};

} // namespace mcc
