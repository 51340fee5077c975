// Programs as problems: what depends on what, what it costs, and plans for whole programs.
#include "runtime-lib/placement/ProgramGraph.h"
#include "kernels/KernelTable.h"
#include "test/unit/placement/Problems.h"
#include "test/unit/placement/Profiles.h"
#include "test/unit/placement/Programs.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

using namespace mcc;
using namespace mcc::placement;
using namespace mcc::placement::test;

static uint32_t opCalled(const Problem &problem, const std::string &name) {
  for (uint32_t op = 0; op < problem.ops.size(); ++op)
    if (problem.ops[op].name == name)
      return op;
  FAIL("no op " << name);
  return 0;
}

/// Returns the ops that read what `name` wrote.
static std::vector<std::string> readersOf(const Problem &problem, const std::string &name) {
  std::vector<std::string> readers;
  for (const Tensor &tensor : problem.tensors)
    if (problem.ops[tensor.producer].name == name)
      for (const uint32_t op : tensor.consumers)
        readers.push_back(problem.ops[op].name);
  return readers;
}

TEST_CASE("every kernel with a CUDA launcher is in the table") {
  for (const char *name : {
#define MCC_CUDA_KERNEL(name) #name,
#include "kernels/CudaKernels.def"
       }) {
    CAPTURE(name);
    CHECK(findKernel(name));
    CHECK(hasCudaLauncher(name));
  }
  CHECK(!hasCudaLauncher("conv9"));
}

TEST_CASE("a decoder's values, weights and states") {
  TableProgram program = decoder(2, 64);
  const Problem problem = problemOf(program.table(), nullptr, {}).value();
  REQUIRE(problem.ops.size() == 2 + 2 * 6 + 2);
  CHECK(problem.decodeSteps == 127);
  using Names = std::vector<std::string>;
  CHECK(readersOf(problem, "embed") == Names{"layers.0.qkv", "layers.0.o"});
  CHECK(readersOf(problem, "rotary") == Names{"layers.0.rope", "layers.1.rope"});
  CHECK(readersOf(problem, "layers.0.qkv") == Names{"layers.0.rope"}); // rewritten in place there
  CHECK(readersOf(problem, "layers.0.rope") == Names{"layers.0.attention"});
  CHECK(readersOf(problem, "layers.0.o") == Names{"layers.0.up", "layers.0.down"});
  CHECK(readersOf(problem, "layers.0.down") == Names{"layers.1.qkv", "layers.1.o"});
  CHECK(readersOf(problem, "layers.1.down") == Names{"head"});
  CHECK(readersOf(problem, "head").empty()); // its partials are a state
  std::map<std::string, Names> users;
  for (const Store &store : problem.stores)
    for (const uint32_t op : store.users)
      users[store.name].push_back(problem.ops[op].name);
  CHECK(users["weight of embed"] == Names{"embed", "head"}); // tied: uploaded once
  CHECK(users["state of layers.1.rope"] ==
        Names{"layers.1.rope", "layers.1.attention", "layers.1.rope", "layers.1.attention"});
  CHECK(users["state of head"] == Names{"head", "head"});
  CHECK(users["weight of layers.0.qkv"] == Names{"layers.0.qkv", "layers.0.qkv"}); // the matrix and its norm
}

