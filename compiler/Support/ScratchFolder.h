// A temporary folder, removed with what is in it.
#pragma once

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Error.h"

#include <string>
#include <utility>

namespace mcc {

class ScratchFolder {
public:
  /// Makes one; `purpose` is for the message where that fails ("the calibration").
  static llvm::Expected<ScratchFolder> create(llvm::StringRef purpose);
  ScratchFolder(ScratchFolder &&other) : path(std::exchange(other.path, {})) {}
  ~ScratchFolder();
  /// Returns the path of the file `name` in it.
  std::string file(llvm::StringRef name) const;

private:
  ScratchFolder() = default;
  llvm::SmallString<128> path;
};

} // namespace mcc
