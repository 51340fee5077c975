// safetensors: one good file read back, every rule of the format broken once, and shard indices.
#include "checkpoint_files.h"

#include "compiler/Import/Safetensors.h"

#include "doctest/doctest.h"

using namespace mcc;
using namespace mcc::test;

namespace {

std::string parseMessage(const std::string &header, const std::string &data) {
  std::string text = safetensors(header, data);
  llvm::ArrayRef<uint8_t> bytes(reinterpret_cast<const uint8_t *>(text.data()), text.size());
  return messageOf(parseSafetensors(bytes, "f"));
}

std::string entry(const std::string &name, const std::string &dtype, const std::string &shape, int begin, int end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

} // namespace

TEST_CASE("safetensors: types, shapes and bytes of a good file") {
  TempDirectory directory;
  std::string header = "{\"__metadata__\":{\"format\":\"pt\"}," + entry("w", "BF16", "[2,3]", 4, 16) + "," +
                       entry("b\\u00e9\\n", "F32", "[]", 0, 4) + "," + entry("ids", "I64", "[2]", 16, 32) + "," +
                       entry("none", "F16", "[0,4]", 16, 16) + "}   ";
  std::string path = directory.write("é file.safetensors", safetensors(header, "0123456789abcdefghijklmnopqrstuv"));
  auto opened = openSafetensors(path);
  REQUIRE_MESSAGE(static_cast<bool>(opened), messageOf(std::move(opened)));
  const Checkpoint &checkpoint = **opened;
  CHECK(checkpoint.name() == path);
  REQUIRE(checkpoint.tensors().size() == 4);

  const TensorInfo *w = checkpoint.find("w");
  REQUIRE(w);
  CHECK(w->format == Format::BF16);
  CHECK(w->shape == std::vector<int64_t>{2, 3});
  CHECK(w->bytes == 12);
  CHECK(w->file == path);
  uint8_t row[6];
  checkpoint.readRows(*w, 1, 1, row);
  CHECK(std::string(row, row + 6) == "abcdef");

  const TensorInfo *scalar = checkpoint.find("bé\n");
  REQUIRE(scalar);
  CHECK(scalar->shape.empty());
  CHECK(scalar->elems() == 1);
  CHECK(checkpoint.find("ids")->otherType == "I64");
  CHECK(checkpoint.find("none")->bytes == 0);
  CHECK(checkpoint.find("absent") == nullptr);
}

TEST_CASE("safetensors: the header's frame") {
  auto message = [](const std::string &text) {
    llvm::ArrayRef<uint8_t> bytes(reinterpret_cast<const uint8_t *>(text.data()), text.size());
    return messageOf(parseSafetensors(bytes, "f"));
  };
  CHECK(message("1234567") == "f: error: has 7 bytes; a safetensors file begins with an 8-byte header length");
  CHECK(message(bytesOf<uint64_t>(100'000'001) + "{}") ==
        "f: error: states a header of 100000001 bytes; safetensors allows 100000000");
  CHECK(message(bytesOf<uint64_t>(3) + "{}") ==
        "f: error: states a header of 3 bytes; 2 follow; the file is truncated");
  CHECK(message(bytesOf<uint64_t>(2) + "{}") == "");
}

TEST_CASE("safetensors: JSON that is not") {
  CHECK(parseMessage("{", "") == "f: header byte 9: error: the text ends where a string is needed");
  CHECK(parseMessage("[]", "") == "f: header byte 8: error: '[' found where an object ('{') is needed");
  CHECK(parseMessage("{} x", "") == "f: header byte 11: error: 'x' found where the end of the text is needed");
  CHECK(parseMessage("{\"\xff\":1}", "") == "f: header byte 10: error: byte 0xFF is not UTF-8");
  CHECK(holds(parseMessage("{\"a\\ud800\":1}", ""), "surrogate without its other half"));
  CHECK(holds(parseMessage("{\"a\\q\":1}", ""), "unknown escape '\\q'"));
  CHECK(holds(parseMessage("{\"a\nb\":1}", ""), "control character '\\x0a'"));
  CHECK(holds(parseMessage("{\"a\":{\"x\":" + std::string(100, '[') + "}}", ""), "nested more than 64 deep"));
  CHECK(holds(parseMessage("{\"__metadata__\":{\"a\":1}}", ""), "'1' found where a string is needed"));
  std::string a = entry("a", "F32", "[1]", 0, 4);
  CHECK(holds(parseMessage("{" + a + "," + a + "}", "0123"), "key 'a' occurs twice"));
}

TEST_CASE("safetensors: entries that lie") {
  auto one = [](const std::string &dtype, const std::string &shape, int begin, int end) {
    return parseMessage("{" + entry("t", dtype, shape, begin, end) + "}", "0123");
  };
  CHECK(one("F32", "[1]", 0, 4) == "");
  CHECK(holds(one("F7_X", "[1]", 0, 4), "tensor 't' has dtype 'F7_X', which safetensors does not have"));
  CHECK(one("F32", "[1]", 4, 0) == "f: tensor 't': error: data_offsets [4, 0] end before they begin");
  CHECK(one("F32", "[1]", 0, 8) == "f: tensor 't': error: data_offsets [0, 8] reach past the file's 4 bytes of data");
  CHECK(one("F32", "[1000,1000]", 0, 4) ==
        "f: tensor 't': error: shape [1000, 1000] of F32 takes 4000000 bytes; data_offsets [0, 4] hold 4");
  CHECK(holds(one("F32", "[4294967296,4294967296,4294967296]", 0, 4), "takes more than 2^63-1 bytes"));
  CHECK(holds(one("F32", "[9223372036854775807]", 0, 4), "takes more than 2^63-1 bytes"));
  CHECK(holds(one("F32", "[18446744073709551614]", 0, 4), "has a dimension of 18446744073709551614"));
  CHECK(holds(one("F32", "[99999999999999999999]", 0, 4), "does not fit 64 bits"));
  CHECK(holds(one("F32", "[-1]", 0, 4), "'-' found where an integer of 0 or more is needed"));
  CHECK(holds(one("F32", "[1.0]", 0, 4), "a number with a fraction"));
  CHECK(holds(one("F32", "[01]", 0, 4), "leading zero"));
  CHECK(holds(one("F4", "[3]", 0, 1), "no whole number"));
  CHECK(holds(parseMessage("{\"t\":{\"dtype\":\"U8\",\"shape\":[4]}}", "0123"), "tensor 't' has no 'data_offsets'"));
  CHECK(holds(parseMessage("{\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0]}}", "0123"),
              "has 1 data_offsets; there must be 2"));
}

TEST_CASE("safetensors: tensors tile the data") {
  auto two = [](int begin, int end, const std::string &data) {
    return parseMessage("{" + entry("a", "U8", "[4]", 0, 4) + "," +
                            entry("b", "U8", "[" + std::to_string(end - begin) + "]", begin, end) + "}",
                        data);
  };
  CHECK(two(4, 8, "01234567") == "");
  CHECK(two(3, 8, "01234567") == "f: tensor 'b': error: begins at data byte 3, inside tensor 'a', which ends at 4");
  CHECK(two(5, 8, "01234567") == "f: tensor 'b': error: begins at data byte 5; bytes 4 to 5 belong to no tensor");
  CHECK(two(4, 8, "0123456789") == "f: error: has 10 bytes of data; its tensors take 8");
}

TEST_CASE("safetensors: shards") {
  TempDirectory directory;
  std::string a = safetensors("{" + entry("a", "U8", "[4]", 0, 4) + "}", "aaaa");
  std::string b = safetensors("{" + entry("b", "U8", "[4]", 0, 4) + "}", "bbbb");
  std::string both =
      safetensors("{" + entry("a", "U8", "[4]", 0, 4) + "," + entry("b", "U8", "[4]", 4, 8) + "}", "aaaabbbb");
  directory.write("1.safetensors", a);
  directory.write("2.safetensors", b);
  directory.write("both.safetensors", both);
  auto message = [&](const std::string &json) {
    return messageOf(openSafetensorsIndex(directory.write("i.safetensors.index.json", json)));
  };
  std::string where = directory.path("i.safetensors.index.json");

  CHECK(
      message("{\"metadata\":{\"total_size\":8},\n\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"2.safetensors\"}}") ==
      "");
  auto opened = openSafetensorsIndex(where);
  REQUIRE(static_cast<bool>(opened));
  CHECK((*opened)->find("b")->file == directory.path("2.safetensors"));
  CHECK((*opened)->find("b")->data[0] == 'b');

  std::string missing = message("{\"weight_map\":{\n  \"a\":\"1.safetensors\",\"b\":\"3.safetensors\"}}");
  CHECK(holds(missing, where + ":2:27: error: shard '3.safetensors' cannot be used"));
  CHECK(holds(missing, "no such file"));
  CHECK(message("{\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"1.safetensors\",\"c\":\"1.safetensors\"}}") ==
        where + ": error: puts tensor 'b' in '1.safetensors', which lacks it");
  CHECK(holds(message("{\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"both.safetensors\"}}"),
              "tensor 'a': error: is in this shard and in " + directory.path("1.safetensors")));
  CHECK(holds(message("{\"weight_map\":{\"a\":\"2.safetensors\",\"b\":\"both.safetensors\"}}"),
              "tensor 'b': error: is in this shard; the index puts it in 'both.safetensors'"));
  CHECK(holds(message("{\"weight_map\":{\"a\":\"../1.safetensors\"}}"), "is not a file name beside the index"));
  CHECK(holds(message("{\"weight_map\":{\"a\":\"/1.safetensors\"}}"), "is not a file name beside the index"));
  CHECK(holds(message("{\"weight_map\":{}}"), "'weight_map' is empty"));
  CHECK(holds(message("{\"weights\":{}}"), "has no 'weight_map'"));
  CHECK(holds(message("{\"weight_map\":{\"a\":\"1.safetensors\",\n\"a\":\"1.safetensors\"}}"),
              ":2:1: error: key 'a' occurs twice"));
}
