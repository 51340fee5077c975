/* The weights file `model.weights`: a header page, then page-aligned segments.
 *
 * Little-endian. The header says how large the file is and carries its own checksum, so that a truncated or
 * foreign file is refused before anything else is read. Digests are XXH3-128 (xxHash, canonical big-endian form).
 * Segments written today: "weights" (packed tensors, kernel order), "tokenizer" (runtime-lib/tokenizer's
 * serialised form; absent for a model without one).
 */
#pragma once

#include <stdint.h>

#define MCC_BLOB_MAGIC "MCCBLOB1"
#define MCC_BLOB_ALIGNMENT 4096
#define MCC_BLOB_MAX_SEGMENTS 16

typedef struct MccBlobSegment {
  char name[24];      /* NUL-padded */
  uint64_t offset;    /* from the start of the file, a multiple of MCC_BLOB_ALIGNMENT */
  uint64_t bytes;     /* without padding */
  uint8_t digest[16]; /* of the bytes */
} MccBlobSegment;

typedef struct MccBlobHeader {
  char magic[8];        /* MCC_BLOB_MAGIC, no NUL */
  uint32_t abi;         /* MCC_ABI_VERSION */
  uint32_t segmentCount;
  uint64_t fileBytes;
  uint8_t id[16];       /* digest of all segments' digests in order: what MccModel::blobId must equal */
  MccBlobSegment segments[MCC_BLOB_MAX_SEGMENTS];
  uint64_t checksum;    /* XXH3-64 of the bytes of this struct before this field */
} MccBlobHeader;
