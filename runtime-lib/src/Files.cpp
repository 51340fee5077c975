// Reading by open/read, so that an endless or enormous input stops at the limit and not at the end of memory.
#include "runtime-lib/src/Files.h"

#include "runtime-lib/src/Text.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mcc::runtime {

Failure systemFailure(const std::string &path, const char *action) {
  return Failure{concat(path, ": error: cannot ", action, ": ", std::strerror(errno))};
}

std::optional<std::string> readSmallFile(const std::string &path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return std::nullopt;
  char buffer[4096];
  size_t used = 0;
  while (used < sizeof buffer) {
    const ssize_t got = read(descriptor, buffer + used, sizeof buffer - used);
    if (got <= 0)
      break;
    used += static_cast<size_t>(got);
  }
  close(descriptor);
  while (used > 0 && buffer[used - 1] == '\n')
    --used;
  return std::string(buffer, used);
}

/// Reads up to `bytes` once, past interruptions; 0 at the end, negative on an error.
static ssize_t readSome(int descriptor, char *buffer, size_t bytes) {
  ssize_t got;
  do
    got = read(descriptor, buffer, bytes);
  while (got < 0 && errno == EINTR);
  return got;
}

static Result<std::string> readAll(int descriptor, const std::string &name, size_t limitBytes) {
  std::string content;
  char buffer[65536];
  while (true) {
    const ssize_t got = readSome(descriptor, buffer, sizeof buffer);
    if (got < 0)
      return systemFailure(name, "read");
    if (got == 0)
      return content;
    if (content.size() + static_cast<size_t>(got) > limitBytes)
      return Failure{concat(name, ": error: more than ", limitBytes, " bytes, the most that is read")};
    content.append(buffer, static_cast<size_t>(got));
  }
}

Result<std::string> readFile(const std::string &path, size_t limitBytes) {
  if (path == "-")
    return readAll(STDIN_FILENO, "standard input", limitBytes);
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return systemFailure(path, "open");
  Result<std::string> content = readAll(descriptor, path, limitBytes);
  close(descriptor);
  return content;
}

static constexpr size_t longestLine = size_t(64) << 20;

Result<LineReader> LineReader::open(const std::string &path) {
  if (path == "-")
    return LineReader("standard input", STDIN_FILENO);
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return systemFailure(path, "open");
  return LineReader(path, descriptor);
}

LineReader::LineReader(LineReader &&other) noexcept
    : path(std::move(other.path)), descriptor(std::exchange(other.descriptor, -1)), buffer(std::move(other.buffer)),
      used(other.used), lineNumber(other.lineNumber), ended(other.ended) {}

LineReader::~LineReader() {
  if (descriptor > STDERR_FILENO)
    close(descriptor);
}

Result<bool> LineReader::next(std::string &line) {
  size_t searched = used;
  while (true) {
    const size_t newline = buffer.find('\n', searched);
    if (newline != std::string::npos || (ended && used < buffer.size())) {
      line.assign(buffer, used, newline == std::string::npos ? newline : newline - used);
      used = newline == std::string::npos ? buffer.size() : newline + 1;
      ++lineNumber;
      return true;
    }
    if (ended)
      return false;
    buffer.erase(0, used);
    used = 0;
    searched = buffer.size();
    if (buffer.size() > longestLine)
      return Failure{concat(path, ":", lineNumber + 1, ": error: line has more than ", longestLine, " bytes")};
    char block[65536];
    const ssize_t got = readSome(descriptor, block, sizeof block);
    if (got < 0)
      return systemFailure(path, "read");
    ended = got == 0;
    buffer.append(block, static_cast<size_t>(got));
  }
}

} // namespace mcc::runtime
