// GGUF: metadata and tensors of a good file, every rule broken once, split sets.
#include "checkpoint_files.h"

#include "compiler/Import/Gguf.h"

#include "doctest/doctest.h"

#include <cstring>
#include <limits>
#include <vector>

using namespace mcc;
using namespace mcc::test;

namespace {

llvm::Expected<std::shared_ptr<const GgufFile>> parse(const std::string &text) {
  return GgufFile::parse({reinterpret_cast<const uint8_t *>(text.data()), text.size()}, "f");
}

std::string parseMessage(const GgufBuilder &builder) {
  std::string text = builder.text();
  return messageOf(parse(text));
}

constexpr uint32_t kF32 = 0, kQ4_0 = 2, kQ8_K = 15, kI32 = 26;

GgufBuilder withTensor(const std::string &tensor, size_t dataBytes) {
  GgufBuilder builder;
  builder.tensors = {tensor};
  builder.data = std::string(dataBytes, 'd');
  return builder;
}

GgufBuilder withEntry(const std::string &entry) {
  GgufBuilder builder;
  builder.entries = {entry};
  return builder;
}

} // namespace

TEST_CASE("gguf: typed metadata") {
  GgufBuilder builder;
  builder.version = 2;
  builder.entries = {
      ggufEntry("u8", 0, bytesOf<uint8_t>(200)),
      ggufEntry("i16", 3, bytesOf<int16_t>(-5)),
      ggufEntry("u64", 10, bytesOf<uint64_t>(~0ull)),
      ggufEntry("f32", 6, bytesOf(0.5f)),
      ggufEntry("f64", 12, bytesOf(0.25)),
      ggufEntry("yes", 7, bytesOf<uint8_t>(1)),
      ggufEntry("text", 8, ggufString("héllo")),
      ggufEntry("words", 9,
                bytesOf<uint32_t>(8) + bytesOf<uint64_t>(3) + ggufString("a") + ggufString("") + ggufString("bc")),
      ggufEntry("ints", 9, bytesOf<uint32_t>(5) + bytesOf<uint64_t>(2) + bytesOf<int32_t>(-1) + bytesOf<int32_t>(7)),
      ggufEntry("floats", 9, bytesOf<uint32_t>(6) + bytesOf<uint64_t>(1) + bytesOf(1.5f)),
  };
  std::string text = builder.text();
  auto parsed = parse(text);
  REQUIRE_MESSAGE(static_cast<bool>(parsed), messageOf(std::move(parsed)));
  const GgufFile &file = **parsed;
  CHECK(file.version() == 2);
  CHECK(file.entries().size() == 10);
  CHECK(**file.getInt("u8") == 200);
  CHECK(**file.getInt("i16") == -5);
  CHECK(**file.getFloat("i16") == -5.0);
  CHECK(messageOf(file.getInt("u64")) == "f: error: key 'u64' is u64; an integer below 2^63 is needed");
  CHECK(**file.getFloat("u64") == 18446744073709551616.0);
  CHECK(**file.getFloat("f32") == 0.5);
  CHECK(**file.getFloat("f64") == 0.25);
  CHECK(**file.getBool("yes") == true);
  CHECK(**file.getString("text") == "héllo");
  CHECK(**file.getStrings("words") == std::vector<llvm::StringRef>{"a", "", "bc"});
  const GgufValue *ints = *file.getNumbers("ints");
  REQUIRE(ints);
  CHECK(ints->size() == 2);
  CHECK(*ints->intAt(0) == -1);
  CHECK(*ints->floatAt(1) == 7.0);
  CHECK(*(*file.getNumbers("floats"))->floatAt(0) == 1.5);
  CHECK((*file.getNumbers("floats"))->intAt(0) == std::nullopt);

  CHECK(*file.getInt("absent") == std::nullopt);
  CHECK(*file.getNumbers("absent") == nullptr);
  CHECK(messageOf(file.requireInt("absent")) == "f: error: has no key 'absent', which the model needs");
  CHECK(messageOf(file.getInt("text")) == "f: error: key 'text' is string; an integer below 2^63 is needed");
  CHECK(messageOf(file.getInt("ints")) == "f: error: key 'ints' is array of 2 i32; an integer below 2^63 is needed");
  CHECK(messageOf(file.getBool("u8")) == "f: error: key 'u8' is u8; bool is needed");
  CHECK(messageOf(file.getStrings("ints")) == "f: error: key 'ints' is array of 2 i32; an array of string is needed");
  CHECK(messageOf(file.getNumbers("words")) ==
        "f: error: key 'words' is array of 3 string; an array of numbers is needed");
  CHECK(messageOf(file.requireFloat("yes")) == "f: error: key 'yes' is bool; a number is needed");
}

