// Maps a file with mmap(2), private and read-only. The descriptor is closed at once: the mapping keeps the file.
// Opening is non-blocking and the kind of the file is checked first, so that a FIFO or a device never hangs mcc.
#include "compiler/Support/MappedFile.h"

#include "compiler/Support/Error.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mcc {

/// Says why the open regular file `descriptor` cannot be mapped, or success.
static llvm::Error checkMappable(const std::string &path, int descriptor, struct stat &status) {
  if (::fstat(descriptor, &status) != 0)
    return diagnose(path, "cannot be examined: {0}", std::strerror(errno));
  if (S_ISDIR(status.st_mode))
    return diagnose(path, "is a directory; a file is needed here");
  if (!S_ISREG(status.st_mode))
    return diagnose(path, "is not a regular file; it cannot be mapped");
  if (status.st_size == 0)
    return diagnose(path, "is empty (0 bytes)");
  return llvm::Error::success();
}

llvm::Expected<std::shared_ptr<const MappedFile>> MappedFile::open(llvm::StringRef pathText) {
  std::string path = pathText.str();
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0 && errno == ENOENT)
    return diagnose(path, "no such file");
  if (descriptor < 0)
    return diagnose(path, "cannot be opened: {0}", std::strerror(errno));
  struct stat status = {};
  if (llvm::Error error = checkMappable(path, descriptor, status)) {
    ::close(descriptor);
    return error;
  }
  uint64_t size = static_cast<uint64_t>(status.st_size);
  void *address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  int mapErrno = errno;
  ::close(descriptor);
  if (address == MAP_FAILED)
    return diagnose(path, "its {0} bytes cannot be mapped: {1}", size, std::strerror(mapErrno));
  return std::shared_ptr<const MappedFile>(
      new MappedFile(std::move(path), static_cast<const uint8_t *>(address), size));
}

MappedFile::~MappedFile() { ::munmap(const_cast<uint8_t *>(bytes), byteCount); }

} // namespace mcc
