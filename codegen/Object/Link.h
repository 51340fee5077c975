// The final link: object + runtime archives -> executable, by the system's `cc`.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace mcc {

/// Links `object` with `archives` (libmccrt.a; before it libmccrt-cuda.a where the object refers to it) into `executable`,
/// which then needs libc and libm only.
llvm::Error linkExecutable(llvm::StringRef object, llvm::ArrayRef<llvm::StringRef> archives, llvm::StringRef executable);

} // namespace mcc
