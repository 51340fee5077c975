// The executable's choice of a plan, and predicted beside measured.
#include "runtime-lib/placement/Resolve.h"
#include "runtime-lib/placement/ProfileTable.h"
#include "test/unit/placement/Profiles.h"
#include "test/unit/placement/Programs.h"

#include <doctest/doctest.h>

using namespace mcc;
using namespace mcc::placement;
using namespace mcc::placement::test;

TEST_CASE("the built plan is taken as it is") {
  TableProgram program = decoder(1, 64);
  program.launches[2].device = 1;
  const Resolved resolved = resolve(program.table(), {}).value();
  CHECK(resolved.devices == builtDevices(program.table()));
  CHECK(resolved.devices[2] == Device::Gpu);
  CHECK(resolved.devices[1] == Device::Cpu);
  CHECK(resolved.notes.empty());
}

TEST_CASE("another plan is said in one line, and only costs ask for a calibration") {
  TableProgram program = decoder(8, 2048);
  ResolveOptions options;
  options.workload = {128, 128, 64};
  int asked = 0;
  options.calibration = [&]() -> Result<Profile> {
    ++asked;
    return makeProfile();
  };
  options.how = "cpu";
  CHECK(resolve(program.table(), options).value().notes.empty());
  options.how = "gpu";
  const Resolved gpu = resolve(program.table(), options).value();
  CHECK(gpu.devices == std::vector<Device>(52, Device::Gpu));
  REQUIRE(gpu.notes.size() == 1);
  CHECK(gpu.notes[0] ==
        "placement: 52 of 52 launches on the gpu; built with 0, and the other device adds in another order");
  CHECK(asked == 0);
  options.how = "auto";
  const Resolved best = resolve(program.table(), options).value();
  CHECK(asked == 1);
  CHECK(best.devices == std::vector<Device>(52, Device::Gpu));
  REQUIRE(best.placed);
  CHECK(best.placed->plan.optimal());
}

TEST_CASE("failures are passed on") {
  TableProgram program = decoder(1, 64);
  ResolveOptions options;
  options.how = "/nonexistent/rules";
  CHECK(resolve(program.table(), options).message().find("--placement takes 'cpu', 'gpu', 'auto' or a file") !=
        std::string::npos);
  options.how = "auto";
  options.calibration = [] { return Result<Profile>(Failure{"no clock"}); };
  CHECK(resolve(program.table(), options).message() == "no clock");
  options.calibration = nullptr;
  CHECK(resolve(program.table(), options).message().find("op 'embed' is left to its cost") == 0);
}

TEST_CASE("predicted beside measured") {
  Problem problem;
  problem.ops = {{"embed", {PhaseNs{2000, 1000}, PhaseNs{500, 250}}}, {"head", {PhaseNs{8000, 4000}, PhaseNs{0, 0}}}};
  const Measured measured{{Device::Gpu, Device::Cpu}, {{1000, 5000}, {4000, 60000}}, 10};
  CHECK(profileTable(problem, measured).value() ==
        "op     on   prefill us  measured  ratio  decode us  measured  ratio\n"
        "embed  gpu         0.5       1.0   2.00        0.2       0.5   2.00\n"
        "head   cpu         8.0       4.0   0.50        4.0       6.0   1.50\n"
        "total              8.5       5.0   0.59        4.2       6.5   1.53\n");
  const Measured unpredicted{{Device::Gpu, Device::Gpu}, {{1000, 5000}, {0, 60000}}, 10};
  CHECK(profileTable(problem, unpredicted)
            .value()
            .find("head   gpu           -         -      -          -       6.0      -\n") != std::string::npos);
  CHECK(profileTable(problem, {}).message() == "measured 0 ops on 0 devices; the problem has 2");
}
