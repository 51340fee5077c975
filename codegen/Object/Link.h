// The final link: object + libmccrt.a -> executable, by the system's `cc`.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace mcc {

/// Links `object` with `runtime` (libmccrt.a) into `executable`, which then needs libc and libm only.
llvm::Error linkExecutable(llvm::StringRef object, llvm::StringRef runtime, llvm::StringRef executable);

} // namespace mcc
