// Published tokenizers against their own software: the Rust library's vectors for three tokenizer.json, llama.cpp's
// vectors for its vocabulary-only GGUF files, and models whose recorded texts are known. Needs the folder that
// MCC_ORACLE_DIR names; skipped (77) without it.
#include "Support.h"

#include "compiler/Import/Gguf.h"
#include "compiler/Tokenizer/TokenizerImport.h"

#define DOCTEST_CONFIG_IMPLEMENT
#include "doctest/doctest.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <unistd.h>

using namespace mcc;
using namespace mcc::test;
namespace fs = std::filesystem;

namespace {

fs::path oracle;

/// A folder that goes away.
struct Unpacked {
  fs::path folder;
  explicit Unpacked(const fs::path &archive) {
    std::string name = (fs::temp_directory_path() / "mcc-tokenizers-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()));
    folder = name;
    REQUIRE(std::system(("tar -xJf '" + archive.string() + "' -C '" + name + "'").c_str()) == 0);
  }
  ~Unpacked() { fs::remove_all(folder); }
};

std::string readFile(const fs::path &path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<std::string> split(const std::string &text, const std::string &separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t at; (at = text.find(separator, begin)) != std::string::npos; begin = at + separator.size())
    parts.push_back(text.substr(begin, at - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

Loaded loadGguf(const fs::path &path) {
  auto file = GgufFile::open(path.string());
  Loaded loaded;
  if (!file) {
    loaded.error = llvm::toString(file.takeError());
    return loaded;
  }
  auto image = importGgufTokenizer(**file);
  if (image)
    return loadImage(std::move(*image));
  loaded.error = llvm::toString(image.takeError());
  return loaded;
}

} // namespace

TEST_CASE("published tokenizer.json against the Rust library") {
  Unpacked real(oracle / "real-tokenizers" / "tokenizers.tar.xz");
  for (auto [vectors, folder] : {std::pair("rust_gpt2", "gpt2"), std::pair("rust_falcon", "falcon-7b"),
                                 std::pair("rust_llama2_from_gguf", "llama2_from_gguf")}) {
    CAPTURE(vectors);
    Loaded tokenizer = loadFile((real.folder / folder / "tokenizer.json").string());
    REQUIRE_MESSAGE(tokenizer.tokenizer, tokenizer.error);
    JsonDocument golden = readJson((oracle / "real-tokenizers/vectors" / (std::string(vectors) + ".json")).string());
    const std::vector<JsonValue> &cases = golden.root.find("cases")->value.elements;
    CHECK(cases.size() == 126);
    for (const JsonValue &entry : cases) {
      const std::string &text = entry.find("text")->value.string;
      CAPTURE(text);
      std::vector<int32_t> ids = tokenizer->encode(text, true);
      CHECK(ids == idsOf(entry.find("ids")->value));
      CHECK(tokenizer->encode(text, false) == idsOf(entry.find("ids_no_special")->value));
      CHECK(tokenizer->decode(ids, true) == entry.find("decode_skip_special")->value.string);
      CHECK(streamed(*tokenizer, ids) == entry.find("decode_skip_special")->value.string);
    }
  }
}

TEST_CASE("large vocabularies load in under 50 ms and come back") {
  Unpacked real(oracle / "real-tokenizers" / "tokenizers.tar.xz");
  for (std::string folder : {"pythia", "minicpm3", "falcon-7b"}) {
    CAPTURE(folder);
    Loaded tokenizer = loadFile((real.folder / folder / "tokenizer.json").string());
    REQUIRE_MESSAGE(tokenizer.tokenizer, tokenizer.error);
    double best = 1;
    for (int round = 0; round < 5; ++round) {
      auto start = std::chrono::steady_clock::now();
      std::string error;
      CHECK(Tokenizer::load(tokenizer.image.data(), tokenizer.image.size(), error));
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    MESSAGE(folder << ": " << tokenizer->size() << " tokens loaded in " << best * 1e3 << " ms");
    CHECK(best < 0.05);
    for (const char *text : {"Hello, world!", "  two  spaces\n\n", "naïve café, 12345 — “ok”", "你好，世界"})
      CHECK(tokenizer->decode(tokenizer->encode(text, true), true) == text);
  }
}

TEST_CASE("GGUF vocabularies against llama.cpp") {
  Unpacked vocabularies(oracle / "gguf-vocab" / "llama.cpp-vocab.tar.xz");
  int compared = 0;
  for (const auto &entry : fs::recursive_directory_iterator(vocabularies.folder)) {
    fs::path path = entry.path();
    if (path.extension() != ".gguf")
      continue;
    CAPTURE(path.filename().string());
    Loaded tokenizer = loadGguf(path);
    if (path.filename() == "ggml-vocab-bert-bge.gguf") {
      CHECK(tokenizer.error.find("the tokenizer 'bert' is not supported") != std::string::npos);
      continue;
    }
    REQUIRE_MESSAGE(tokenizer.tokenizer, tokenizer.error);
    if (!fs::exists(path.string() + ".inp"))
      continue;
    ++compared;
    std::vector<std::string> texts = split(readFile(path.string() + ".inp"), "\n__ggml_vocab_test__\n");
    std::vector<std::string> lines = split(readFile(path.string() + ".out"), "\n");
    REQUIRE(lines.size() >= texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      CAPTURE(texts[i]);
      std::istringstream stream(lines[i]);
      std::vector<int32_t> expected{std::istream_iterator<int32_t>(stream), {}};
      std::vector<int32_t> ids = tokenizer->encode(texts[i], false);
      CHECK(ids == expected);
      CHECK(tokenizer->decode(ids, true) == texts[i]);
    }
  }
  CHECK(compared == 9);
}

TEST_CASE("the trained models' own tokenizers") {
  Loaded kjv = loadFile((oracle / "kjv/tokenizer.json").string());
  REQUIRE_MESSAGE(kjv.tokenizer, kjv.error);
  std::string verse = "In the beginning God created the heaven and the earth.";
  CHECK(kjv->decode(kjv->encode(verse, true), true) == verse);
  Loaded stories = loadGguf(oracle / "stories260K/stories260K.gguf");
  REQUIRE_MESSAGE(stories.tokenizer, stories.error);
  // What the model wrote: the recorded ids are those of the recorded text.
  JsonDocument greedy = readJson((oracle / "stories260K/greedy_f64_python.json").string());
  std::vector<int32_t> written = idsOf(greedy.root.find("output_ids")->value);
  const std::string &text = greedy.root.find("text")->value.string;
  CHECK(stories->decode(written, true) == text);
  CHECK(streamed(*stories, written) == text);
  CHECK(stories->encode(text.substr(0, 16), true) == std::vector<int32_t>{1, written[0], written[1], written[2], written[3]});
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
