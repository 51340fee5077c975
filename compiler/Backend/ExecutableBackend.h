// The back ends `native` and `cuda`: the produced executable, on the CPU and on the GPU.
#pragma once

#include "compiler/Backend/Backend.h"

namespace mcc {

/// Returns the back end; the storage is static.
const Backend &nativeBackend();
const Backend &cudaBackend();

} // namespace mcc
