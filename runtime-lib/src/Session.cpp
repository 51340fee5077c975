// Steps over a sequence. A prompt goes through the step in chunks of at most MccModel::chunk tokens; only the last
// row of a step has logits, so only the last chunk's are looked at.
//
// Invariant: position + tokens <= context for every step, and every token is within the vocabulary; generated code
// and kernels rely on it and check nothing.
#include "runtime-lib/src/Session.h"

#include "runtime-lib/src/Text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

namespace mcc::runtime {

static constexpr uint64_t pageBytes = 4096;
static constexpr uint64_t hugePageBytes = uint64_t(2) << 20;

Result<Memory> Memory::create(uint64_t bytes, const char *purpose) {
  if (bytes == 0)
    bytes = 1; // A pointer that compares unequal to null is simpler for everyone.
  void *base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED)
    return Failure{concat("error: the ", purpose, " needs ", bytes, " bytes: ", std::strerror(errno),
                          "; a smaller --ctx when compiling makes the cache smaller")};
  if (bytes >= hugePageBytes)
    madvise(base, bytes, MADV_HUGEPAGE);
  return Memory(static_cast<uint8_t *>(base), bytes);
}

Memory::~Memory() {
  if (base != nullptr)
    munmap(base, bytes);
}

void Memory::zero() {
  // Private anonymous pages come back zeroed; locked ones are refused and cleared by hand.
  if (madvise(base, bytes, MADV_DONTNEED) != 0)
    std::memset(base, 0, bytes);
}

/// Returns the distance between two threads' scratch: whole pages, so that no line is shared.
static uint64_t scratchStride(const MccModel &model) {
  return (model.scratchBytes + pageBytes - 1) / pageBytes * pageBytes;
}

Result<std::unique_ptr<Session>> Session::create(const MccModel &model, const uint8_t *weights, int64_t threads) {
  const Processors processors = usableProcessors();
  if (threads <= 0)
    threads = std::min(processors.physical, maxThreads);
  Result<Memory> arena = Memory::create(model.arenaBytes, "arena of activations");
  if (!arena.ok())
    return arena.failure();
  Result<Memory> cache = Memory::create(model.cacheBytes, "cache");
  if (!cache.ok())
    return cache.failure();
  if (model.scratchBytes > (uint64_t(1) << 40) / uint64_t(threads))
    return Failure{concat("error: ", threads, " threads need ", model.scratchBytes, " bytes of scratch each")};
  Result<Memory> scratch = Memory::create(scratchStride(model) * uint64_t(threads), "threads' scratch");
  if (!scratch.ok())
    return scratch.failure();
  Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(model.step, threads, processors);
  if (!pool.ok())
    return Failure{"error: " + pool.message()};
  return std::unique_ptr<Session>(new Session(model, weights, std::move(arena.value()), std::move(cache.value()),
                                              std::move(scratch.value()), std::move(pool.value())));
}

Session::Session(const MccModel &model, const uint8_t *weights, Memory arena, Memory cache, Memory scratch,
                 std::unique_ptr<ThreadPool> pool)
    : description(model), weights(weights), arena(std::move(arena)), cache(std::move(cache)),
      scratch(std::move(scratch)), pool(std::move(pool)), chunk(model.chunk) {}

void Session::reset() {
  if (length != 0)
    cache.zero();
  length = 0;
}

void Session::limitChunk(int64_t most) { chunk = std::clamp<int64_t>(most, 1, description.chunk); }

Status Session::checkTokens(std::span<const int32_t> tokens) const {
  if (tokens.empty())
    return Failure{"error: the prompt has no tokens; at least one is needed"};
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= description.vocabulary)
      return Failure{concat("error: token ", i, " of the prompt is ", tokens[i], "; the vocabulary has ",
                            description.vocabulary, " ids, 0 to ", description.vocabulary - 1)};
  const int64_t count = static_cast<int64_t>(tokens.size());
  if (count > description.context - length)
    return Failure{length == 0 ? concat("error: the prompt has ", count, " tokens; the context has ",
                                        description.context, "; compile with a larger --ctx")
                               : concat("error: ", count, " tokens after ", length, " do not fit the context of ",
                                        description.context)};
  return {};
}

Status Session::prefill(std::span<const int32_t> tokens) {
  if (Status status = checkTokens(tokens); !status.ok())
    return status;
  MccStep step{};
  step.weights = weights;
  step.arena = arena.data();
  step.cache = cache.data();
  step.scratch = scratch.data();
  while (!tokens.empty()) {
    const std::span<const int32_t> part = tokens.first(std::min<size_t>(tokens.size(), chunk));
    step.tokens = part.data();
    step.count = static_cast<int64_t>(part.size());
    step.position = length;
    pool->run(step, scratchStride(description));
    length += step.count;
    tokens = tokens.subspan(part.size());
  }
  return checkChoice();
}

Status Session::checkChoice() const {
  const int32_t chosen = token();
  if (chosen >= 0 && chosen < description.vocabulary)
    return {};
  if (chosen < 0)
    return Failure{concat("error: logits are NaN at position ", length - 1,
                          "; the weights or the activations overflow, --verify tells whether the file is intact")};
  return Failure{concat("error: the step at position ", length - 1, " chose token ", chosen, "; the vocabulary has ",
                        description.vocabulary, " ids")};
}

std::span<const float> Session::logits() const {
  return std::span(reinterpret_cast<const float *>(arena.data() + description.logitsOffset),
                   static_cast<size_t>(description.vocabulary));
}

int32_t Session::token() const {
  int32_t chosen;
  std::memcpy(&chosen, arena.data() + description.tokenOffset, sizeof chosen);
  return chosen;
}

} // namespace mcc::runtime
