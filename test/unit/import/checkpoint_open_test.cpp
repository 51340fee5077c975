// What a path may be: files by name or by contents, directories, and what is refused.
#include "checkpoint_files.h"

#include "compiler/Import/Checkpoint.h"
#include "compiler/Support/MappedFile.h"

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "doctest/doctest.h"

#include <sys/stat.h>

using namespace mcc;
using namespace mcc::test;

namespace {

const std::string kTensors = safetensors(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "0123");

std::string openMessage(const std::string &path) { return messageOf(openCheckpoint(path)); }

} // namespace

TEST_CASE("mapped file: refusals name the path") {
  TempDirectory directory;
  std::string empty = directory.write("empty", ""), fifo = directory.path("fifo"), absent = directory.path("absent");
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(messageOf(MappedFile::open(absent)) == absent + ": error: no such file");
  CHECK(messageOf(MappedFile::open(empty)) == empty + ": error: is empty (0 bytes)");
  CHECK(messageOf(MappedFile::open(fifo)) == fifo + ": error: is not a regular file; it cannot be mapped");
  CHECK(messageOf(MappedFile::open(directory.path())) ==
        directory.path() + ": error: is a directory; a file is needed here");
  auto file = MappedFile::open(directory.write("f", "hello"));
  REQUIRE(static_cast<bool>(file));
  CHECK((*file)->size() == 5);
  CHECK((*file)->data()[4] == 'o');
}

TEST_CASE("open: by name, and by contents where the name says nothing") {
  TempDirectory directory;
  CHECK(openMessage(directory.write("m.safetensors", kTensors)) == "");
  CHECK(openMessage(directory.write("blob1", kTensors)) == "");
  CHECK(openMessage(directory.write("m.gguf", GgufBuilder().text())) == "");
  CHECK(openMessage(directory.write("blob2", GgufBuilder().text())) == "");
  CHECK(holds(openMessage(directory.write("w.gguf", kTensors)), "a GGUF file begins with 'GGUF'"));
  CHECK(holds(openMessage(directory.write("pytorch_model.bin", "PK\3\4abcdefgh")), "looks like a PyTorch pickle"));
  CHECK(holds(openMessage(directory.write("notes.txt", "some text here")), "neither safetensors nor GGUF"));
  CHECK(holds(openMessage(directory.path("absent.gguf")), "no such file"));
}

TEST_CASE("open: directories") {
  TempDirectory directory;
  std::string path = directory.path("d");
  directory.write("d/config.json", "{}");
  CHECK(openMessage(path) == path + ": error: holds no checkpoint; needed: model.safetensors, "
                                    "model.safetensors.index.json, or one *.safetensors or *.gguf file; found: "
                                    "'config.json'");
  directory.write("d/one.gguf", GgufBuilder().text());
  CHECK(openMessage(path) == "");
  directory.write("d/two.gguf", GgufBuilder().text());
  CHECK(openMessage(path) == path + ": error: holds 2 *.gguf files and no model.safetensors: 'one.gguf', 'two.gguf'; "
                                    "name one of them");
  directory.write("d/x.safetensors", kTensors);
  auto opened = openCheckpoint(path);
  REQUIRE(static_cast<bool>(opened));
  CHECK((*opened)->name() == directory.path("d/x.safetensors"));
  directory.write("d/y.safetensors", kTensors);
  CHECK(holds(openMessage(path), "holds 2 *.safetensors files"));
  directory.write("d/model.safetensors.index.json", R"({"weight_map":{"a":"y.safetensors"}})");
  CHECK(openMessage(path) == "");
  directory.write("d/model.safetensors", kTensors);
  opened = openCheckpoint(path + "/");
  REQUIRE(static_cast<bool>(opened));
  CHECK(holds((*opened)->name().str(), "model.safetensors"));
  CHECK(!holds((*opened)->name().str(), "index"));
}