TEST_CASE("gguf: tensors become PyTorch shapes, padded to the alignment") {
  TempDirectory directory;
  GgufBuilder builder;
  builder.alignment = 64;
  builder.entries = {ggufEntry("general.alignment", 4, bytesOf<uint32_t>(64))};
  builder.tensors = {ggufTensor("b.weight", {32, 2}, kQ4_0, 0), ggufTensor("a.bias", {3}, kF32, 64),
                     ggufTensor("odd", {256}, kQ8_K, 128), ggufTensor("empty", {0, 4}, kI32, 448)};
  builder.data = std::string(36, 'q') + std::string(28, 0) + bytesOf(1.0f) + bytesOf(2.0f) + bytesOf(3.0f) +
                 std::string(52, 0) + std::string(292, 'k') + std::string(28, 0);
  auto opened = openGguf(directory.write("m.gguf", builder.text()));
  REQUIRE_MESSAGE(static_cast<bool>(opened), messageOf(std::move(opened)));
  const Checkpoint &checkpoint = **opened;
  REQUIRE(checkpoint.gguf());
  const TensorInfo *weight = checkpoint.find("b.weight"), *bias = checkpoint.find("a.bias");
  CHECK(weight->shape == std::vector<int64_t>{2, 32});
  CHECK(weight->format == Format::Q4_0);
  CHECK(weight->bytes == 36);
  float values[3];
  checkpoint.readRows(*bias, 0, 1, reinterpret_cast<uint8_t *>(values));
  CHECK(values[2] == 3.0f);
  CHECK(checkpoint.find("odd")->otherType == "q8_k");
  CHECK(checkpoint.find("odd")->data[291] == 'k');
  CHECK(checkpoint.find("empty")->otherType == "i32");
}

TEST_CASE("gguf: types without a kernel are read as f32") {
  TempDirectory directory;
  GgufBuilder builder = withTensor(ggufTensor("t", {64, 2}, 42, 0), 0);
  // Two rows of one q2_0 block each, d = 1 and 2: every element is the bit pair less one.
  builder.data =
      std::string("\x00\x3c", 2) + std::string(16, '\xe4') + std::string("\x00\x40", 2) + std::string(16, '\xff');
  builder.data.resize(64);
  auto opened = openGguf(directory.write("m.gguf", builder.text()));
  REQUIRE_MESSAGE(static_cast<bool>(opened), messageOf(std::move(opened)));
  const TensorInfo *tensor = (*opened)->find("t");
  CHECK(tensor->format == Format::F32);
  CHECK(tensor->typeName() == "q2_0");
  CHECK(tensor->bytes == 36);
  std::vector<uint8_t> raw(1 + 128 * 4); // deliberately not aligned
  (*opened)->readRows(*tensor, 0, 2, raw.data() + 1);
  float values[128];
  std::memcpy(values, raw.data() + 1, sizeof(values));
  CHECK(std::vector<float>(values, values + 5) == std::vector<float>{-1, 0, 1, 2, -1});
  CHECK(values[64] == 4);
  (*opened)->readRows(*tensor, 1, 1, raw.data());
  std::memcpy(values, raw.data(), 256);
  CHECK(values[63] == 4);
}

TEST_CASE("gguf: header") {
  GgufBuilder builder;
  CHECK(parseMessage(builder) == "");
  builder.magic = "FUGG";
  CHECK(parseMessage(builder) == "f: error: begins with 'FUGG'; a GGUF file begins with 'GGUF'");
  builder = {};
  builder.version = 1;
  CHECK(holds(parseMessage(builder), "is GGUF version 1; mcc reads versions 2 and 3"));
  builder.version = 4;
  CHECK(parseMessage(builder) == "f: error: is GGUF version 4; mcc reads versions 2 and 3");
  builder.version = 0x03000000;
  CHECK(parseMessage(builder) == "f: error: is a big-endian GGUF file (version 3); mcc reads little-endian ones");
  builder = {};
  builder.extraTensors = -1;
  CHECK(holds(parseMessage(builder), "states 18446744073709551615 tensors; the 8 bytes left hold no more than 0"));
  builder = {};
  builder.extraEntries = -1;
  CHECK(holds(parseMessage(builder), "states 18446744073709551615 metadata entries"));
  CHECK(holds(messageOf(parse("GGUF\3")), "inside the version; the file is truncated"));
  CHECK(holds(messageOf(parse("GG")), "begins with 'GG'"));
}