TEST_CASE("costs are the cost model's, and the host fetches the token") {
  const Profile profile = makeProfile();
  const CostModel model(profile);
  const Workload workload{300, 10, 128};
  TableProgram program = decoder(1, 64);
  const Problem problem = problemOf(program.table(), &model, workload).value();
  for (uint32_t op = 0; op < problem.ops.size(); ++op) {
    CAPTURE(problem.ops[op].name);
    const MccLaunch &launch = program.launches[op];
    const KernelInfo &kernel = kernels()[launch.kernel];
    for (const Device device : {Device::Cpu, Device::Gpu}) {
      const Format format = launch.format < 0 ? Format::F32 : static_cast<Format>(launch.format);
      const std::span ints(launch.ints, kernel.ints.size());
      PhaseNs expected = model.costOf(device, {kernel.name, format, ints}, workload).value();
      if (kernel.name == "argmax" && device == Device::Gpu)
        expected.prefill += model.copyNs(Device::Cpu, 4), expected.decode += model.copyNs(Device::Cpu, 4);
      CHECK(problem.ops[op].cost[index(device)].prefill == doctest::Approx(expected.prefill));
      CHECK(problem.ops[op].cost[index(device)].decode == doctest::Approx(expected.decode));
    }
  }
  const Tensor &x = problem.tensors[0];
  CHECK(problem.ops[x.producer].name == "embed");
  CHECK(x.decodeBytes == 256);
  CHECK(x.prefillBytes == 300 * 256);
  CHECK(x.copyTo[index(Device::Gpu)].prefill == model.copyNs(Device::Gpu, 256, workload).prefill);
  CHECK(x.copyTo[index(Device::Cpu)].decode == model.copyNs(Device::Cpu, 256));
  const Store &table = problem.stores[0];
  CHECK(table.bytes == 8 * 64 * 64 * 2);
  CHECK(table.uploadNs == model.copyNs(Device::Gpu, static_cast<double>(table.bytes)));
}

/// Counts the copies of a decode step as a runtime makes them: by where each region's value is at every moment.
static double simulateCopies(const MccProgram &program, const CostModel &model, const std::vector<Device> &devices) {
  struct Where {
    bool written = false;
    bool on[2] = {};
  };
  std::vector<Where> values(program.regionCount);
  double ns = 0;
  for (uint32_t i = 0; i < program.launchCount; ++i) {
    const size_t here = index(devices[i]);
    for (int written : {0, 1})
      for (int argument = 0; argument < 3; ++argument) { // of "add"
        const MccArgument &buffer = program.launches[i].buffers[argument];
        if (static_cast<int>(buffer.written) != written)
          continue;
        Where &value = values[buffer.region];
        const MccRegion &region = program.regions[buffer.region];
        if (value.written && !value.on[here]) {
          ns += model.copyNs(devices[i], static_cast<double>(region.rowBytes ? region.rowBytes : region.bytes));
          value.on[here] = true;
        }
        if (written)
          value = {true, {here == 0, here == 1}};
      }
  }
  return ns;
}

TEST_CASE("copies of random programs are those of a runtime that tracks where values are") {
  std::mt19937 random(1);
  const Profile profile = makeProfile();
  const CostModel model(profile);
  for (int round = 0; round < 200; ++round) {
    TableProgram program = randomProgram(random, 12);
    Problem problem = problemOf(program.table(), &model, {1, 2, 1}).value();
    for (Tensor &tensor : problem.tensors)
      tensor.copyTo[0].prefill = tensor.copyTo[1].prefill = 0;
    std::vector<Device> devices;
    for (int i = 0; i < 12; ++i)
      devices.push_back(random() % 2 ? Device::Gpu : Device::Cpu);
    CHECK(evaluate(problem, devices).copiesNs == doctest::Approx(simulateCopies(program.table(), model, devices)));
  }
}

TEST_CASE("plans of whole programs are the best there are") {
  const Profile profile = makeProfile();
  for (const int64_t width : {64, 512, 2048})
    for (const int64_t newTokens : {1, 1000}) {
      TableProgram program = decoder(1, width);
      PlacementRequest request{&profile, {}, {16, newTokens, 64}, {}};
      const Placed placed = placeProgram(program.table(), request).value();
      CHECK(placed.plan.optimal());
      CHECK(placed.plan.cost.totalNs() == doctest::Approx(bruteForce(placed.problem)->costNs));
    }
}

