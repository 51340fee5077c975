// fake-model-weights WEIGHTS INC [SALT [IMAGE]]: writes the weights file of the fake model and the macros with its id.
// Another salt gives other weights of the same size; IMAGE is the content of the segment "tokenizer".
#include "compiler/Artifact/BlobWriter.h"
#include "test/unit/runtime/FakeModel.h"

#include <cstdio>
#include <cstdlib>

static bool appendFile(mcc::BlobWriter &writer, const char *path) {
  std::FILE *file = std::fopen(path, "rb");
  if (file == nullptr)
    return false;
  writer.beginSegment("tokenizer");
  char block[4096];
  for (size_t count; (count = std::fread(block, 1, sizeof block, file)) > 0;)
    writer.append(block, count);
  return std::fclose(file) == 0;
}

int main(int argc, char **argv) {
  if (argc < 3)
    return 2;
  const int salt = argc > 3 ? std::atoi(argv[3]) : 0;
  mcc::BlobWriter writer(argv[1]);
  writer.beginSegment("weights");
  for (int64_t v = 0; v < mcc::test::fakeVocabulary; ++v) {
    const uint8_t weight = static_cast<uint8_t>(mcc::test::fakeWeight(v) + salt);
    writer.append(&weight, 1);
  }
  if (argc > 4 && !appendFile(writer, argv[4]))
    return 1;
  if (!writer.finish() || !writer.commit()) {
    std::fprintf(stderr, "%s\n", writer.error().c_str());
    return 1;
  }
  std::FILE *inc = std::fopen(argv[2], "w");
  if (inc == nullptr)
    return 1;
  std::fprintf(inc, "#define MCC_FAKE_BLOB_BYTES %llu\n#define MCC_FAKE_BLOB_ID {",
               static_cast<unsigned long long>(writer.fileBytes()));
  for (uint8_t byte : writer.id())
    std::fprintf(inc, "%d, ", byte);
  std::fprintf(inc, "}\n");
  return std::fclose(inc) == 0 ? 0 : 1;
}
