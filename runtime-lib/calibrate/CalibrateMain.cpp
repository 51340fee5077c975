// main() of the program that `mcc calibrate` makes and runs: PROGRAM [--threads N] [--milliseconds N]. The profile goes
// to standard output, everything for the reader to standard error.
#include "runtime-lib/calibrate/CalibrateMachine.h"
#include "runtime-lib/src/Output.h"
#include "runtime-lib/src/Text.h"
#include "runtime-lib/src/ThreadPool.h"

#include <charconv>
#include <csignal>
#include <cstdio>
#include <string_view>
#include <unistd.h>

namespace mcc::placement {

using runtime::concat;

/// Reads the options; returns what is wrong with them, empty for nothing.
static std::string readOptions(std::span<char *const> arguments, MachineCalibration &options) {
  for (size_t i = 0; i < arguments.size(); i += 2) {
    const std::string_view name = arguments[i], text = i + 1 < arguments.size() ? arguments[i + 1] : "";
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool isNumber = error == std::errc() && end == text.data() + text.size() && number > 0;
    if (name == "--threads" && isNumber && number <= runtime::maxThreads)
      options.threads = number;
    else if (name == "--milliseconds" && isNumber && number <= 1000000)
      options.budgetNs = static_cast<double>(number) * 1e6;
    else
      return concat("option '", name, "' with value '", text, "'; known are --threads N and --milliseconds N");
  }
  return {};
}

static int run(const MccCalibration &kernels, std::span<char *const> arguments) {
  MachineCalibration options;
  if (std::string problem = readOptions(arguments, options); !problem.empty())
    return runtime::reportError("error: " + problem), 2;
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (terminal)
    options.stage = [](const char *what) { std::fprintf(stderr, "\r\033[Kcalibrating %s", what); };
  Result<CalibratedMachine> machine = calibrateMachine(kernels, options);
  if (terminal)
    std::fprintf(stderr, "\r\033[K");
  if (!machine.ok())
    return runtime::reportError("error: " + machine.message());
  if (!machine.value().gpuProblem.empty())
    runtime::printError(concat("note: no GPU in the profile: ", machine.value().gpuProblem));
  runtime::Output out(STDOUT_FILENO);
  out.write(writeProfile(machine.value().profile));
  return runtime::finishOutput(out);
}

} // namespace mcc::placement

int mccrt_calibrate(const MccCalibration *calibration, int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN);
  const int skipped = argc > 0 ? 1 : 0;
  return mcc::placement::run(*calibration, std::span<char *const>(argv + skipped, argc - skipped));
}
