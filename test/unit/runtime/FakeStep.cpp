// The step of the fake model, SPMD like generated code: tokens into the cache, a barrier, logits, a barrier, argmax.
#include "test/unit/runtime/FakeModel.h"

#include <cmath>
#include <cstring>

namespace mcc::test {

static float logit(const int32_t *cache, int64_t count, const uint8_t *weights, int64_t v) {
  int64_t sum = 0;
  bool poisoned = false;
  for (int64_t p = 0; p < count; ++p) {
    sum += (7 * cache[p] + 3 * p + 5 * v + weights[v] + 11) % 31;
    poisoned |= cache[p] == fakePoison;
  }
  return poisoned ? NAN : static_cast<float>(sum);
}

void fakeStep(const MccStep *step) {
  int32_t *cache = reinterpret_cast<int32_t *>(step->cache);
  float *logits = reinterpret_cast<float *>(step->arena + fakeLogitsOffset);
  // Private scratch: a thread that shares it would overwrite another's number.
  std::memcpy(step->scratch, &step->thread, sizeof step->thread);
  for (int64_t t = step->thread; t < step->count; t += step->threads)
    cache[step->position + t] = step->tokens[t];
  mccrt_barrier(step);
  int64_t self;
  std::memcpy(&self, step->scratch, sizeof self);
  for (int64_t v = self; v < fakeVocabulary; v += step->threads)
    logits[v] = logit(cache, step->position + step->count, step->weights, v);
  mccrt_barrier(step);
  if (step->thread != 0)
    return;
  int32_t best = 0;
  for (int32_t v = 0; v < fakeVocabulary; ++v) {
    if (std::isnan(logits[v])) {
      best = -1;
      break;
    }
    if (logits[v] > logits[best])
      best = v;
  }
  std::memcpy(step->arena + fakeTokenOffset, &best, sizeof best);
}

} // namespace mcc::test