TEST_CASE("gguf: metadata that lies") {
  auto message = [](const std::string &entry) { return parseMessage(withEntry(entry)); };
  CHECK(message(ggufEntry("k", 0, "\1")) == "");
  CHECK(message(ggufEntry("", 0, "\1")) == "f: error: metadata entry 0 has an empty key");
  CHECK(message(ggufEntry("k", 13, "\1")) == "f: error: key 'k' has value type 13; types are 0 to 12");
  CHECK(holds(message(ggufEntry("k", 8, bytesOf<uint64_t>(1ull << 62))),
              "string 0 of key 'k' is stated to have 4611686018427387904 bytes"));
  CHECK(holds(message(bytesOf<uint64_t>(~0ull) + "keykeykey"),
              "the key of metadata entry 0 is stated to have 18446744073709551615 bytes"));
  auto array = [](uint32_t type, uint64_t count, const std::string &rest) {
    return ggufEntry("k", 9, bytesOf(type) + bytesOf(count) + rest);
  };
  CHECK(message(array(0, 3, "abc")) == "");
  CHECK(holds(message(array(4, 1ull << 61, "")), "is an array of 2305843009213693952 u32"));
  CHECK(holds(message(array(8, 1ull << 61, "")), "is an array of 2305843009213693952 string"));
  CHECK(holds(message(array(8, 1, bytesOf<uint64_t>(99999))), "string 0 of key 'k' is stated to have 99999 bytes"));
  CHECK(holds(message(array(9, 1, "")), "is an array of arrays"));
  CHECK(holds(message(array(77, 1, "")), "is an array of type 77"));
  GgufBuilder twice;
  twice.entries = {ggufEntry("k", 0, "\1"), ggufEntry("k", 0, "\1")};
  CHECK(parseMessage(twice) == "f: error: metadata key 'k' occurs twice");
  CHECK(message(ggufEntry("general.alignment", 4, bytesOf<uint32_t>(13))) ==
        "f: error: key 'general.alignment' is 13; it must be a power of two");
  CHECK(holds(message(ggufEntry("general.alignment", 4, bytesOf<uint32_t>(0))), "must be a power of two"));
  CHECK(message(ggufEntry("general.alignment", 10, bytesOf<uint64_t>(32))) ==
        "f: error: key 'general.alignment' is u64; it must be u32");
}

TEST_CASE("gguf: tensors that lie") {
  auto message = [](const std::string &tensor, size_t bytes) { return parseMessage(withTensor(tensor, bytes)); };
  CHECK(message(ggufTensor("t", {32}, kF32, 0), 128) == "");
  CHECK(message(ggufTensor("t", {32}, kF32, 0), 127) ==
        "f: tensor 't': error: its 128 bytes at offset 0 reach past the file's 127 bytes of data");
  // The last tensor's padding may be absent, but not in part.
  CHECK(message(ggufTensor("t", {33}, kF32, 0), 132) == "");
  CHECK(message(ggufTensor("t", {33}, kF32, 0), 159) ==
        "f: error: has 159 bytes of data; its tensors take 160 with padding; the file is truncated");
  CHECK(message(ggufTensor("t", {33}, kF32, 0), 160) == "");
  CHECK(message(ggufTensor("", {32}, kF32, 0), 128) == "f: error: tensor 0 has an empty name");
  CHECK(holds(message(ggufTensor(std::string(64, 'n'), {32}, kF32, 0), 128), "its name has 64 bytes; GGUF allows 63"));
  CHECK(message(ggufTensor(std::string(63, 'n'), {32}, kF32, 0), 128) == "");
  CHECK(message(ggufTensor("t", {1, 1, 1, 1, 1}, kF32, 0), 128) ==
        "f: tensor 't': error: has 5 dimensions; GGUF allows 4");
  CHECK(message(ggufTensor("t", {-1}, kF32, 0), 128) ==
        "f: tensor 't': error: dimension 0 is -1; it must be 0 or more");
  CHECK(holds(message(ggufTensor("t", {1ll << 33, 1ll << 33}, kF32, 0), 128),
              "first 2 dimensions multiply to more than 2^63-1"));
  CHECK(holds(message(ggufTensor("t", {std::numeric_limits<int64_t>::max()}, kF32, 0), 128),
              "take more than 2^64-1 bytes"));
  CHECK(message(ggufTensor("t", {33}, kQ4_0, 0), 128) ==
        "f: tensor 't': error: its rows have 33 elements; q4_0 comes in blocks of 32");
  CHECK(message(ggufTensor("t", {32}, 4, 0), 128) == "f: tensor 't': error: has ggml type 4, which is none");
  CHECK(message(ggufTensor("t", {32}, 9999, 0), 128) == "f: tensor 't': error: has ggml type 9999, which is none");
  CHECK(message(ggufTensor("t", {32}, kF32, 32), 160) ==
        "f: tensor 't': error: is at offset 32 of the data; the tensors before it end at 0");
  GgufBuilder twice = withTensor(ggufTensor("t", {8}, kF32, 0), 64);
  twice.tensors.push_back(ggufTensor("t", {8}, kF32, 32));
  CHECK(parseMessage(twice) == "f: tensor 't': error: occurs twice");
  twice.tensors.back() = ggufTensor("u", {8}, kF32, 16);
  CHECK(parseMessage(twice) == "f: tensor 'u': error: is at offset 16 of the data; the tensors before it end at 32");
}

