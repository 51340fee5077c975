#include "compiler/Support/Execute.h"

#include "compiler/Support/Error.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

namespace mcc {

static std::string textOf(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

llvm::Expected<Finished> execute(llvm::ArrayRef<llvm::StringRef> command) {
  llvm::SmallString<128> paths[2];
  llvm::FileRemover removers[2];
  for (int i = 0; i < 2; ++i) {
    if (std::error_code error = llvm::sys::fs::createTemporaryFile("mcc", "txt", paths[i]))
      return diagnose("", "cannot make a temporary file for what '{0}' prints: {1}", command.front(), error.message());
    removers[i].setFile(paths[i]);
  }
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""), paths[0].str(), paths[1].str()};
  std::string problem;
  Finished finished;
  finished.status = llvm::sys::ExecuteAndWait(command.front(), command, std::nullopt, redirects, 0, 0, &problem);
  finished.out = textOf(paths[0]);
  finished.err = problem + textOf(paths[1]);
  return finished;
}

} // namespace mcc
