// A session whose GPU fails: it goes on with the CPU and the same tokens. The GPU is the fake model's step in memory of
// its own.
#include "runtime-lib/src/Generate.h"
#include "test/unit/runtime/FakeSession.h"

#include <cstring>

using namespace mcc::runtime;
using namespace mcc::test;

namespace {

int64_t failAt = 0;         // the step that fails; 0: none
bool failReset = false;
std::vector<int64_t> aheads; // what each step was promised

class FakeGpu final : public GpuMachine {
public:
  explicit FakeGpu(GpuRequest wanted) : request(std::move(wanted)), own(std::move(HostMachine::create(*request.model, request.host->weights(), 1).value())) {}
  Status reset() override {
    own->clear();
    return failReset ? Status(Failure{"cudaMemsetAsync: cudaErrorUnknown (unknown error)"}) : Status();
  }
  Status step(std::span<const int32_t> tokens, int64_t position, int64_t length, int64_t ahead) override {
    aheads.push_back(ahead);
    if (++steps == failAt)
      return Failure{"cudaGraphLaunch: cudaErrorIllegalAddress (an illegal memory access was encountered)"};
    own->run(tokens, position, length);
    return {};
  }
  int32_t token() const override {
    int32_t token;
    std::memcpy(&token, own->arenaMemory().data() + fakeTokenOffset, sizeof token);
    return token;
  }
  Status fetchLogits() override {
    std::memcpy(request.host->arenaMemory().data() + fakeLogitsOffset, own->arenaMemory().data() + fakeLogitsOffset, fakeVocabulary * sizeof(float));
    return {};
  }
  int64_t launchesOnGpu() const override { return 3; }
  double uploadSeconds() const override { return 0; }
  uint64_t uploadedBytes() const override { return 0; }

private:
  GpuRequest request;
  std::unique_ptr<HostMachine> own;
  int64_t steps = 0;
};

const MccGpuRuntime working = {[](GpuRequest request) -> Result<std::unique_ptr<GpuMachine>> { return std::unique_ptr<GpuMachine>(new FakeGpu(std::move(request))); }};
const MccGpuRuntime missing = {[](GpuRequest) -> Result<std::unique_ptr<GpuMachine>> { return Failure{"no GPU is visible"}; }};

const std::vector<int32_t> prompt = {3, 14, 25, 36, 47, 58, 5, 16, 27, 38, 49};

std::vector<int32_t> tokensOf(Session &session) {
  Result<Generation> result = generate(session, {prompt, 12, true}, {});
  REQUIRE(result.ok());
  return result.value().tokens;
}

} // namespace

TEST_CASE("an error of the GPU loses no token, whenever it comes") {
  FakeSession plain(2);
  const std::vector<int32_t> expected = tokensOf(*plain.session);
  for (failAt = 0; failAt <= 14; ++failAt) {
    CAPTURE(failAt);
    FakeSession fake(2);
    fake.model.gpu = &working;
    REQUIRE(fake.session->useGpu({}).ok());
    CHECK(tokensOf(*fake.session) == expected);
    const DeviceReport &report = fake.session->report();
    // A prompt of 11 in chunks of 8 is two steps; then 11 of decode.
    const bool failed = failAt >= 1 && failAt <= 13;
    CHECK(report.gpuLaunches == 3 * (failed ? failAt - 1 : 13));
    CHECK(report.lastError.empty() == !failed);
    CHECK((fake.session->gpuMachine() == nullptr) == failed);
    const int64_t done = failAt == 1 ? 0 : failAt == 2 ? 8 : 11 + failAt - 3;
    CHECK(report.replayed == (failed ? done : 0));
    // The next sequence runs too, on whatever is left.
    CHECK(tokensOf(*fake.session) == expected);
  }
  failAt = 0;
}

TEST_CASE("steps are promised only where nothing stops them") {
  FakeSession fake(1);
  fake.model.gpu = &working;
  REQUIRE(fake.session->useGpu({}).ok());
  aheads.clear();
  REQUIRE(generate(*fake.session, {prompt, 4, true}, {}).ok());
  CHECK(aheads == std::vector<int64_t>{0, 3, 2, 1, 0});
  aheads.clear();
  Hooks looking;
  looking.onLogits = [](std::span<const float>) { return true; };
  REQUIRE(generate(*fake.session, {prompt, 3, true}, looking).ok());
  CHECK(aheads == std::vector<int64_t>{0, 0, 0, 0});
  // Never past the context.
  aheads.clear();
  REQUIRE(generate(*fake.session, {prompt, 100, true}, {}).ok());
  CHECK(aheads[1] == fakeContext - 8 - 1);
  CHECK(aheads.back() == 0);
}

TEST_CASE("a GPU that is missing or fails at a reset is reported") {
  FakeSession fake(1);
  fake.model.gpu = &missing;
  CHECK(fake.session->useGpu({}).message() == "no GPU is visible");
  CHECK(fake.session->report().lastError == "no GPU is visible");
  const std::vector<int32_t> expected = tokensOf(*fake.session);
  FakeSession other(1);
  other.model.gpu = &working;
  REQUIRE(other.session->useGpu({}).ok());
  failReset = true;
  CHECK(tokensOf(*other.session) == expected);
  failReset = false;
  CHECK(other.session->report().lastError.find("cudaMemsetAsync") == 0);
}
