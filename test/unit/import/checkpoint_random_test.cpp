// random:SEED: the same bytes for any way of reading, valid blocks, and the stated mean and deviation.
#include "compiler/Import/Checkpoint.h"
#include "compiler/Import/ModelSpec.h"
#include "compiler/Import/RandomCheckpoint.h"
#include "kernels/reference/Dequantize.h"

#include "llvm/Support/xxhash.h"

#include "doctest/doctest.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace mcc;

namespace {

constexpr Format kFormats[] = {
#define MCC_FORMAT(enumerator, name, elems, bytes, ggufId) Format::enumerator,
#include "kernels/FormatTable.def"
};

RequiredTensor tensor(const std::string &name, const std::string &role, std::vector<int64_t> shape) {
  RequiredTensor required;
  required.name = name;
  required.role = role;
  required.shape = std::move(shape);
  return required;
}

std::vector<uint8_t> readAll(const Checkpoint &checkpoint, const std::string &name) {
  const TensorInfo *info = checkpoint.find(name);
  REQUIRE(info);
  std::vector<uint8_t> bytes(info->bytes);
  checkpoint.readRows(*info, 0, info->rows(), bytes.data());
  return bytes;
}

struct Moments {
  double mean = 0, deviation = 0, largest = 0, kurtosis = 0;
};

Moments moments(const Checkpoint &checkpoint, const std::string &name) {
  const TensorInfo *info = checkpoint.find(name);
  std::vector<uint8_t> bytes = readAll(checkpoint, name);
  std::vector<float> values(info->elems());
  dequantize(info->format, bytes.data(), values.data(), info->elems());
  Moments result;
  REQUIRE(std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); }));
  for (float value : values) {
    result.mean += value / values.size();
    result.largest = std::max<double>(result.largest, std::fabs(value));
  }
  double square = 0, fourth = 0;
  for (float value : values) {
    double centred = value - result.mean;
    square += centred * centred / values.size();
    fourth += std::pow(centred, 4) / values.size();
  }
  result.deviation = std::sqrt(square);
  result.kurtosis = fourth / (square * square);
  return result;
}

} // namespace

TEST_CASE("random: rows read alone, in any order, are the rows of the whole") {
  for (Format format : kFormats) {
    CAPTURE(formatInfo(format).name);
    // 768 elements are whole blocks of every format; the odd row length of plain formats is the next case.
    auto checkpoint = randomCheckpoint(7, format, {tensor("w", "q", {5, 768})});
    const TensorInfo &info = *checkpoint->find("w");
    CHECK(info.format == format);
    std::vector<uint8_t> all = readAll(*checkpoint, "w");
    size_t rowBytes = all.size() / 5;
    std::vector<uint8_t> row(2 * rowBytes);
    for (int64_t first : {3, 0, 2}) {
      checkpoint->readRows(info, first, 2, row.data());
      CHECK(std::memcmp(row.data(), all.data() + first * rowBytes, 2 * rowBytes) == 0);
    }
    CHECK(std::memcmp(all.data(), all.data() + rowBytes, rowBytes) != 0);
  }
}

TEST_CASE("random: rows of odd length start in the middle of a word") {
  auto checkpoint = randomCheckpoint(7, Format::F16, {tensor("w", "q", {4, 33})});
  std::vector<uint8_t> all = readAll(*checkpoint, "w");
  for (int64_t row = 0; row < 4; ++row) {
    uint8_t one[66];
    checkpoint->readRows(*checkpoint->find("w"), row, 1, one);
    CHECK(std::memcmp(one, all.data() + row * 66, 66) == 0);
  }
}

TEST_CASE("random: seed and name each change everything") {
  std::vector<RequiredTensor> two = {tensor("a", "q", {4, 256}), tensor("b", "q", {4, 256})};
  auto one = randomCheckpoint(1, Format::Q4_K, two), again = randomCheckpoint(1, Format::Q4_K, two);
  auto other = randomCheckpoint(2, Format::Q4_K, two);
  CHECK(readAll(*one, "a") == readAll(*again, "a"));
  CHECK(readAll(*one, "a") != readAll(*one, "b"));
  CHECK(readAll(*one, "a") != readAll(*other, "a"));
  CHECK(one->name() == "random:1");
}

TEST_CASE("random: matrices have mean 0 and deviation 1/sqrt(columns)") {
  for (Format format : kFormats) {
    CAPTURE(formatInfo(format).name);
    auto checkpoint = randomCheckpoint(3, format, {tensor("w", "q", {256, 4096}), tensor("h", "head", {8, 256})});
    Moments m = moments(*checkpoint, "w");
    CHECK(m.deviation == doctest::Approx(1.0 / 64).epsilon(0.03));
    CHECK(std::fabs(m.mean) < 0.004 / 64);
    CHECK(m.largest < 6.0 / 64);
    if (formatInfo(format).blockElems == 1) // the normal distribution's is 3, the uniform's 1.8
      CHECK(m.kurtosis == doctest::Approx(2.7).epsilon(0.02));
  }
}

TEST_CASE("random: embeddings, norms and biases by role") {
  std::vector<RequiredTensor> required = {tensor("e", "embedding", {512, 256}), tensor("n", "attention_norm", {8192}),
                                          tensor("b", "q.bias", {8192}), tensor("h", "head", {512, 256})};
  auto checkpoint = randomCheckpoint(5, Format::BF16, required);
  CHECK(moments(*checkpoint, "e").deviation == doctest::Approx(1).epsilon(0.02));
  CHECK(moments(*checkpoint, "h").deviation == doctest::Approx(1.0 / 16).epsilon(0.02));
  CHECK(checkpoint->find("n")->format == Format::F32);
  CHECK(moments(*checkpoint, "n").mean == doctest::Approx(1).epsilon(0.01));
  CHECK(moments(*checkpoint, "n").deviation == doctest::Approx(0.1).epsilon(0.05));
  CHECK(moments(*checkpoint, "b").deviation == doctest::Approx(0.02).epsilon(0.05));
  required.pop_back(); // tied: the embedding is the head
  CHECK(moments(*randomCheckpoint(5, Format::BF16, required), "e").deviation ==
        doctest::Approx(1.0 / 16).epsilon(0.02));
}

TEST_CASE("random: rows that are no whole blocks take another format") {
  auto checkpoint = randomCheckpoint(5, Format::Q4_K, {tensor("a", "q", {2, 96}), tensor("b", "q", {2, 33})});
  CHECK(checkpoint->find("a")->format == Format::Q8_0);
  CHECK(checkpoint->find("a")->bytes == 2 * 3 * 34);
  CHECK(checkpoint->find("b")->format == Format::F32);
}

TEST_CASE("random: the bytes are the same on every machine") {
  // Recorded once: XXH3 of the bytes. A change here changes every benchmark's weights.
  const std::pair<Format, uint64_t> recorded[] = {
      {Format::F32, 1437580768802704301u},   {Format::F16, 16300842612731414580u}, {Format::Q4_0, 9668286226867019399u},
      {Format::Q4_K, 18226483076880463858u}, {Format::Q6_K, 159569980138353607u},
  };
  for (auto [format, digest] : recorded) {
    CAPTURE(formatInfo(format).name);
    auto checkpoint = randomCheckpoint(42, format, {tensor("w", "q", {3, 512})});
    CHECK(llvm::xxh3_64bits(readAll(*checkpoint, "w")) == digest);
  }
}
