#include "compiler/Support/ScratchFolder.h"

#include "compiler/Support/Error.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace mcc {

llvm::Expected<ScratchFolder> ScratchFolder::create(llvm::StringRef purpose) {
  ScratchFolder folder;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory("mcc", folder.path))
    return diagnose("", "cannot make a temporary folder for {0}: {1}", purpose, error.message());
  return folder;
}

ScratchFolder::~ScratchFolder() {
  if (!path.empty())
    llvm::sys::fs::remove_directories(path);
}

std::string ScratchFolder::file(llvm::StringRef name) const {
  llvm::SmallString<128> result(path);
  llvm::sys::path::append(result, name);
  return result.str().str();
}

} // namespace mcc
