// Checkpoints against what other software says: malformed files with known verdicts, ggml's own dequantised floats,
// and one model published in five forms. Needs the folder that MCC_ORACLE_DIR names; skipped (77) without it.
#include "checkpoint_files.h"

#include "compiler/Import/Checkpoint.h"
#include "kernels/reference/Dequantize.h"
#include "kernels/reference/StoredFormat.h"

#include "llvm/Support/raw_ostream.h"

#define DOCTEST_CONFIG_IMPLEMENT
#include "doctest/doctest.h"

#include <chrono>
#include <iostream>
#include <sys/resource.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MCC_TEST_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define MCC_TEST_SANITIZED
#endif

using namespace mcc;
using namespace mcc::test;

namespace {

std::filesystem::path oracle;

std::string readFile(const std::filesystem::path &path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Limits the address space to 1 GiB above what is used now, while it lives; not under sanitizers, which reserve
/// terabytes.
class MemoryLimit {
public:
  MemoryLimit() {
#ifndef MCC_TEST_SANITIZED
    ::getrlimit(RLIMIT_AS, &before);
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit = before;
    limit.rlim_cur = pages * 4096 + (uint64_t{1} << 30);
    REQUIRE(::setrlimit(RLIMIT_AS, &limit) == 0);
    limited = true;
#endif
  }
  ~MemoryLimit() {
    if (limited)
      ::setrlimit(RLIMIT_AS, &before);
  }

private:
  rlimit before = {};
  bool limited = false;
};

/// What `mcc inspect FILE` does; returns the error or "".
std::string inspect(const std::string &path) {
  auto opened = openCheckpoint(path);
  if (!opened)
    return llvm::toString(opened.takeError());
  std::string table;
  llvm::raw_string_ostream os(table);
  printTensorTable(**opened, os);
  return "";
}

/// Inspects every file below `folder` and compares with the verdict in its name (.ok. or .bad.).
int checkVerdicts(const std::filesystem::path &folder, const std::string &extension) {
  int files = 0;
  MemoryLimit limit;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(folder)) {
    std::string name = entry.path().filename().string();
    if (entry.path().extension() != extension)
      continue;
    bool isGood = holds(name, ".ok."), isBad = holds(name, ".bad.");
    REQUIRE(isGood != isBad);
    auto start = std::chrono::steady_clock::now();
    std::string message = inspect(entry.path().string());
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    CHECK_MESSAGE(message.empty() == isGood, name, ": ", message);
    CHECK_MESSAGE(seconds.count() < 1.0, name);
    if (isBad)
      CHECK_MESSAGE(holds(message, entry.path().string()), name, ": ", message);
    if (std::getenv("MCC_TEST_VERBOSE"))
      std::cout << name << ": " << message << '\n';
    ++files;
  }
  return files;
}

} // namespace

TEST_CASE("malformed safetensors: every verdict") {
  CHECK(checkVerdicts(oracle / "malformed/safetensors", ".safetensors") >= 30);
}

TEST_CASE("malformed gguf: every verdict") {
  TempDirectory directory;
  std::string archive = (oracle / "malformed/gguf.tar.xz").string();
  REQUIRE(std::system(("tar -xJf '" + archive + "' -C '" + directory.path() + "'").c_str()) == 0);
  CHECK(checkVerdicts(directory.path(), ".gguf") >= 54);
}

TEST_CASE("dequantisation equals ggml's, bit for bit") {
  int formats = 0;
  for (const auto &entry : std::filesystem::directory_iterator(oracle / "gguf/dequant_vectors")) {
    std::string stem = llvm::StringRef(entry.path().stem().string()).lower();
    std::optional<Format> format = parseFormat(stem);
    const StoredFormat *stored = parseStoredFormat(stem);
    if (entry.path().extension() != ".bin" || (!format && !stored))
      continue;
    CAPTURE(stem);
    std::string in = readFile(entry.path());
    std::string expected = readFile(std::filesystem::path(entry.path()).replace_extension(".f32"));
    int64_t elems = static_cast<int64_t>(expected.size() / 4);
    int64_t bytes = format ? formatBytes(*format, elems) : elems / stored->blockElems * stored->blockBytes;
    REQUIRE(bytes == static_cast<int64_t>(in.size()));
    std::vector<float> out(elems);
    const uint8_t *blocks = reinterpret_cast<const uint8_t *>(in.data());
    if (format)
      dequantize(*format, blocks, out.data(), elems);
    else
      dequantizeStored(*stored, blocks, out.data(), elems);
    CHECK(std::memcmp(out.data(), expected.data(), expected.size()) == 0);
    ++formats;
  }
  CHECK(formats == 27);
}

TEST_CASE("one model in several forms") {
  auto open = [](const std::string &name) {
    auto opened = openCheckpoint((oracle / "stories260K" / name).string());
    REQUIRE_MESSAGE(static_cast<bool>(opened), messageOf(std::move(opened)));
    return std::move(*opened);
  };
  auto plain = open("hf-f32"), sharded = open("hf-bf16-sharded3"), half = open("hf-f16-untied"),
       gguf = open("stories260K.gguf");
  const char *name = "model.layers.1.mlp.down_proj.weight";
  const TensorInfo *exact = plain->find(name), *rounded = sharded->find(name), *halved = half->find(name);
  const TensorInfo *other = gguf->find("blk.1.ffn_down.weight");
  REQUIRE((exact && rounded && halved && other));
  CHECK(exact->shape == other->shape);
  CHECK(std::memcmp(exact->data, other->data, exact->bytes) == 0);
  int64_t elems = exact->elems();
  std::vector<float> a(elems), b(elems), c(elems);
  dequantize(exact->format, exact->data, a.data(), elems);
  dequantize(rounded->format, rounded->data, b.data(), elems);
  dequantize(halved->format, halved->data, c.data(), elems);
  for (int64_t i = 0; i < elems; ++i) {
    REQUIRE(b[i] == doctest::Approx(a[i]).epsilon(0.004));
    REQUIRE(c[i] == doctest::Approx(a[i]).epsilon(0.0005).scale(1e-4));
  }
  for (const auto &entry : std::filesystem::directory_iterator(oracle / "gguf/quantised"))
    if (entry.path().extension() == ".gguf")
      CHECK(inspect(entry.path().string()) == "");
}

int main(int argc, char **argv) {
  const char *folder = std::getenv("MCC_ORACLE_DIR");
  if (!folder || !*folder) {
    std::cout << "skipped: MCC_ORACLE_DIR is not set\n";
    return 77;
  }
  oracle = folder;
  return doctest::Context(argc, argv).run();
}
