// Reading files and descriptors, with errors that name the file.
#pragma once

#include "runtime-lib/src/Result.h"

#include <cstdint>
#include <optional>
#include <string>

namespace mcc::runtime {

/// Returns the content of a small file of the system (at most 4 KiB, without final newlines); nullopt where it
/// cannot be read.
std::optional<std::string> readSmallFile(const std::string &path);

/// Returns the content of a regular file or of a pipe (`-`: standard input), at most `limitBytes`.
/// Messages begin with the path.
Result<std::string> readFile(const std::string &path, size_t limitBytes);

/// Reads a file or pipe line by line, however long it is as a whole.
class LineReader {
public:
  /// Opens `path`; `-` is standard input.
  static Result<LineReader> open(const std::string &path);
  LineReader(LineReader &&other) noexcept;
  LineReader &operator=(LineReader &&) = delete;
  ~LineReader();

  /// Puts the next line, without its newline, into `line`; false at the end. Refuses lines of more than 64 MiB.
  Result<bool> next(std::string &line);
  /// Returns the name for messages.
  const std::string &name() const { return path; }
  /// Returns the number of the line that next() gave last, from 1.
  int64_t number() const { return lineNumber; }

private:
  LineReader(std::string path, int descriptor) : path(std::move(path)), descriptor(descriptor) {}
  std::string path;
  int descriptor;
  std::string buffer;
  size_t used = 0; ///< bytes of buffer already given
  int64_t lineNumber = 0;
  bool ended = false;
};

/// Returns "path: error: cannot open: reason" for the current errno.
Failure systemFailure(const std::string &path, const char *action);

} // namespace mcc::runtime
