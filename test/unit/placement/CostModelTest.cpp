// Costs of launches: every kernel of the table has one, and they follow the sizes.
#include "runtime-lib/placement/CostModel.h"
#include "kernels/KernelTable.h"
#include "test/unit/placement/Profiles.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace mcc;
using namespace mcc::placement;
using namespace mcc::placement::test;

/// Returns int arguments of a kernel, all 64 but those given.
static std::vector<int64_t> arguments(const char *kernel, std::vector<std::pair<const char *, int64_t>> given = {}) {
  const KernelInfo *info = findKernel(kernel);
  REQUIRE(info);
  std::vector<int64_t> ints(info->ints.size(), 64);
  for (const auto &[name, value] : given) {
    REQUIRE(info->intIndex(name) < ints.size());
    ints[info->intIndex(name)] = value;
  }
  return ints;
}

TEST_CASE("every kernel has a cost on both devices, which does not fall with tokens") {
  const Profile profile = makeProfile();
  const CostModel model(profile);
  for (const char *kernel : {
#define MCC_KERNEL(name, perFormat, buffers, ints, floats) #name,
#include "kernels/KernelTable.def"
       }) {
    CAPTURE(kernel);
    const std::vector<int64_t> ints = arguments(kernel);
    for (const Device device : {Device::Cpu, Device::Gpu}) {
      double last = device == Device::Cpu ? 1000 : 2000; // at least a launch
      for (const int64_t tokens : {1, 2, 3, 7, 16, 100, 1000}) {
        Result<double> ns = model.costOf(device, {kernel, Format::Q8_0, ints}, tokens, 10);
        REQUIRE_MESSAGE(ns.ok(), ns.message());
        CHECK(std::isfinite(ns.value()));
        CHECK(ns.value() >= last);
        last = ns.value();
      }
    }
  }
}

TEST_CASE("a matrix product costs its weight's bytes at one token and its arithmetic at many") {
  const Profile profile = makeProfile();
  const CostModel model(profile);
  const auto ints = arguments("linear", {{"rows", 4096}, {"cols", 4096}, {"gated", 0}});
  const Launch launch{"linear", Format::BF16, ints};
  const double bytes = 4096.0 * 4096 * 2;
  CHECK(model.costOf(Device::Cpu, launch, 1, 0).value() == doctest::Approx(1500 + bytes / 20).epsilon(0.01));
  CHECK(model.costOf(Device::Cpu, launch, 128, 0).value() ==
        doctest::Approx(1500 + bytes / 20 + 128.0 * 4096 * 4096 / 50).epsilon(0.01));
  const auto gated = arguments("linear", {{"rows", 2048}, {"cols", 4096}, {"gated", 1}});
  CHECK(model.costOf(Device::Cpu, {"linear", Format::BF16, gated}, 1, 0).value() ==
        model.costOf(Device::Cpu, launch, 1, 0).value());
  const Launch small{"linear", Format::Q4_0, ints};
  CHECK(model.costOf(Device::Cpu, small, 1, 0).value() < 0.3 * model.costOf(Device::Cpu, launch, 1, 0).value());
  // The head works on the last row only.
  const auto head = arguments("logits", {{"rows", 4096}, {"cols", 4096}});
  CHECK(model.costOf(Device::Cpu, {"logits", Format::BF16, head}, 100, 0).value() ==
        model.costOf(Device::Cpu, launch, 1, 0).value());
}

TEST_CASE("attention counts the keys that its queries see") {
  for (const auto &[window, chunk] : {std::pair<int64_t, int64_t>{0, 0}, {4, 0}, {0, 8}, {5, 8}})
    for (const int64_t tokens : {1, 3, 9})
      for (const int64_t position : {0, 2, 13, 50}) {
        int64_t keys = 0, least = position + tokens;
        for (int64_t query = position; query < position + tokens; ++query)
          for (int64_t key = 0; key <= query; ++key)
            if ((window == 0 || key > query - window) && (chunk == 0 || key / chunk == query / chunk)) {
              ++keys;
              least = std::min(least, key);
            }
        const auto ints = arguments(
            "attention", {{"heads", 8}, {"kv_heads", 2}, {"head_dim", 64}, {"window", window}, {"chunk", chunk}});
        const Work work = workOf({"attention", Format::F32, ints}, tokens, position).value();
        CHECK(work.attentionMacs == static_cast<double>(keys * 8 * 64 * 2));
        CHECK(work.keyBytes == static_cast<double>((position + tokens - least) * 2 * 64 * 8));
      }
}

TEST_CASE("a prefill is the sum of its chunks, decode is taken halfway") {
  const Profile profile = makeProfile();
  const CostModel model(profile);
  const auto ints = arguments("attention", {{"window", 0}, {"chunk", 0}});
  const Launch launch{"attention", Format::F32, ints};
  const PhaseNs ns = model.costOf(Device::Cpu, launch, Workload{300, 100, 128}).value();
  CHECK(ns.prefill == doctest::Approx(model.costOf(Device::Cpu, launch, 128, 0).value() +
                                      model.costOf(Device::Cpu, launch, 128, 128).value() +
                                      model.costOf(Device::Cpu, launch, 44, 256).value()));
  CHECK(ns.decode == model.costOf(Device::Cpu, launch, 1, 350).value());
}

TEST_CASE("copies") {
  const Profile profile = makeProfile();
  const CostModel model(profile);
  CHECK(model.copyNs(Device::Gpu, 1024) == doctest::Approx(10000 + 1024 / 50.0));
  CHECK(model.copyNs(Device::Cpu, 1024) == doctest::Approx(20000 + 1024 / 50.0)); // and waiting
  CHECK(model.copyNs(Device::Gpu, 1e9, HostMemory::Pageable) > 5 * model.copyNs(Device::Gpu, 1e9));
  CHECK(model.copyNs(Device::Gpu, 0) == 0);
  const PhaseNs ns = model.copyNs(Device::Gpu, 100, Workload{300, 100, 128});
  CHECK(ns.prefill > 3 * 10000);
  CHECK(ns.decode < 10100);
}

TEST_CASE("launches that are none") {
  CHECK(workOf({"conv9", Format::F32, {}}, 1, 0).message() == "there is no kernel 'conv9'");
  const std::vector<int64_t> ints(2);
  CHECK(workOf({"add", Format::F32, ints}, 1, 0).message() == "kernel 'add' has 4 int arguments; the launch has 2");
}
