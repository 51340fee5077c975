// Writing the weights file (mcc/Blob.h), streamed: no segment is ever in memory as a whole.
//
// Plain C++, no LLVM: the runtime's tests write their files with it too.
#pragma once

#include "mcc/Blob.h"
#include "mcc/BlobDigest.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace mcc {

/// Writes segments one after the other into a temporary file beside `path`; the file gets its name by commit().
/// The first failure sticks: later calls do nothing and return false, and error() says what happened.
/// Destroyed before commit(), it removes the temporary file.
///
///   BlobWriter writer("out/model.weights");
///   writer.beginSegment("weights");
///   writer.append(panel.data(), panel.size());        // as often as needed
///   writer.finish() && writer.commit();
class BlobWriter {
public:
  explicit BlobWriter(std::string path);
  ~BlobWriter();
  BlobWriter(const BlobWriter &) = delete;
  BlobWriter &operator=(const BlobWriter &) = delete;

  /// Ends the current segment, if any, and begins one named `name`, at most 24 bytes, on the next page.
  bool beginSegment(std::string_view name);

  /// Appends to the current segment.
  bool append(const void *data, size_t bytes);

  /// Appends zeros until the segment's size is a multiple of `alignment`.
  bool align(size_t alignment);

  /// Returns the size of the current segment so far: the offset of what is appended next.
  uint64_t segmentBytes() const;

  /// Writes the header and waits until the disk has everything. id() and fileBytes() are valid afterwards.
  bool finish();

  /// Gives the finished file its name, replacing one of that name.
  bool commit();

  /// Returns the digest of the contents, which MccModel::blobId must equal.
  BlobDigest id() const;
  uint64_t fileBytes() const { return header.fileBytes; }

  /// Returns "FILE: error: cannot ...: reason"; empty while all is well.
  const std::string &error() const { return message; }

private:
  bool fail(const char *action);
  bool flush();
  bool write(const void *data, size_t bytes);
  bool endSegment();

  struct Hash;
  std::string path, temporary, message;
  int descriptor = -1;
  std::unique_ptr<uint8_t[]> buffer;
  size_t buffered = 0;
  uint64_t written = 0; ///< bytes of the file so far, with those in `buffer`
  bool inSegment = false;
  std::unique_ptr<Hash> hash;
  MccBlobHeader header{};
};

} // namespace mcc
