// Feeds arbitrary bytes to the GGUF reader, then asks an accepted file for everything it claims to have: each value in
// every type, and the first and last byte of each tensor. Nothing may crash, overflow or leak.
#include "compiler/Import/Gguf.h"

#include <cstddef>
#include <cstdlib>

using namespace mcc;

static void readValue(const GgufFile &file, llvm::StringRef key, const GgufValue &value) {
  llvm::consumeError(file.getInt(key).takeError());
  llvm::consumeError(file.getFloat(key).takeError());
  llvm::consumeError(file.getBool(key).takeError());
  llvm::consumeError(file.getString(key).takeError());
  llvm::consumeError(file.getStrings(key).takeError());
  auto numbers = file.getNumbers(key);
  if (!numbers)
    llvm::consumeError(numbers.takeError());
  else
    for (uint64_t i = 0; i < (*numbers)->size(); ++i)
      (*numbers)->floatAt(i);
  volatile size_t sink = value.typeName().size();
  (void)sink;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto file = GgufFile::parse({data, size}, "fuzz");
  if (!file) {
    llvm::consumeError(file.takeError());
    return 0;
  }
  for (const auto &[key, value] : (*file)->entries())
    readValue(**file, key, value);
  for (const GgufTensor &tensor : (*file)->tensors()) {
    if (!(*file)->hasData() || tensor.bytes == 0)
      continue;
    if (tensor.offset > size || tensor.bytes > size - tensor.offset)
      std::abort(); // the reader let a tensor out of the file
    volatile uint8_t sink = data[tensor.offset] ^ data[tensor.offset + tensor.bytes - 1];
    (void)sink;
  }
  return 0;
}
