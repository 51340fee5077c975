// The CPU that runs a model: its memory and its threads.
#pragma once

#include "mcc/Model.h"
#include "runtime-lib/src/LaunchTimes.h"
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
  uint64_t size() const { return bytes; }
  /// Makes all bytes zero again; costs nothing for pages never written.
  void zero();

private:
  Memory(uint8_t *base, uint64_t bytes) : base(base), bytes(bytes) {}
  uint8_t *base;
  uint64_t bytes;
};

/// Runs steps, or some launches of one, on the processor's cores. Checks nothing: tokens and positions are the caller's.
class HostMachine {
public:
  /// `weights` is the segment "weights"; it and `model` must outlive the machine. threads <= 0: the default.
  static Result<std::unique_ptr<HostMachine>> create(const MccModel &model, const uint8_t *weights, int64_t threads);

  /// Runs the whole step; `length` as in MccStep.
  void run(std::span<const int32_t> tokens, int64_t position, int64_t length);
  /// Runs some launches of model.program, which must be there, by their numbers in ascending order.
  void runLaunches(std::span<const uint32_t> launches, std::span<const int32_t> tokens, int64_t position, int64_t length);
  /// From now on launches run one by one and add their times to `times`, which outlives the machine. Asks for
  /// model.program.
  void measure(LaunchTimes *times) { measured = times; }
  /// Zeroes the cache.
  void clear() { cache.zero(); }

  const uint8_t *weights() const { return packed; }
  Memory &arenaMemory() { return arena; }
  uint8_t *cacheData() const { return cache.data(); }
  int64_t threads() const { return pool->threads(); }

private:
  HostMachine(const MccModel &model, const uint8_t *weights, Memory arena, Memory cache, Memory scratch,
              std::unique_ptr<ThreadPool> pool);
  MccStep stepOf(std::span<const int32_t> tokens, int64_t position, int64_t length) const;
  void runList(std::span<const uint32_t> launches, MccStep step);

  const MccModel &model;
  const uint8_t *packed;
  Memory arena, cache, scratch;
  std::unique_ptr<ThreadPool> pool;
  LaunchTimes *measured = nullptr;
};

} // namespace mcc::runtime
