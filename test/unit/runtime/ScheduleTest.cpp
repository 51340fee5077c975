// Schedules of hand-made programs: segments, what is copied between them, and what must stay together.
#include "kernels/KernelTable.h"
#include "runtime-lib/src/Schedule.h"

#include <doctest/doctest.h>
#include <list>

using namespace mcc;
using namespace mcc::runtime;

namespace {

// A program under construction; its storage lives as long as it.
struct Maker {
  std::vector<MccRegion> regions;
  std::vector<MccLaunch> launches;
  std::list<std::vector<MccArgument>> arguments;

  uint32_t region(MccSpace space) {
    regions.push_back({static_cast<uint32_t>(space), 0, regions.size() * 64, 64, 16});
    return static_cast<uint32_t>(regions.size() - 1);
  }

  // Adds a launch over regions given in the kernel table's order.
  void launch(const char *kernel, std::vector<uint32_t> buffers) {
    const KernelInfo &info = *findKernel(kernel);
    REQUIRE(buffers.size() == info.buffers.size());
    std::vector<MccArgument> &list = arguments.emplace_back();
    for (size_t i = 0; i < buffers.size(); ++i)
      list.push_back({buffers[i], info.buffers[i].written, 0});
    MccLaunch made{};
    made.name = kernel;
    made.kernel = static_cast<uint32_t>(kernelIndex(info));
    made.buffers = list.data();
    launches.push_back(made);
  }

  MccProgram program() const {
    return {static_cast<uint32_t>(regions.size()), static_cast<uint32_t>(launches.size()), regions.data(), launches.data(), nullptr};
  }
};

} // namespace

TEST_CASE("a value crosses once, and its own device's readers copy nothing") {
  Maker maker;
  const uint32_t table = maker.region(MCC_WEIGHTS), x = maker.region(MCC_ARENA), y = maker.region(MCC_ARENA), z = maker.region(MCC_ARENA);
  maker.launch("embed", {table, x});
  maker.launch("activate", {x, y});
  maker.launch("add", {x, y, z});
  maker.launch("add", {x, z, z});
  const MccProgram program = maker.program();

  const std::vector<Segment> together = scheduleOf(program, {true, true, true, true});
  REQUIRE(together.size() == 1);
  CHECK(together[0].onGpu);
  CHECK(together[0].copies.empty());

  // x goes to the GPU for the second launch and stays there; y comes back for the third; the fourth has all it needs.
  const std::vector<Segment> mixed = scheduleOf(program, {false, true, false, false});
  REQUIRE(mixed.size() == 3);
  CHECK(mixed[1].copies == std::vector<uint32_t>{x});
  CHECK(mixed[2].copies == std::vector<uint32_t>{y});
  CHECK(mixed[2].launches == std::vector<uint32_t>{2, 3});

  // z is written in place by the last launch: it must have what is there.
  const std::vector<Segment> last = scheduleOf(program, {false, false, false, true});
  REQUIRE(last.size() == 2);
  CHECK(last[1].copies == std::vector<uint32_t>{x, z});
}

TEST_CASE("a value written again is copied again") {
  Maker maker;
  const uint32_t table = maker.region(MCC_WEIGHTS), x = maker.region(MCC_ARENA), y = maker.region(MCC_ARENA);
  maker.launch("embed", {table, x});
  maker.launch("activate", {x, y});
  maker.launch("activate", {y, x});
  maker.launch("activate", {x, y});
  const std::vector<Segment> segments = scheduleOf(maker.program(), {false, true, false, true});
  REQUIRE(segments.size() == 4);
  CHECK(segments[1].copies == std::vector<uint32_t>{x});
  CHECK(segments[2].copies == std::vector<uint32_t>{y}); // x is there still
  CHECK(segments[3].copies == std::vector<uint32_t>{x}); // the old one is of no use
}

TEST_CASE("launches that share a cache or the partial maxima stay together") {
  Maker maker;
  const uint32_t q = maker.region(MCC_ARENA), keys = maker.region(MCC_CACHE), values = maker.region(MCC_CACHE), y = maker.region(MCC_ARENA);
  const uint32_t weight = maker.region(MCC_WEIGHTS), partials = maker.region(MCC_ARENA), logits = maker.region(MCC_ARENA), token = maker.region(MCC_ARENA);
  const uint32_t none = MCC_NO_REGION;
  maker.launch("rope_cache", {q, q, q, none, none, none, keys, values});
  maker.launch("attention", {q, keys, values, none, none, y});
  maker.launch("logits", {y, weight, none, none, none, partials, logits});
  maker.launch("argmax", {partials, token});
  const MccProgram program = maker.program();
  CHECK(keepsStatesTogether(program, {true, true, false, false}));
  CHECK(!keepsStatesTogether(program, {true, false, false, false}));
  CHECK(!keepsStatesTogether(program, {true, true, false, true}));
  std::vector<bool> plan{true, false, false, true};
  joinStates(program, plan);
  CHECK(plan == std::vector<bool>{true, true, false, false});
}
