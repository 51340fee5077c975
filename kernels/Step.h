/* What one worker thread knows while it runs a step: the C ABI between generated code, kernels and runtime.
 *
 * A step takes `count` tokens at cache positions [position, position + count) through the whole model.
 * It is SPMD: every worker runs the same step function with its own MccStep; each kernel does its
 * thread's share of the rows and returns; generated code calls mccrt_barrier between dependent kernels.
 * Every pointer is borrowed from the runtime and lives for the whole step. C, so that LLVM code can lay it out;
 * codegen/CPU mirrors the field order (a static_assert there and MCC_ABI_VERSION guard it).
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever MccStep, MccModel or the blob layout changes. */
#define MCC_ABI_VERSION 2u

struct MccBarrier; /* opaque, owned by the runtime's thread pool */

typedef struct MccStep {
  const uint8_t *weights; /* the blob's `weights` segment, page-aligned, read-only */
  uint8_t *arena;         /* activations, shared by all threads; offsets are planned at compile time */
  uint8_t *cache;         /* KV caches and other state, shared; zeroed when a sequence starts */
  uint8_t *scratch;       /* private to this thread, MccModel::scratchBytes bytes, 64-byte aligned */
  const int32_t *tokens;  /* [count] token ids, each within the vocabulary */
  int64_t count;          /* tokens in this step, 1 <= count <= MccModel::chunk */
  int64_t position;       /* cache position of tokens[0] */
  int64_t length;         /* tokens of the sequence once the prompt that this step is part of is through; at least position + count */
  int64_t thread;         /* this worker, 0 <= thread < threads */
  int64_t threads;        /* workers in the step */
  struct MccBarrier *barrier;
  const void *context;    /* of the runtime's own step functions; generated code and kernels leave it alone */
} MccStep;

/* Waits until every worker of the step has called it; memory written before is visible after. */
void mccrt_barrier(const MccStep *step);

#ifdef __cplusplus
}
#endif
