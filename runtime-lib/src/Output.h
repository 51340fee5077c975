// Standard output, written so that a reader who leaves early ends the program quietly.
#pragma once

#include "runtime-lib/src/Result.h"

#include <string>
#include <string_view>

namespace mcc::runtime {

/// Writes to a descriptor without buffering; remembers why it cannot any more. SIGPIPE must be ignored.
class Output {
public:
  explicit Output(int descriptor) : descriptor(descriptor) {}

  /// Writes all of `text`. Returns false, now and from then on, once the reader is gone or a write failed.
  bool write(std::string_view text);

  /// Fails where a write failed for another reason than the reader's leaving (a full disk).
  Status status() const;

private:
  int descriptor;
  int error = 0;
};

/// Writes one line to standard error.
void printError(const std::string &line);

/// Writes one line to standard error and returns the exit status of a diagnosed error, 1.
int reportError(const std::string &line);

/// Returns the exit status 0, or 1 after saying why `out` did not take everything.
int finishOutput(const Output &out);

} // namespace mcc::runtime
