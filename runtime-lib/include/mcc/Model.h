/* What a compiled model tells the runtime that it is linked with: the C ABI of the generated object.
 *
 * The object defines `mcc_model`; libmccrt.a's main() and its embedding interface read it. All text is
 * UTF-8 and NUL-terminated, all storage is static.
 */
#pragma once

#include "kernels/Step.h"
#include "mcc/Program.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct MccGpuRuntime;

typedef struct MccModel {
  uint32_t abi;               /* MCC_ABI_VERSION at compile time */
  uint32_t reserved;          /* 0 */
  const char *info;           /* one JSON object for --info: name, family, parameters, formats, target CPU, versions, digests */
  const char *cpuFeatures;    /* space-separated feature names as __builtin_cpu_supports takes them, all of which the step needs */
  uint8_t blobId[16];         /* must equal MccBlobHeader::id of the weights file */
  uint64_t blobBytes;         /* size of the weights file */
  uint64_t arenaBytes;        /* activations for `chunk` tokens */
  uint64_t scratchBytes;      /* private scratch of each thread */
  uint64_t cacheBytes;        /* state of one sequence */
  int64_t context;            /* cache positions of one sequence (--ctx) */
  int64_t chunk;              /* most tokens in one step */
  int64_t vocabulary;         /* logits per token */
  uint64_t logitsOffset;      /* arena offset of the last token's logits, f32 [vocabulary] */
  uint64_t tokenOffset;       /* arena offset of the greedy token of the last row, int32; -1 where a logit is NaN */
  int32_t bosToken;           /* -1: none */
  int32_t eosCount;
  const int32_t *eosTokens;   /* [eosCount] ids that end generation */
  void (*step)(const MccStep *step); /* runs one step; every worker calls it */
  const MccProgram *program;  /* the step as a table; null in an object for the CPU alone */
  const struct MccGpuRuntime *gpu; /* what runs launches on a GPU (runtime-lib/src/Gpu.h); null without */
} MccModel;

extern const MccModel mcc_model;

#ifdef __cplusplus
}
#endif
