/* The step as a table: every launch of it, in order, with what it reads and writes. Part of the C ABI of an object that
 * was compiled for more than the CPU; the executable places launches on devices by it, and runs them one by one.
 *
 * All storage is static. Numbers are those of the exec program; layers that share code are spelled out.
 */
#pragma once

#include "kernels/Step.h"

#include <stdint.h>

struct MccCalibration; /* mcc/Calibration.h */

#ifdef __cplusplus
extern "C" {
#endif

/* The memory of a region. */
enum MccSpace { MCC_ARENA = 0, MCC_WEIGHTS = 1, MCC_CACHE = 2 };

/* A buffer, a packed weight or one cache. Regions of the arena whose lifetimes are disjoint may overlap. */
typedef struct MccRegion {
  uint32_t space;    /* MccSpace */
  uint32_t reserved; /* 0 */
  uint64_t offset;   /* from the space's base, a multiple of 64 */
  uint64_t bytes;
  uint64_t rowBytes; /* of one token where the region holds one row per token; else 0 */
} MccRegion;

#define MCC_NO_REGION 0xffffffffu

/* One pointer argument of a launch. */
typedef struct MccArgument {
  uint32_t region;  /* index into MccProgram::regions, or MCC_NO_REGION for an absent one */
  uint32_t written; /* 1 where the kernel writes it (it may read it too) */
  uint64_t offset;  /* bytes into the region */
} MccArgument;

/* The CPU's code of a launch: `buffers` are its pointers in the kernel table's order, null where absent. Every worker of
 * the step calls it; it ends without a barrier. */
typedef void (*MccLaunchFunction)(const MccStep *step, int64_t tokens, void *const *buffers);

typedef struct MccLaunch {
  const char *name;    /* the op's place in the model, "layers.0.attention.q + layers.0.attention.k" */
  uint32_t kernel;     /* index into kernels/KernelTable.def */
  int32_t format;      /* mcc::Format of its weight; -1 where the kernel has none */
  uint32_t device;     /* of the plan it was compiled with: 0 CPU, 1 GPU */
  uint32_t barrier;    /* 1: the CPU's workers meet before it */
  const MccArgument *buffers;
  const int64_t *ints;
  const float *floats;
  MccLaunchFunction decode;  /* for one token */
  MccLaunchFunction prefill; /* for any number */
} MccLaunch;

typedef struct MccProgram {
  uint32_t regionCount, launchCount;
  const MccRegion *regions;
  const MccLaunch *launches;
  const struct MccCalibration *calibration; /* kernels in the program's formats, for placing anew; null: none */
} MccProgram;

#ifdef __cplusplus
}
#endif
