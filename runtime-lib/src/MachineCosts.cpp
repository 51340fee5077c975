// A measurement takes a tenth of a second and a part of the GPU's memory, so it comes before the weights' upload and is
// made once.
#include "runtime-lib/src/MachineCosts.h"

#include "mcc/Program.h"
#include "runtime-lib/calibrate/CalibrateMachine.h"
#include "runtime-lib/src/Files.h"
#include "runtime-lib/src/Output.h"
#include "runtime-lib/src/Text.h"

namespace mcc::runtime {

/// Reads a calibration's file.
static Result<placement::Profile> readMachine(const std::string &path) {
  constexpr size_t most = size_t(64) << 20;
  Result<std::string> text = readFile(path, most);
  if (!text.ok())
    return text.failure();
  return placement::readProfile(path, std::move(text.value()));
}

/// Measures this machine for a moment.
static Result<placement::Profile> measureMachine(const MccCalibration &kernels, const Options &options) {
  placement::MachineCalibration request;
  request.threads = options.threads;
  request.budgetNs = 30e6;
  request.prefillParts = prefillPartsOf(options.numerics);
  Result<placement::CalibratedMachine> machine = kernels.machine->run(kernels, request);
  if (!machine.ok())
    return machine.failure();
  const std::string &problem = machine.value().gpuProblem;
  if (!problem.empty() && options.onGpuMissing == GpuMissing::Fail)
    return Failure{concat("error: the GPU cannot be used: ", problem, "; --on-gpu-missing=warn goes on with the CPU")};
  if (!problem.empty() && options.onGpuMissing == GpuMissing::Warn)
    printError(concat("note: the CPU runs everything: ", problem));
  return std::move(machine.value().profile);
}

bool MachineCosts::available() const {
  return !options.machine.empty() || (model.program != nullptr && model.program->calibration != nullptr);
}

Result<placement::Profile> MachineCosts::get() {
  if (known)
    return *known;
  Result<placement::Profile> profile =
      options.machine.empty() ? measureMachine(*model.program->calibration, options) : readMachine(options.machine);
  if (profile.ok())
    known = profile.value();
  return profile;
}

} // namespace mcc::runtime
