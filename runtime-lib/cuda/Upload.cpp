// The upload. A mapped file's pages are not page-locked, and copies from pageable memory reach an eighth of the link; so
// each worker copies into one of two page-locked buffers of its own and lets the device fetch that while it fills the other.
// Reading mapped pages is what takes longest (a fault each 4 KiB), hence several workers.
#include "runtime-lib/cuda/Upload.h"

#include "runtime-lib/cuda/Devices.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <sys/mman.h>
#include <system_error>
#include <thread>

namespace mcc::runtime {
namespace {

constexpr uint64_t stageBytes = uint64_t(4) << 20;
constexpr unsigned mostWorkers = 12;

/// Cuts pieces so that each fits a stage.
std::vector<UploadPiece> cut(const std::vector<UploadPiece> &pieces) {
  std::vector<UploadPiece> result;
  for (UploadPiece piece : pieces)
    while (piece.bytes > 0) {
      const uint64_t bytes = std::min(piece.bytes, stageBytes);
      result.push_back({piece.from, piece.to, bytes});
      piece.from += bytes;
      piece.to += bytes;
      piece.bytes -= bytes;
    }
  return result;
}

/// What the workers share.
struct Work {
  std::vector<UploadPiece> pieces;
  std::atomic<size_t> next{0};
  std::mutex lock; ///< of what follows
  std::string error;
  uint64_t done = 0, all = 0;
  const std::function<void(uint64_t, uint64_t)> *progress = nullptr;

  void fail(const std::string &message) {
    const std::lock_guard<std::mutex> guard(lock);
    if (error.empty())
      error = message;
    next = pieces.size();
  }
  void add(uint64_t bytes) {
    const std::lock_guard<std::mutex> guard(lock);
    done += bytes;
    if (*progress)
      (*progress)(done, all);
  }
};

/// Makes the kernel map a stretch's pages in one go instead of one fault each.
void populate(const UploadPiece &piece) {
#ifdef MADV_POPULATE_READ
  constexpr uintptr_t page = 4096;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(piece.from) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(piece.from) + piece.bytes;
  madvise(reinterpret_cast<void *>(begin), (end - begin + page - 1) / page * page, MADV_POPULATE_READ);
#else
  (void)piece;
#endif
}

Status copyPieces(Work &work) {
  Result<Stream> stream = Stream::create();
  if (!stream.ok())
    return Failure{stream.message()};
  Result<PinnedMemory> stages = PinnedMemory::create(2 * stageBytes);
  if (!stages.ok())
    return Failure{stages.message()};
  cudaEvent_t free[2];
  for (cudaEvent_t &event : free)
    RETURN_IF_FAILED(call(CUDA_NAME(cudaEventCreateWithFlags), &event, cudaEventDisableTiming));
  Status status;
  for (size_t turn = 0, piece; status.ok() && (piece = work.next++) < work.pieces.size(); ++turn) {
    const UploadPiece &part = work.pieces[piece];
    uint8_t *stage = stages.value().data() + turn % 2 * stageBytes;
    status = call(CUDA_NAME(cudaEventSynchronize), free[turn % 2]);
    if (!status.ok())
      break;
    populate(part);
    std::memcpy(stage, part.from, part.bytes);
    status = call("cudaMemcpyAsync", [&] { return cudaMemcpyAsync(part.to, stage, part.bytes, cudaMemcpyHostToDevice, stream.value().get()); });
    if (status.ok())
      status = call(CUDA_NAME(cudaEventRecord), free[turn % 2], stream.value().get());
    work.add(part.bytes);
  }
  const Status waited = stream.value().wait();
  for (cudaEvent_t event : free)
    cudaEventDestroy(event);
  return status.ok() ? waited : status;
}

} // namespace

Status upload(const std::vector<UploadPiece> &pieces, const std::function<void(uint64_t, uint64_t)> &progress) {
  Work work;
  work.pieces = cut(pieces);
  work.progress = &progress;
  for (const UploadPiece &piece : pieces)
    work.all += piece.bytes;
  const size_t workers = std::min<size_t>({std::max(1u, std::thread::hardware_concurrency()), mostWorkers, work.pieces.size()});
  const auto run = [&work] {
    if (Status status = copyPieces(work); !status.ok())
      work.fail(status.message());
  };
  std::vector<std::thread> threads;
  try {
    for (size_t i = 1; i < workers; ++i)
      threads.emplace_back(run);
  } catch (const std::system_error &) {
    // The system gives no more threads: those that there are do the work.
  }
  run();
  for (std::thread &thread : threads)
    thread.join();
  return work.error.empty() ? Status() : Status(Failure{work.error});
}

} // namespace mcc::runtime
