// A read-only memory-mapped file: checkpoints are read through the page cache, never copied whole.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <memory>
#include <string>

namespace mcc {

/// A mapped regular file of at least one byte. The bytes stay valid as long as the object lives.
class MappedFile {
public:
  /// Maps `path`. Refuses what is missing, unreadable, no regular file, or empty, each by name.
  static llvm::Expected<std::shared_ptr<const MappedFile>> open(llvm::StringRef path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  const std::string &path() const { return filePath; }
  uint64_t size() const { return byteCount; }
  const uint8_t *data() const { return bytes; }
  llvm::ArrayRef<uint8_t> contents() const { return {bytes, static_cast<size_t>(byteCount)}; }

private:
  MappedFile(std::string path, const uint8_t *bytes, uint64_t size)
      : filePath(std::move(path)), bytes(bytes), byteCount(size) {}
  std::string filePath;
  const uint8_t *bytes;
  uint64_t byteCount;
};

} // namespace mcc
