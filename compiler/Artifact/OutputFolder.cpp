// The output folder. See OutputFolder.h.
#include "compiler/Artifact/OutputFolder.h"

#include "compiler/Support/Error.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

namespace mcc {

llvm::Expected<OutputFolder> OutputFolder::open(llvm::StringRef folder) {
  if (llvm::sys::fs::exists(folder) && !llvm::sys::fs::is_directory(folder))
    return diagnose(folder.str(), "is a file, not a directory; name a folder with -o");
  // What others may do with it is the umask's to say.
  if (std::error_code error = llvm::sys::fs::create_directories(folder, /*IgnoreExisting=*/true, llvm::sys::fs::perms::all_all))
    return diagnose(folder.str(), "cannot make the output folder: {0}", error.message());
  return OutputFolder(folder.str());
}

OutputFolder::~OutputFolder() {
  for (auto &[temporary, final] : pending)
    llvm::sys::fs::remove(temporary);
  for (const std::string &file : scratch)
    llvm::sys::fs::remove(file);
}

std::string OutputFolder::path(llvm::StringRef name) const {
  llvm::SmallString<128> result(folder);
  llvm::sys::path::append(result, name);
  return result.str().str();
}

std::string OutputFolder::temporaryPath(llvm::StringRef name) const {
  return path(("." + name + ".tmp-" + llvm::Twine(llvm::sys::Process::getProcessId())).str());
}

std::string OutputFolder::temporary(llvm::StringRef name) {
  pending.push_back({temporaryPath(name), path(name)});
  return pending.back().first;
}

// Writes `text` to `file`; messages name `shown`.
static llvm::Error writeFile(const std::string &file, const std::string &shown, llvm::StringRef text) {
  std::error_code error;
  llvm::raw_fd_ostream stream(file, error);
  if (!error) {
    stream << text;
    stream.close();
    error = stream.error();
    stream.clear_error();
  }
  if (error)
    return diagnose(shown, "cannot write: {0}", error.message());
  return llvm::Error::success();
}

llvm::Error OutputFolder::write(llvm::StringRef name, llvm::StringRef text) { return writeFile(temporary(name), path(name), text); }

llvm::Expected<std::string> OutputFolder::writeScratch(llvm::StringRef name, llvm::StringRef text) {
  scratch.push_back(temporaryPath(name));
  if (llvm::Error error = writeFile(scratch.back(), path(name), text))
    return std::move(error);
  return scratch.back();
}

llvm::Error OutputFolder::commit() {
  for (auto &[temporary, final] : pending)
    if (std::error_code error = llvm::sys::fs::rename(temporary, final))
      return diagnose(final, "cannot give the finished file its name: {0}", error.message());
  pending.clear();
  return llvm::Error::success();
}

} // namespace mcc
