// Runs `cc` (or what the environment's CC names) for the final link. See Link.h.
#include "codegen/Object/Link.h"

#include "compiler/Support/Error.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

#include <cstdlib>

namespace mcc {

llvm::Error linkExecutable(llvm::StringRef object, llvm::ArrayRef<llvm::StringRef> archives, llvm::StringRef executable) {
  const char *fromEnvironment = std::getenv("CC");
  llvm::StringRef name = fromEnvironment && *fromEnvironment ? fromEnvironment : "cc";
  auto program = llvm::sys::findProgramByName(name);
  if (!program)
    return diagnose("", "no C compiler '{0}' on PATH for the final link; install one (apt install gcc) or set CC", name);

  llvm::SmallString<128> log;
  if (std::error_code error = llvm::sys::fs::createTemporaryFile("mcc-link", "log", log))
    return diagnose("", "cannot make a temporary file for the linker's messages: {0}", error.message());
  llvm::FileRemover removeLog(log);
  // The archive holds main(); only what main reaches is kept.
  llvm::SmallVector<llvm::StringRef> arguments{*program, "-o", executable, object};
  arguments.append(archives.begin(), archives.end());
  arguments.append({"-Wl,--gc-sections", "-Wl,-O1", "-static-libgcc", "-Wl,--as-needed", "-Wl,-z,noexecstack", "-Wl,--build-id=none", "-s", "-lm", "-lpthread", "-ldl", "-lrt"});
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""), llvm::StringRef(log), llvm::StringRef(log)};
  std::string problem;
  int status = llvm::sys::ExecuteAndWait(*program, arguments, std::nullopt, redirects, 0, 0, &problem);
  if (status == 0)
    return llvm::Error::success();
  auto text = llvm::MemoryBuffer::getFile(log);
  std::string output = text ? (*text)->getBuffer().rtrim().str() : "";
  return diagnose("", "'{0}' could not link the executable (exit {1}){2}{3}", *program, status, problem.empty() ? "" : ": " + problem,
                  output.empty() ? "" : "\n" + output);
}

} // namespace mcc
