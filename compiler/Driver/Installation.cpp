// Finds mcc's own files. See Installation.h.
#include "compiler/Driver/Installation.h"

#include "compiler/Support/Error.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace mcc {

llvm::Expected<Installation> Installation::find() {
  llvm::SmallString<128> self;
  if (std::error_code error = llvm::sys::fs::real_path("/proc/self/exe", self))
    return diagnose("/proc/self/exe", "cannot find mcc's own folder: {0}", error.message());
  llvm::SmallString<128> folder = llvm::sys::path::parent_path(llvm::sys::path::parent_path(self));
  llvm::sys::path::append(folder, "lib", "mcc");
  auto file = [&](llvm::StringRef name) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    return path.str().str();
  };
  Installation result{file("mcc-kernels.bc"), file("libmccrt.a"), file("libmccrt-cuda.a")};
  if (!llvm::sys::fs::exists(result.gpuRuntime))
    result.gpuRuntime.clear();
  for (const std::string &path : {result.kernels, result.runtime})
    if (!llvm::sys::fs::exists(path))
      return diagnose(path, "is missing; mcc's installation is incomplete (it belongs in lib/mcc beside bin)");
  return result;
}

} // namespace mcc