TEST_CASE("a small model stays on the CPU, a large one goes to the GPU, one too large is split") {
  const Profile profile = makeProfile();
  const auto onGpu = [](const Placed &placed) {
    return std::count(placed.plan.devices.begin(), placed.plan.devices.end(), Device::Gpu);
  };
  TableProgram small = decoder(2, 64), large = decoder(8, 2048);
  PlacementRequest request{&profile, {}, {128, 128, 64}, {}};
  CHECK(onGpu(placeProgram(small.table(), request).value()) == 0);
  const Placed whole = placeProgram(large.table(), request).value();
  CHECK(onGpu(whole) == static_cast<int64_t>(large.launches.size()));
  request.gpuMemory = gpuActivationBytes(large.table(), 64) + whole.plan.cost.gpuBytes / 2;
  const Placed split = placeProgram(large.table(), request).value();
  CHECK(*split.problem.gpuMemory == whole.plan.cost.gpuBytes / 2);
  CHECK(split.plan.cost.gpuBytes <= whole.plan.cost.gpuBytes / 2);
  CHECK(split.plan.cost.gpuBytes > whole.plan.cost.gpuBytes / 3);
  const std::vector<Device> cpu(large.launches.size(), Device::Cpu);
  CHECK(split.plan.cost.totalNs() < 0.7 * evaluate(split.problem, cpu).totalNs());
  request.gpuMemory = 1000; // not even the activations
  CHECK(onGpu(placeProgram(large.table(), request).value()) == 0);
  request.rules = rulesOf("gpu").value();
  CHECK(placeProgram(large.table(), request).message().find("activations and workspaces need ") == 0);
  // The profile's own memory is a cap too.
  Profile limited = profile;
  limited.machine.gpuBytes = *split.problem.gpuMemory + gpuActivationBytes(large.table(), 64);
  request = {&limited, {}, {128, 128, 64}, {}};
  const Placed fitted = placeProgram(large.table(), request).value();
  CHECK(onGpu(fitted) > 0);
  CHECK(onGpu(fitted) < static_cast<int64_t>(large.launches.size()));
}

TEST_CASE("rules alone need no profile; what they leave does") {
  TableProgram program = decoder(1, 64);
  PlacementRequest request;
  for (const Device device : {Device::Cpu, Device::Gpu}) {
    request.rules = rulesOf(deviceName(device)).value();
    const Placed placed = placeProgram(program.table(), request).value();
    CHECK(placed.plan.devices == std::vector<Device>(program.launches.size(), device));
  }
  request.rules = parseRules("r", "layers.* gpu\nlayer.7 gpu\n* cpu\n").value();
  const Placed placed = placeProgram(program.table(), request).value();
  CHECK(placed.plan.devices[opCalled(placed.problem, "layers.0.up")] == Device::Gpu);
  CHECK(placed.plan.devices[opCalled(placed.problem, "embed")] == Device::Cpu);
  CHECK(placed.notes == std::vector<std::string>{"r:2: pattern 'layer.7' matches no op"});
  request.rules = parseRules("r", "layers.* gpu\n").value();
  CHECK(placeProgram(program.table(), request).message() ==
        "op 'embed' is left to its cost, which takes a calibration of a machine");
  Profile cpuOnly = makeProfile();
  cpuOnly.gpu.reset(), cpuOnly.link.reset();
  request.profile = &cpuOnly;
  CHECK(placeProgram(program.table(), request).message() ==
        "op 'embed' is left to its cost, which takes a calibration of a machine with a GPU");
  request.rules.clear();
  CHECK(placeProgram(program.table(), request).value().plan.devices ==
        std::vector<Device>(program.launches.size(), Device::Cpu));
  request.rules = rulesOf("gpu").value(); // for another machine
  CHECK(placeProgram(program.table(), request).value().plan.devices ==
        std::vector<Device>(program.launches.size(), Device::Gpu));
}

TEST_CASE("tables that are none") {
  TableProgram program = decoder(1, 64);
  program.launches[3].kernel = 1000;
  CHECK(problemOf(program.table(), nullptr, {})
            .message()
            .find("launch 'layers.0.rope' is of kernel 1000; the table has") == 0);
  program = decoder(1, 64);
  const MccArgument beyond[] = {{7777, 0, 0}, {0, 1, 0}};
  program.launches[0].buffers = beyond;
  CHECK(problemOf(program.table(), nullptr, {}).message().find("launch 'embed' names region 7777; the program has") ==
        0);
  CHECK(problemOf(program.table(), nullptr, {0, 1, 64}).message() ==
        "a workload of 0 prompt tokens in steps of 64 and 1 new ones; at least 1, 1 and 0 are needed");
}