TEST_CASE("gguf: a header without data is listed, and has no data") {
  GgufBuilder builder = withTensor(ggufTensor("t", {32}, kF32, 0), 0);
  std::string text = builder.text();
  auto parsed = parse(text);
  REQUIRE(static_cast<bool>(parsed));
  CHECK(!(*parsed)->hasData());
  CHECK((*parsed)->tensors()[0].bytes == 128);
}

TEST_CASE("gguf: every truncation of a good file is refused or a bare header") {
  GgufBuilder builder = withTensor(ggufTensor("t", {8}, kF32, 0), 32);
  builder.entries = {
      ggufEntry("words", 9, bytesOf<uint32_t>(8) + bytesOf<uint64_t>(2) + ggufString("abc") + ggufString("d")),
      ggufEntry("n", 4, bytesOf<uint32_t>(1))};
  std::string text = builder.text();
  for (size_t size = 0; size < text.size(); ++size) {
    std::string cut = text.substr(0, size);
    auto parsed = parse(cut);
    if (!parsed) {
      llvm::consumeError(parsed.takeError());
      continue;
    }
    CHECK_MESSAGE(!(*parsed)->hasData(), size);
  }
}

TEST_CASE("gguf: split sets") {
  TempDirectory directory;
  auto part = [](uint16_t number, uint16_t count, int32_t tensors, const std::string &name) {
    GgufBuilder builder = withTensor(ggufTensor(name, {8}, kF32, 0), 32);
    builder.entries = {ggufEntry("split.no", 2, bytesOf(number)), ggufEntry("split.count", 2, bytesOf(count)),
                       ggufEntry("split.tensors.count", 5, bytesOf(tensors))};
    return builder.text();
  };
  std::string first = directory.write("m-00001-of-00002.gguf", part(0, 2, 2, "a"));
  std::string second = directory.path("m-00002-of-00002.gguf");
  CHECK(messageOf(openGguf(first)) == second + ": error: no such file");
  directory.write("m-00002-of-00002.gguf", part(1, 2, 2, "b"));
  auto opened = openGguf(first);
  REQUIRE_MESSAGE(static_cast<bool>(opened), messageOf(std::move(opened)));
  CHECK((*opened)->tensors().size() == 2);
  CHECK((*opened)->find("b")->file == second);
  CHECK(messageOf(openGguf(second)) == second + ": error: is part 2 of 2 of a split model; give the first part");
  CHECK(messageOf(openCheckpoint(directory.path())) == "");

  directory.write("m-00002-of-00002.gguf", part(1, 2, 2, "a"));
  CHECK(messageOf(openGguf(first)) == second + ": tensor 'a': error: is in this part and in " + first);
  directory.write("m-00002-of-00002.gguf", part(2, 3, 2, "b"));
  CHECK(holds(messageOf(openGguf(first)), "says that it is part 3 of 3; its name says 2 of 2"));
  directory.write("m-00002-of-00002.gguf", part(1, 2, 2, "b"));
  directory.write("m-00001-of-00002.gguf", part(0, 2, 5, "a"));
  CHECK(holds(messageOf(openGguf(first)), "says that the set has 5 tensors; its 2 parts have 2"));
  std::string renamed = directory.write("other.gguf", part(0, 2, 2, "a"));
  CHECK(holds(messageOf(openGguf(renamed)), "its name does not end in '-00001-of-00002.gguf'"));
}
