// Files in and out: the weights writer against the reader, JSON places, prompt lines, line reading, options.
#include "runtime-lib/src/Files.h"
#include "compiler/Artifact/BlobWriter.h"
#include "runtime-lib/src/JsonDocument.h"
#include "runtime-lib/src/Options.h"
#include "runtime-lib/src/PromptLine.h"
#include "runtime-lib/src/WeightsFile.h"
#include "test/unit/runtime/FakeSession.h"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace mcc::runtime;
namespace fs = std::filesystem;

namespace {

struct Folder {
  Folder() {
    char name[] = "/tmp/mcc-files-XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const std::string &name) const { return path + "/" + name; }
  size_t entries() const { return size_t(std::distance(fs::directory_iterator(path), fs::directory_iterator())); }
  std::string path;
};

std::vector<uint8_t> pattern(size_t bytes, uint8_t seed) {
  std::vector<uint8_t> data(bytes);
  for (size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<uint8_t>(i * 31 + (i >> 8) * 7 + seed);
  return data;
}

} // namespace

TEST_CASE("what the writer writes the reader reads") {
  Folder folder;
  const auto first = pattern(3000001, 1), second = pattern(4096, 2);
  mcc::BlobWriter writer(folder / "w");
  REQUIRE(writer.beginSegment("weights"));
  for (size_t at = 0; at < first.size();) {
    const size_t part = std::min<size_t>(first.size() - at, at % 70000 + 1);
    REQUIRE(writer.append(first.data() + at, part));
    at += part;
  }
  CHECK(writer.segmentBytes() == first.size());
  CHECK(writer.align(64));
  CHECK(writer.segmentBytes() == 3000064);
  REQUIRE(writer.beginSegment("a name of 24 characters!"));
  REQUIRE(writer.append(second.data(), second.size()));
  REQUIRE(writer.beginSegment("empty"));
  REQUIRE(writer.finish());
  CHECK(!fs::exists(folder / "w"));
  REQUIRE(writer.commit());
  CHECK(folder.entries() == 1);
  CHECK(fs::file_size(folder / "w") == writer.fileBytes());

  MccModel model = mcc::test::fakeModel();
  model.blobBytes = writer.fileBytes();
  std::memcpy(model.blobId, writer.id().data(), 16);
  auto opened = WeightsFile::open(folder / "w", model);
  REQUIRE_MESSAGE(opened.ok(), opened.message());
  const WeightsFile &file = opened.value();
  CHECK(file.verify().ok());
  REQUIRE(file.segment("weights"));
  CHECK(file.segment("weights")->size() == 3000064);
  CHECK(std::equal(first.begin(), first.end(), file.segment("weights")->begin()));
  CHECK(file.segment("weights")->back() == 0);
  CHECK(reinterpret_cast<uintptr_t>(file.segment("weights")->data()) % MCC_BLOB_ALIGNMENT == 0);
  CHECK(std::equal(second.begin(), second.end(), file.segment("a name of 24 characters!")->begin()));
  CHECK(file.segment("empty")->empty());
  CHECK(!file.segment("tokenizer"));

  model.blobId[3] ^= 1;
  CHECK(WeightsFile::open(folder / "w", model).message().find("weights of another program") != std::string::npos);
  model.blobId[3] ^= 1;
  model.abi = 77;
  CHECK(WeightsFile::open(folder / "w", model).message().find("weights have ABI ") != std::string::npos);
}

TEST_CASE("an unfinished weights file leaves nothing") {
  Folder folder;
  {
    mcc::BlobWriter writer(folder / "w");
    writer.beginSegment("weights");
    writer.append("x", 1);
    CHECK(folder.entries() == 1);
  }
  CHECK(folder.entries() == 0);
}

TEST_CASE("writer errors stick and say where") {
  Folder folder;
  mcc::BlobWriter nowhere(folder / "no/w");
  CHECK(nowhere.error().find("no/w: error: cannot create: No such file or directory") != std::string::npos);
  CHECK(!nowhere.append("x", 1));
  CHECK(!nowhere.finish());
  CHECK(!nowhere.commit());
  mcc::BlobWriter full(folder / "w");
  for (int i = 0; i < MCC_BLOB_MAX_SEGMENTS; ++i)
    CHECK(full.beginSegment("s" + std::to_string(i)));
  CHECK(!full.beginSegment("one more"));
  CHECK(!full.finish());
}

/// Returns the header of the blob at `path` after `change`, with a fresh checksum.
static std::string openChanged(const std::string &path, MccModel model, void (*change)(MccBlobHeader &)) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  MccBlobHeader header, original;
  file.read(reinterpret_cast<char *>(&header), sizeof header);
  original = header;
  change(header);
  header.checksum = mcc::headerChecksumOf(header);
  file.seekp(0);
  file.write(reinterpret_cast<const char *>(&header), sizeof header);
  file.flush();
  const auto opened = WeightsFile::open(path, model);
  const std::string message = opened.ok() ? "" : opened.message();
  file.seekp(0);
  file.write(reinterpret_cast<const char *>(&original), sizeof original);
  return message;
}

TEST_CASE("a header that lies under a right checksum is refused") {
  Folder folder;
  mcc::BlobWriter writer(folder / "w");
  writer.beginSegment("weights");
  writer.append("content", 7);
  REQUIRE((writer.finish() && writer.commit()));
  MccModel model = mcc::test::fakeModel();
  model.blobBytes = writer.fileBytes();
  std::memcpy(model.blobId, writer.id().data(), 16);
  const auto refused = [&](void (*change)(MccBlobHeader &), const char *text) {
    const std::string message = openChanged(folder / "w", model, change);
    CHECK_MESSAGE(message.find(text) != std::string::npos, message);
  };
  refused([](MccBlobHeader &h) { h.segmentCount = 4000000000u; }, "has 4000000000 segments; at most 16");
  refused([](MccBlobHeader &h) { h.segments[0].offset = 4097; }, "begins at 4097");
  refused([](MccBlobHeader &h) { h.segments[0].offset = 0; }, "begins at 0");
  refused([](MccBlobHeader &h) { h.segments[0].offset = ~uint64_t(0) / 4096 * 4096; }, "the file has 8192");
  refused([](MccBlobHeader &h) { h.segments[0].bytes = ~uint64_t(0); }, "18446744073709551615 bytes at 4096");
  refused([](MccBlobHeader &h) { h.segments[0].digest[0] ^= 1; }, "the segments' digests give");
  refused([](MccBlobHeader &h) { h.fileBytes += 4096; }, "file has 8192 bytes; its header says 12288");
  CHECK(openChanged(folder / "w", model, [](MccBlobHeader &) {}) == "");
}

TEST_CASE("JSON places") {
  auto parsed = JsonDocument::parse(
      "f", "\n{\"a\\\"]\": [1, {\"b\": \"}]\\\\\"}],\n  \"c\" : [[], {}, -1.5e3 , \"x\"],\"c\":[ 7 ]}\n", 10);
  REQUIRE_MESSAGE(parsed.ok(), parsed.message());
  const auto place = [&](std::vector<JsonStep> steps) { return parsed.value().failure(steps, "x").message; };
  CHECK(place({}) == "f:11:1: error: x");
  CHECK(place({"c"}) == "f:12:36: error: x");
  CHECK(place({"c", size_t(0)}) == "f:12:38: error: x");
  CHECK(place({"c", size_t(5)}) == "f:12:36: error: x");
  CHECK(place({"none", size_t(5)}) == "f:11:1: error: x");
  auto nested = JsonDocument::parse("f", "[[1, [2, \"a,]\", {\"k\": [3]}], 4], {\"k\":{\"j\":null}}]");
  REQUIRE(nested.ok());
  const auto inside = [&](std::vector<JsonStep> steps) { return nested.value().failure(steps, "x").message; };
  CHECK(inside({size_t(0), size_t(2)}) == "f:1:30: error: x");
  CHECK(inside({size_t(0), size_t(1), size_t(2), "k", size_t(0)}) == "f:1:24: error: x");
  CHECK(inside({size_t(1), "k", "j"}) == "f:1:44: error: x");
}

TEST_CASE("JSON syntax errors have places") {
  CHECK(JsonDocument::parse("f", "[1,\n 2,, 3]").message().starts_with("f:2:4: error: syntax error"));
  CHECK(JsonDocument::parse("f", "").message().starts_with("f:1:1: error: "));
  CHECK(JsonDocument::parse("f", "\"\xff\"").message().starts_with("f:1:2: error: "));
  CHECK(JsonDocument::parse("f", "{} x", 7).message().starts_with("f:7:4: error: "));
  CHECK(!JsonDocument::parse("f", "1e999").ok());
}

TEST_CASE("prompt lines") {
  const auto parse = [](const std::string &line) { return parsePromptLine("f", 3, line, 64); };
  CHECK(std::get<std::string>(parse("\"a b\"").value().prompt) == "a b");
  CHECK(std::get<std::string>(parse("{\"prompt\": \"\", \"n\": 0}").value().prompt) == "");
  CHECK(parse("{\"prompt\": \"\", \"n\": 0}").value().newTokens == 0);
  CHECK(std::get<1>(parse("{\"tokens\": [0, 63]}").value().prompt) == std::vector<int32_t>{0, 63});
  CHECK(parse("{\"tokens\": [0, 64]}").message() ==
        "f:3:16: error: 'tokens[1]' is 64; the vocabulary has 64 ids, 0 to 63");
  CHECK(parse("{\"tokens\": [1], \"prompt\": \"\"}").message() ==
        "f:3:1: error: an object needs either 'prompt' or 'tokens'");
  CHECK(parse("{\"prompt\": 4}").message().starts_with("f:3:12: error: 'prompt' must be a string"));
  CHECK(parse("{\"prompt\": \"\", \"n\": 1.5}").message().starts_with("f:3:21: error: 'n' must be a count"));
  CHECK(parse("{\"prompt\": \"\", \"N\": 1}").message().find("unknown key 'N'") != std::string::npos);
  CHECK(parse("7").message().starts_with("f:3:1: error: a line must be a string or an object"));
  CHECK(!parse("{\"tokens\": [18446744073709551616]}").ok());
}

TEST_CASE("lines of a file") {
  Folder folder;
  const std::string longLine(200000, 'x');
  std::ofstream(folder / "l") << "a\n\n" << longLine << "\nlast";
  auto reader = LineReader::open(folder / "l");
  REQUIRE(reader.ok());
  std::string line;
  for (const std::string &expected : {std::string("a"), std::string(), longLine, std::string("last")}) {
    REQUIRE(reader.value().next(line).value());
    CHECK(line == expected);
  }
  CHECK(reader.value().number() == 4);
  CHECK(!reader.value().next(line).value());
  CHECK(!LineReader::open(folder / "none").ok());
}

TEST_CASE("options") {
  const auto parse = [](std::vector<const char *> arguments) { return parseOptions(arguments); };
  CHECK(*parse({"text", "-n", "5"}).value().text == "text");
  CHECK(parse({"text", "-n", "5"}).value().newTokens == 5);
  CHECK(parse({"-n7", "text"}).value().newTokens == 7);
  CHECK(*parse({"-"}).value().text == "-");
  CHECK(*parse({""}).value().text == "");
  CHECK(*parse({"--", "--json"}).value().text == "--json");
  CHECK(*parse({"--tokens=0, 5,-6"}).value().tokens == std::vector<int64_t>{0, 5, -6});
  CHECK(parse({"--check", "f", "--tolerance", "1e-2"}).value().tolerance == 1e-2);
  CHECK(parse({"--help", "whatever"}).value().help);
  CHECK(parse({"--jsno", "a"}).message() == "unknown option '--jsno'; did you mean '--json'?");
  for (std::vector<const char *> wrong : {std::vector<const char *>{},
                                          {"--tokens", "1,,2"},
                                          {"--tokens", "1,"},
                                          {"a", "-n", "1x"},
                                          {"a", "-n", "99999999999999999999"},
                                          {"a", "--threads"},
                                          {"a", "--tolerance", "-1"},
                                          {"a", "--tokens", "1"}})
    CHECK(!parse(wrong).ok());
}
