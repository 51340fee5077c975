// The header page is left blank at first and written last, when sizes and digests are known. Until then the file has
// no magic, so that a half-written one is never mistaken for weights, whatever its name.
#include "compiler/Artifact/BlobWriter.h"

#include "kernels/Step.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mcc {

static constexpr size_t bufferBytes = size_t(1) << 20;

/// The running digest of the current segment; the state needs 64-byte alignment.
struct BlobWriter::Hash {
  XXH3_state_t state;
};

BlobWriter::BlobWriter(std::string name)
    : path(std::move(name)), temporary(path + "." + std::to_string(getpid()) + ".tmp"),
      buffer(std::make_unique<uint8_t[]>(bufferBytes)), hash(std::make_unique<Hash>()) {
  std::memcpy(header.magic, MCC_BLOB_MAGIC, sizeof header.magic);
  header.abi = MCC_ABI_VERSION;
  descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    fail("create");
    temporary.clear();
    return;
  }
  const uint8_t blank[MCC_BLOB_ALIGNMENT] = {};
  write(blank, sizeof blank);
}

BlobWriter::~BlobWriter() {
  if (descriptor >= 0)
    close(descriptor);
  if (!temporary.empty())
    unlink(temporary.c_str());
}

bool BlobWriter::fail(const char *action) {
  if (message.empty())
    message = path + ": error: cannot " + action + ": " + std::strerror(errno);
  return false;
}

bool BlobWriter::flush() {
  for (size_t done = 0; done < buffered;) {
    const ssize_t count = ::write(descriptor, buffer.get() + done, buffered - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return fail("write");
    done += static_cast<size_t>(count);
  }
  buffered = 0;
  return true;
}

bool BlobWriter::write(const void *data, size_t bytes) {
  if (!message.empty())
    return false;
  const uint8_t *from = static_cast<const uint8_t *>(data);
  written += bytes;
  while (bytes > 0) {
    const size_t part = std::min(bytes, bufferBytes - buffered);
    std::memcpy(buffer.get() + buffered, from, part);
    buffered += part;
    from += part;
    bytes -= part;
    if (buffered == bufferBytes && !flush())
      return false;
  }
  return true;
}

bool BlobWriter::endSegment() {
  if (!inSegment)
    return message.empty();
  inSegment = false;
  MccBlobSegment &segment = header.segments[header.segmentCount++];
  segment.bytes = written - segment.offset;
  const BlobDigest digest = canonicalDigest(XXH3_128bits_digest(&hash->state));
  std::memcpy(segment.digest, digest.data(), digest.size());
  const uint8_t blank[MCC_BLOB_ALIGNMENT] = {};
  return write(blank, (MCC_BLOB_ALIGNMENT - written % MCC_BLOB_ALIGNMENT) % MCC_BLOB_ALIGNMENT);
}

bool BlobWriter::beginSegment(std::string_view name) {
  if (!endSegment())
    return false;
  MccBlobSegment &segment = header.segments[std::min<uint32_t>(header.segmentCount, MCC_BLOB_MAX_SEGMENTS - 1)];
  if (header.segmentCount == MCC_BLOB_MAX_SEGMENTS || name.empty() || name.size() > sizeof segment.name) {
    errno = EINVAL;
    return fail("begin a segment");
  }
  std::memcpy(segment.name, name.data(), name.size());
  segment.offset = written;
  XXH3_128bits_reset(&hash->state);
  inSegment = true;
  return true;
}

bool BlobWriter::append(const void *data, size_t bytes) {
  if (!write(data, bytes))
    return false;
  if (bytes > 0)
    XXH3_128bits_update(&hash->state, data, bytes);
  return true;
}

bool BlobWriter::align(size_t alignment) {
  const uint8_t blank[64] = {};
  for (size_t missing = (alignment - segmentBytes() % alignment) % alignment; missing > 0;) {
    const size_t part = std::min(missing, sizeof blank);
    if (!append(blank, part))
      return false;
    missing -= part;
  }
  return message.empty();
}

uint64_t BlobWriter::segmentBytes() const {
  return inSegment ? written - header.segments[header.segmentCount].offset : 0;
}

bool BlobWriter::finish() {
  if (!endSegment() || !flush())
    return false;
  header.fileBytes = written;
  const BlobDigest digest = blobIdOf(header);
  std::memcpy(header.id, digest.data(), digest.size());
  header.checksum = headerChecksumOf(header);
  const uint8_t *bytes = reinterpret_cast<const uint8_t *>(&header);
  for (size_t done = 0; done < sizeof header;) {
    const ssize_t count = pwrite(descriptor, bytes + done, sizeof header - done, static_cast<off_t>(done));
    if (count < 0 && errno != EINTR)
      return fail("write");
    done += count > 0 ? static_cast<size_t>(count) : 0;
  }
  return fsync(descriptor) == 0 || fail("write");
}

bool BlobWriter::commit() {
  if (!message.empty())
    return false;
  const int closed = close(descriptor);
  descriptor = -1;
  if (closed != 0)
    return fail("write");
  if (rename(temporary.c_str(), path.c_str()) != 0)
    return fail("rename");
  temporary.clear();
  return true;
}

BlobDigest BlobWriter::id() const {
  BlobDigest digest;
  std::memcpy(digest.data(), header.id, digest.size());
  return digest;
}

} // namespace mcc
