// The prediction is that of placement: the same problem, built for the sequences that were run.
#include "runtime-lib/src/LaunchProfile.h"

#include "mcc/Program.h"
#include "runtime-lib/placement/ProfileTable.h"
#include "runtime-lib/placement/ProgramGraph.h"
#include "runtime-lib/src/Text.h"

#include <algorithm>

namespace mcc::runtime {

Result<std::unique_ptr<LaunchProfile>> LaunchProfile::start(Session &session, MachineCosts &costs) {
  const MccProgram *program = session.model().program;
  if (program == nullptr)
    return Failure{"error: '--profile': this model was compiled for the CPU alone and has no table of its ops; compile it with --placement gpu or auto"};
  std::unique_ptr<LaunchProfile> profile(new LaunchProfile(program->launchCount));
  if (costs.available()) {
    Result<placement::Profile> machine = costs.get();
    if (!machine.ok())
      return machine.failure();
    profile->machine = std::move(machine.value());
  }
  session.measure(&profile->times);
  return profile;
}

Result<std::string> LaunchProfile::table(const Session &session, int64_t prompt, int64_t newTokens, int64_t chunk) const {
  using namespace placement;
  if (!session.report().lastError.empty())
    return Failure{concat("no profile: the GPU was given up: ", session.report().lastError)};
  std::optional<CostModel> costs;
  if (machine)
    costs.emplace(*machine);
  Result<Problem> problem = problemOf(*session.model().program, costs ? &*costs : nullptr, {prompt, newTokens, chunk});
  if (!problem.ok())
    return problem.failure();
  const double sequences = static_cast<double>(std::max<int64_t>(times.sequences, 1));
  Measured measured;
  measured.decodeSteps = static_cast<double>(times.decodeSteps);
  for (size_t i = 0; i < times.launches.size(); ++i) {
    measured.devices.push_back(i < onGpu.size() && onGpu[i] ? Device::Gpu : Device::Cpu);
    measured.ops.push_back({times.launches[i].prefillNs / sequences, times.launches[i].decodeNs});
  }
  return profileTable(problem.value(), measured);
}

} // namespace mcc::runtime
