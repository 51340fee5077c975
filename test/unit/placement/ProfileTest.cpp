// Profiles as files: the round trip, and the place and fact of every kind of damage.
#include "runtime-lib/placement/Profile.h"
#include "test/unit/placement/Profiles.h"

#include <doctest/doctest.h>

#include <random>

using namespace mcc;
using namespace mcc::placement;
using namespace mcc::placement::test;

TEST_CASE("a profile survives writing and reading") {
  const Profile profile = makeProfile();
  const std::string text = writeProfile(profile);
  Result<Profile> read = readProfile("machine.json", text);
  REQUIRE_MESSAGE(read.ok(), read.message());
  CHECK(writeProfile(read.value()) == text);
  CHECK(difference(profile.machine, read.value().machine).empty());
  CHECK(read.value().gpu->matrices[1].format == Format::Q4_0);
  CHECK(read.value().gpu->matrices[1].gemm.at(7, 700, 700) == profile.gpu->matrices[1].gemm.at(7, 700, 700));
  CHECK(read.value().link->toCpu.pageable.at(12345) == profile.link->toCpu.pageable.at(12345));
  CHECK(read.value().cpu.launch == profile.cpu.launch);
  CHECK(text.starts_with("{\n \"format\": \"mcc-machine-1\",\n \"machine\": {\n  \"cpu\": \"Two Cores\""));
  CHECK(text.find("\"residual\"") != std::string::npos);
}

TEST_CASE("a machine without a GPU") {
  Profile profile = makeProfile();
  profile.gpu.reset();
  profile.link.reset();
  Result<Profile> read = readProfile("machine.json", writeProfile(profile));
  REQUIRE_MESSAGE(read.ok(), read.message());
  CHECK(!read.value().gpu);
  CHECK(!read.value().link);
}

/// Returns the message of reading the profile's text with the first `from` replaced by `to`.
static std::string damaged(const std::string &from, const std::string &to) {
  std::string text = writeProfile(makeProfile());
  const size_t at = text.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, from);
  text.replace(at, from.size(), to);
  return readProfile("m.json", text).message();
}

TEST_CASE("damage is told with its place") {
  CHECK(damaged("mcc-machine-1", "mcc-machine-9") ==
        "m.json:2:12: error: format 'mcc-machine-9'; this version reads 'mcc-machine-1'");
  CHECK(damaged("\"threads\": 2", "\"threads\": 0") == "m.json:5:14: error: expected a number of threads");
  CHECK(damaged("\"threads\": 2", "\"threads\": \"2\"") == "m.json:5:14: error: expected a number of threads");
  CHECK(damaged("\"cpu\": \"Two Cores\"", "\"cpu\": 3") == "m.json:4:10: error: expected a string, found number");
  CHECK(damaged("\"threads\": 2", "\"gpuBytes\": -1, \"threads\": 2").find("error: expected a whole number of bytes") != std::string::npos);
  CHECK(damaged("\"blas\"", "\"glas\"") == "m.json:6:11: error: unknown field 'glas'");
  CHECK(damaged("\"launchNs\": [\n   1000.0", "\"launchNs\": [\n   \"a\"") ==
        "m.json:13:4: error: expected a number, found string");
  CHECK(damaged("\"launchNs\": [\n   1000.0", "\"launchNs\": [\n   -4") ==
        "m.json:13:4: error: expected a positive number, found -4");
  CHECK(damaged("\"launchNs\"", "\"launches\"") == "m.json:12:15: error: unknown field 'launches'");
  CHECK(damaged("\"size\": 16384.0", "\"size\": 1024.0") ==
        "m.json:18:15: error: size 1 is 1024; sizes are positive and rise");
  CHECK(damaged("\"bf16\"", "\"bf17\"").find("error: unknown storage format 'bf17'") != std::string::npos);
  CHECK(damaged("\"toCpu\"", "\"toGpv\"").find("error: unknown field 'toGpv'") != std::string::npos);
  CHECK(damaged("\"m\": [\n", "\"m\": [\n 1,").find("error: 12 cells; the axes make 16") != std::string::npos);
  CHECK(damaged("{", "[").find("m.json:2:") == 0);
  CHECK(readProfile("m.json", "").message().find("m.json:1:1: error: ") == 0);
  CHECK(readProfile("m.json", "[]").message() == "m.json:1:1: error: expected an object, found array");
  CHECK(readProfile("m.json", "{}").message() == "m.json:1:1: error: missing field 'format'");
}

TEST_CASE("no damage crashes") {
  const std::string whole = writeProfile(makeProfile());
  std::mt19937 random(5);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    std::string text = whole;
    for (int j = 0; j < 3; ++j)
      text[random() % text.size()] = "[]{},:\"-e09x"[random() % 12];
    if (i % 3 == 0)
      text.resize(random() % text.size());
    refused += !readProfile("m.json", text).ok();
  }
  CHECK(refused > 150);
}

TEST_CASE("where machines differ") {
  Fingerprint a = makeProfile().machine, b = a;
  CHECK(difference(a, b).empty());
  b.threads = 4;
  b.gpu = "";
  CHECK(difference(a, b) == "threads 2 became 4, gpu 'Large GPU' became ''");
}

TEST_CASE("a format that was not measured takes the nearest in bits") {
  const Profile profile = makeProfile();
  CHECK(profile.cpu.matrix(Format::BF16)->format == Format::BF16);
  CHECK(profile.cpu.matrix(Format::Q4_K)->format == Format::Q4_0);
  CHECK(profile.cpu.matrix(Format::F32)->format == Format::BF16);
  CHECK(DeviceProfile().matrix(Format::F32) == nullptr);
}

TEST_CASE("one row, few rows and many rows are monotone") {
  const Profile profile = makeProfile();
  const MatrixTimes &times = profile.cpu.matrices[0];
  double last = 0;
  for (double m = 1; m < 300; m += 1) {
    const double ns = times.at(m, 1024, 1024, 2048 * 1024);
    CHECK(ns >= last);
    last = ns;
  }
  CHECK(times.at(1, 1024, 1024, 2048 * 1024) == doctest::Approx(500 + 2048 * 1024 / 20.0).epsilon(0.05));
}
