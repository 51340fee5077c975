// Where mcc's own files are: found from the running executable, so that an unpacked bundle works anywhere.
#pragma once

#include "llvm/Support/Error.h"

#include <string>

namespace mcc {

/// Paths of what compilation needs besides mcc itself.
struct Installation {
  std::string kernels; ///< mcc-kernels.bc
  std::string runtime; ///< libmccrt.a
  std::string gpuRuntime; ///< libmccrt-cuda.a; empty where mcc was built without

  /// Looks in ../lib/mcc beside the executable's folder.
  static llvm::Expected<Installation> find();
};

} // namespace mcc
