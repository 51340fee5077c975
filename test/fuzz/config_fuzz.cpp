// Any bytes as a config.json or a spec: no crash, no wild allocation; what is accepted prints and reads back the same;
// and the JSON grammar is nlohmann_json's but for the three differences that LocatedJson.h names.
#include "compiler/Import/HuggingFaceConfig.h"
#include "compiler/Import/SpecJson.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

using namespace mcc;

static void require(bool holds) {
  if (!holds)
    std::abort();
}

static void checkGrammar(llvm::StringRef text, llvm::StringRef message) {
  // nlohmann_json takes a NUL byte for the end of the text.
  if (text.contains('\0'))
    return;
  bool python = text.contains("NaN") || text.contains("Infinity");
  bool stricter = message.contains("occurs twice") || message.contains("nested arrays");
  if (!python && !stricter)
    require(nlohmann::json::accept(text.begin(), text.end()) == message.empty());
}

static void checkSpec(llvm::Expected<ModelSpec> spec) {
  if (!spec) {
    require(!llvm::toString(spec.takeError()).empty());
    return;
  }
  std::string text = printSpec(*spec);
  JsonDocument printed = llvm::cantFail(JsonDocument::parse(text, "printed"));
  ModelSpec again = llvm::cantFail(readSpec(printed));
  require(again == *spec);
  require(printSpec(again) == text);
  // The sizes of large models take long to count.
  if (spec->layers.size() * (spec->blocks.size() + 1) < 1000)
    require(!describeSize(*spec).empty());
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  llvm::Expected<JsonDocument> document = JsonDocument::parse(text, "config.json");
  std::string message = document ? "" : llvm::toString(document.takeError());
  checkGrammar(text, message);
  if (!message.empty())
    return 0;
  checkSpec(isSpecJson(*document) ? readSpec(*document) : readHuggingFaceConfig(*document, &*document));
  return 0;
}
