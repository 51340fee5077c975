// Decides by the same code and from the same table as the executable does at its start: the program is laid out as
// mcc/Program.h has it, placed by runtime-lib/placement, and the devices written back to the launches.
#include "compiler/Driver/PlaceLaunches.h"

#include "compiler/Driver/CalibrateCommand.h"
#include "compiler/Support/Error.h"
#include "dialects/Exec/IR/ProgramTable.h"
#include "runtime-lib/placement/Explain.h"
#include "runtime-lib/placement/ProgramGraph.h"
#include "runtime-lib/src/Files.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/raw_ostream.h"

namespace mcc {
namespace {

// Most bytes of a calibration's file.
constexpr size_t profileLimit = size_t(64) << 20;

// The table of a program in the form of the object's C ABI, with storage of its own. It has no code: nothing runs.
class ProgramArrays {
public:
  explicit ProgramArrays(exec::ProgramOp program)
      : table(exec::programTable(program)), arguments(table.launches.size()) {
    for (const exec::TableRegion &region : table.regions)
      regions.push_back({static_cast<uint32_t>(region.space), 0, static_cast<uint64_t>(region.offset),
                         static_cast<uint64_t>(region.bytes), static_cast<uint64_t>(region.rowBytes)});
    for (auto [launch, buffers] : llvm::zip_equal(table.launches, arguments)) {
      for (const exec::TableArgument &argument : launch.buffers)
        buffers.push_back({argument.region < 0 ? MCC_NO_REGION : static_cast<uint32_t>(argument.region),
                           argument.written, static_cast<uint64_t>(argument.offset)});
      launches.push_back({launch.name.c_str(), launch.kernel, launch.format ? static_cast<int32_t>(*launch.format) : -1,
                          static_cast<uint32_t>(launch.device), launch.barrier, buffers.data(), launch.ints.data(),
                          launch.floats.data(), nullptr, nullptr});
    }
  }
  ProgramArrays(const ProgramArrays &) = delete;
  ProgramArrays &operator=(const ProgramArrays &) = delete;

  /// Returns the program; it is valid as long as this.
  MccProgram view() const {
    return {static_cast<uint32_t>(regions.size()), static_cast<uint32_t>(launches.size()), regions.data(),
            launches.data(), nullptr};
  }

private:
  exec::ProgramTable table;
  std::vector<MccRegion> regions;
  std::vector<std::vector<MccArgument>> arguments;
  std::vector<MccLaunch> launches;
};

// Makes a diagnosed error of a message that may begin with its place; `what` tells what failed where it does not.
llvm::Error failureOf(llvm::StringRef message, llvm::StringRef what) {
  auto [where, fact] = message.split(": error: ");
  if (!fact.empty())
    return diagnose(where.str(), "{0}", fact);
  return diagnose("", "{0}: {1}", what, message);
}

llvm::Expected<placement::Profile> openProfile(const std::string &path) {
  runtime::Result<std::string> text = runtime::readFile(path, profileLimit);
  if (!text.ok())
    return failureOf(text.message(), "--machine");
  runtime::Result<placement::Profile> profile = placement::readProfile(path, std::move(text.value()));
  if (!profile.ok())
    return failureOf(profile.message(), "--machine");
  return std::move(profile.value());
}

// Returns the formats of the program's weights, each once.
std::vector<Format> formatsOf(exec::ProgramOp program) {
  llvm::SetVector<uint8_t> formats;
  for (exec::LaunchOp launch : program.getBody().getOps<exec::LaunchOp>())
    if (launch.getFormat())
      formats.insert(static_cast<uint8_t>(*parseFormat(*launch.getFormat())));
  std::vector<Format> result;
  for (uint8_t format : formats)
    result.push_back(static_cast<Format>(format));
  return result;
}

// Returns the profile to place by; none where a file of rules may do without.
llvm::Expected<std::optional<placement::Profile>> profileFor(exec::ProgramOp program, const PlacementOptions &options) {
  std::optional<placement::Profile> profile;
  if (options.machine.empty() && options.how != "auto")
    return profile;
  llvm::Expected<placement::Profile> found =
      options.machine.empty() ? measureThisMachine(formatsOf(program)) : openProfile(options.machine);
  if (!found)
    return found.takeError();
  if (options.machine.empty())
    llvm::errs() << "note: placed for this machine as measured now; a plan that comes out the same every time takes --machine FILE (mcc calibrate)\n";
  profile = std::move(*found);
  return profile;
}

PredictedCost predictedCost(const placement::Plan &plan, const placement::Profile &profile,
                            const PlacementOptions &options) {
  const placement::Fingerprint &machine = profile.machine;
  return {plan.cost.opsNs,    plan.cost.copiesNs,   plan.cost.storesNs, plan.boundNs,
          plan.cost.gpuBytes, options.expectPrompt, options.expectNew,  machine.cpu,
          machine.threads,    machine.gpu,          machine.driver,     machine.link};
}

} // namespace

llvm::Expected<PlacementResult> placeLaunches(exec::ProgramOp program, const PlacementOptions &options) {
  const std::string what = "--placement " + options.how;
  runtime::Result<std::vector<placement::Rule>> rules = placement::rulesOf(options.how);
  if (!rules.ok())
    return failureOf(rules.message(), what);
  llvm::Expected<std::optional<placement::Profile>> found = profileFor(program, options);
  if (!found)
    return found.takeError();
  const std::optional<placement::Profile> &profile = *found;
  const placement::Workload workload{options.expectPrompt, options.expectNew, static_cast<int64_t>(program.getChunk())};
  ProgramArrays arrays(program);
  runtime::Result<placement::Placed> placed = placement::placeProgram(
      arrays.view(), {profile ? &*profile : nullptr, std::move(rules.value()), workload, options.gpuMemory});
  if (!placed.ok())
    return failureOf(profile ? placed.message() : placed.message() + "; give one with --machine FILE", what);
  for (const std::string &note : placed.value().notes)
    llvm::errs() << "note: " << note << "\n";
  const placement::Plan &plan = placed.value().plan;
  size_t next = 0;
  for (exec::LaunchOp launch : program.getBody().getOps<exec::LaunchOp>())
    launch.setDevice(plan.devices[next++] == placement::Device::Gpu ? ir::Device::Gpu : ir::Device::Cpu);
  PlacementResult result;
  if (profile)
    result.predicted = predictedCost(plan, *profile, options);
  if (options.explain) {
    runtime::Result<std::string> text = placement::explainTable(placed.value().problem, plan);
    if (!text.ok())
      return failureOf(text.message(), what);
    result.explanation = std::move(text.value());
  }
  return result;
}

} // namespace mcc
