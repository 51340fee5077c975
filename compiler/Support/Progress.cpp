// A progress bar for long work. See Progress.h.
#include "compiler/Support/Progress.h"

#include <cstdio>
#include <unistd.h>

namespace mcc {

Progress::Progress(std::string title, uint64_t total) : title(std::move(title)), total(total), terminal(isatty(STDERR_FILENO)) {}

Progress::~Progress() {
  if (drawn)
    std::fputs("\r\x1b[K", stderr);
}

void Progress::advance(uint64_t amount) {
  done += amount;
  auto now = std::chrono::steady_clock::now();
  if (!terminal || now - last < std::chrono::milliseconds(100))
    return;
  last = now;
  draw();
}

void Progress::draw() {
  constexpr int width = 40;
  double share = total ? static_cast<double>(done) / static_cast<double>(total) : 1;
  int filled = static_cast<int>(share * width);
  std::fprintf(stderr, "\r%s [%s%s] %3d%%", title.c_str(), std::string(filled, '#').c_str(), std::string(width - filled, ' ').c_str(), static_cast<int>(share * 100));
  drawn = true;
}

} // namespace mcc
