// main() of every compiled model. Prepares the process, so that nothing that happens outside it (a closed pipe, a
// weights file cut short while in use, no memory) ends it with a signal or an exception.
#include "mcc/Model.h"
#include "runtime-lib/src/Options.h"
#include "runtime-lib/src/Output.h"
#include "runtime-lib/src/Program.h"
#include "runtime-lib/src/Text.h"

#include <csignal>
#include <exception>
#include <fcntl.h>
#include <new>
#include <string_view>
#include <unistd.h>

namespace {

/// Ends the program when a mapped page cannot be read. Only async-signal-safe calls.
void onUnreadablePage(int) {
  constexpr std::string_view text =
      "error: a page of the weights file cannot be read; the file was cut short while in use, or its device failed\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  _exit(1);
}

void prepareProcess() {
  // A file opened later must not become standard output by taking a closed descriptor's number.
  for (int descriptor = 0; descriptor <= STDERR_FILENO; ++descriptor)
    if (fcntl(descriptor, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0)
      break;
  signal(SIGPIPE, SIG_IGN);
  signal(SIGBUS, onUnreadablePage);
}

std::string programName(int argc, char **argv) {
  const std::string_view path = argc > 0 ? argv[0] : "model";
  return std::string(path.substr(path.rfind('/') + 1));
}

int run(int argc, char **argv) {
  using namespace mcc::runtime;
  const size_t skipped = argc > 0 ? 1 : 0;
  Result<Options> options = parseOptions(std::span<const char *const>(argv + skipped, argc - skipped));
  if (options.ok())
    return runProgram(mcc_model, options.value(), programName(argc, argv));
  printError(concat("error: ", options.message()));
  return 2;
}

} // namespace

int main(int argc, char **argv) {
  prepareProcess();
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc &) {
    mcc::runtime::printError("error: out of memory");
  } catch (const std::exception &error) {
    mcc::runtime::printError(std::string("error: ") + error.what());
  } catch (...) {
    mcc::runtime::printError("error: an unknown exception reached main");
  }
  return 1;
}
