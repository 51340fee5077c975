// One sequence being generated: the state of a model between steps.
#pragma once

#include "mcc/Model.h"
#include "runtime-lib/src/Processors.h"
#include "runtime-lib/src/Result.h"
#include "runtime-lib/src/ThreadPool.h"

#include <memory>
#include <span>

namespace mcc::runtime {

/// Zeroed memory from the system, page-aligned, with huge-page advice; released when destroyed.
class Memory {
public:
  /// Gets `bytes` (0 is allowed). The message gives `purpose` and the size.
  static Result<Memory> create(uint64_t bytes, const char *purpose);
  Memory(Memory &&other) noexcept : base(other.base), bytes(other.bytes) { other.base = nullptr; }
  Memory &operator=(Memory &&) = delete;
  ~Memory();
  uint8_t *data() const { return base; }
  /// Makes all bytes zero again; costs nothing for pages never written.
  void zero();

private:
  Memory(uint8_t *base, uint64_t bytes) : base(base), bytes(bytes) {}
  uint8_t *base;
  uint64_t bytes;
};

/// Runs a model's steps over its arena, cache and threads. Tokens, position and logits are those of one sequence;
/// reset() starts the next. Not thread-safe. Every failure leaves the session usable after reset().
class Session {
public:
  /// `weights` is the segment "weights" and must outlive the session, like `model`. threads <= 0: the default.
  static Result<std::unique_ptr<Session>> create(const MccModel &model, const uint8_t *weights, int64_t threads);

  /// Forgets the sequence: position 0, zeroed cache.
  void reset();

  /// Limits the tokens per step of prefill to 1 <= `most`; the model's chunk is the ceiling. 1 is token by token.
  void limitChunk(int64_t most);

  /// Appends a non-empty prompt. Refuses ids outside the vocabulary and prompts that do not fit the context, before
  /// running anything; fails where the last row's logits are NaN.
  Status prefill(std::span<const int32_t> tokens);

  /// Appends one token, as prefill does.
  Status decode(int32_t token) { return prefill(std::span(&token, 1)); }

  /// Returns the logits after the last token, f32 [vocabulary]; valid until the next step.
  std::span<const float> logits() const;
  /// Returns the greedy choice after the last token.
  int32_t token() const;
  /// Returns how many tokens the cache holds.
  int64_t position() const { return length; }

  const MccModel &model() const { return description; }
  int64_t threads() const { return pool->threads(); }

private:
  Session(const MccModel &model, const uint8_t *weights, Memory arena, Memory cache, Memory scratch,
          std::unique_ptr<ThreadPool> pool);
  Status checkTokens(std::span<const int32_t> tokens) const;
  Status checkChoice() const;

  const MccModel &description;
  const uint8_t *weights;
  Memory arena, cache, scratch;
  std::unique_ptr<ThreadPool> pool;
  int64_t chunk;
  int64_t length = 0;
};

} // namespace mcc::runtime
