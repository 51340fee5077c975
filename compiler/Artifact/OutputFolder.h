// The output folder: files appear under their final names only when all of them are complete.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace mcc {

/// Hands out temporary paths in `folder` and renames them all at commit(). Destroyed before, it removes them.
class OutputFolder {
public:
  /// Makes `folder` where it does not exist.
  static llvm::Expected<OutputFolder> open(llvm::StringRef folder);
  OutputFolder(OutputFolder &&) = default;
  ~OutputFolder();

  /// Returns the final path of `name`.
  std::string path(llvm::StringRef name) const;
  /// Returns a temporary path for `name`, to be renamed at commit.
  std::string temporary(llvm::StringRef name);
  /// Writes `text` to a temporary file for `name`.
  llvm::Error write(llvm::StringRef name, llvm::StringRef text);
  /// As write, but the file is for the compilation only and goes with this object. Returns its path.
  llvm::Expected<std::string> writeScratch(llvm::StringRef name, llvm::StringRef text);
  /// Gives every file its final name.
  llvm::Error commit();

private:
  explicit OutputFolder(std::string folder) : folder(std::move(folder)) {}
  std::string folder;
  std::string temporaryPath(llvm::StringRef name) const;
  std::vector<std::pair<std::string, std::string>> pending; // temporary, final
  std::vector<std::string> scratch;
};

} // namespace mcc
