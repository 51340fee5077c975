// Running another program and reading what it prints.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace mcc {

/// How a program ended and what it printed.
struct Finished {
  int status = 0; ///< its exit status; negative where it could not run or was killed
  std::string out, err;
};

/// Runs `command`, whose first word is the program's path, to its end with nothing on standard input. Fails where there
/// is no room for what it prints.
llvm::Expected<Finished> execute(llvm::ArrayRef<llvm::StringRef> command);

} // namespace mcc
