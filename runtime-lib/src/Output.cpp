// Unbuffered output: one write per streamed piece of text, which is what "flushed token by token" needs.
#include "runtime-lib/src/Output.h"

#include "runtime-lib/src/Text.h"

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <unistd.h>

namespace mcc::runtime {

bool Output::write(std::string_view text) {
  while (error == 0 && !text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      // The other end set the shared descriptor non-blocking: wait until it takes more.
      pollfd ready{descriptor, POLLOUT, 0};
      poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  return error == 0;
}

Status Output::status() const {
  if (error == 0 || error == EPIPE)
    return {};
  return Failure{concat("error: cannot write standard output: ", std::strerror(error))};
}

void printError(const std::string &line) { Output(STDERR_FILENO).write(line + "\n"); }

int reportError(const std::string &line) {
  printError(line);
  return 1;
}

int finishOutput(const Output &out) {
  const Status status = out.status();
  return status.ok() ? 0 : reportError(status.message());
}

} // namespace mcc::runtime
