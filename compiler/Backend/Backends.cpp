#include "compiler/Backend/ExecutableBackend.h"

namespace mcc {

llvm::ArrayRef<const Backend *> backends() {
  static const Backend *const all[] = {&nativeBackend(), &cudaBackend()};
  return all;
}

} // namespace mcc
