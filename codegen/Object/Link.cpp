// Runs `cc` (or what the environment's CC names) for the final link. See Link.h.
#include "codegen/Object/Link.h"

#include "compiler/Support/Error.h"
#include "compiler/Support/Execute.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Program.h"

#include <cstdlib>

namespace mcc {

llvm::Error linkExecutable(llvm::StringRef object, llvm::ArrayRef<llvm::StringRef> archives,
                           llvm::StringRef executable) {
  const char *fromEnvironment = std::getenv("CC");
  llvm::StringRef name = fromEnvironment && *fromEnvironment ? fromEnvironment : "cc";
  auto program = llvm::sys::findProgramByName(name);
  if (!program)
    return diagnose("", "no C compiler '{0}' on PATH for the final link; install one (apt install gcc) or set CC",
                    name);

  // The archive holds main(); only what main reaches is kept.
  llvm::SmallVector<llvm::StringRef> arguments{*program, "-o", executable, object};
  arguments.append(archives.begin(), archives.end());
  arguments.append({"-Wl,--gc-sections", "-Wl,-O1", "-static-libgcc", "-Wl,--as-needed", "-Wl,-z,noexecstack",
                    "-Wl,--build-id=none", "-s", "-lm", "-lpthread", "-ldl", "-lrt"});
  llvm::Expected<Finished> finished = execute(arguments);
  if (!finished)
    return finished.takeError();
  if (finished->status == 0)
    return llvm::Error::success();
  std::string output = llvm::StringRef(finished->out + finished->err).rtrim().str();
  return diagnose("", "'{0}' could not link the executable (exit {1}){2}", *program, finished->status,
                  output.empty() ? "" : "\n" + output);
}

} // namespace mcc
