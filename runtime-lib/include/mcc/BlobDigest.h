// The digests of the weights file: one definition for the writer (compiler/Artifact) and the reader (runtime-lib).
//
// XXH3 of xxHash, inlined, so that no library is linked. Digests are stored in xxHash's canonical (big-endian) form.
#pragma once

#include "mcc/Blob.h"

#include <array>
#include <cstddef>
#include <cstring>

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

namespace mcc {

using BlobDigest = std::array<uint8_t, 16>;

/// Returns the canonical form of an XXH3-128 value.
inline BlobDigest canonicalDigest(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  BlobDigest digest;
  std::memcpy(digest.data(), canonical.digest, digest.size());
  return digest;
}

/// Returns the digest of `bytes` bytes at `data`.
inline BlobDigest digestOf(const void *data, size_t bytes) { return canonicalDigest(XXH3_128bits(data, bytes)); }

/// Returns the id that belongs to the header's segments: the digest of their digests, in order.
/// `segmentCount` must be at most MCC_BLOB_MAX_SEGMENTS.
inline BlobDigest blobIdOf(const MccBlobHeader &header) {
  uint8_t digests[MCC_BLOB_MAX_SEGMENTS * 16];
  for (uint32_t i = 0; i < header.segmentCount; ++i)
    std::memcpy(digests + 16 * i, header.segments[i].digest, 16);
  return digestOf(digests, 16 * size_t(header.segmentCount));
}

/// Returns the checksum of every header byte before the field `checksum`.
inline uint64_t headerChecksumOf(const MccBlobHeader &header) {
  return XXH3_64bits(&header, offsetof(MccBlobHeader, checksum));
}

} // namespace mcc
