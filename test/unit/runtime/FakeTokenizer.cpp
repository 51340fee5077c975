// fake-tokenizer TOKENIZER.JSON IMAGE: serialises a tokenizer as the compiler does.
#include "compiler/Tokenizer/TokenizerImport.h"

#include "llvm/Support/raw_ostream.h"

#include <cstdio>

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  llvm::Expected<std::vector<uint8_t>> image = mcc::importTokenizerJson(argv[1]);
  if (!image) {
    llvm::errs() << llvm::toString(image.takeError()) << "\n";
    return 1;
  }
  std::FILE *file = std::fopen(argv[2], "wb");
  const bool written = file != nullptr && std::fwrite(image->data(), 1, image->size(), file) == image->size();
  return file != nullptr && std::fclose(file) == 0 && written ? 0 : 1;
}
