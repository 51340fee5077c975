// Feeds arbitrary bytes to the safetensors reader; of an accepted file, the tensors must tile the data and agree with
// their shapes. Nothing may crash, overflow or leak.
#include "compiler/Import/Safetensors.h"

#include "llvm/Support/Endian.h"

#include <cstddef>
#include <cstdlib>

using namespace mcc;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto tensors = parseSafetensors({data, size}, "fuzz");
  if (!tensors) {
    llvm::consumeError(tensors.takeError());
    return 0;
  }
  const uint8_t *next = data + 8 + llvm::support::endian::read64le(data);
  for (const TensorInfo &tensor : *tensors) {
    bool rightSize =
        !tensor.otherType.empty() || static_cast<uint64_t>(formatBytes(tensor.format, tensor.elems())) == tensor.bytes;
    if (tensor.data != next || !rightSize)
      std::abort();
    next += tensor.bytes;
  }
  if (next != data + size)
    std::abort();
  return 0;
}
