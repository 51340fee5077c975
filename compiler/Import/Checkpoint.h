// Where weights come from: named tensors in files that are mapped, never read whole, or synthesised from a seed.
#pragma once

#include "kernels/Format.h"

#include "llvm/Support/Error.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mcc {

struct RequiredTensor;

/// One tensor of a checkpoint.
struct TensorInfo {
  std::string name;
  Format format = Format::F32;
  std::vector<int64_t> shape; ///< row-major, PyTorch order: [rows, cols], contiguous dimension last
  uint64_t bytes = 0;
  std::string file;           ///< for messages
  const uint8_t *data = nullptr; ///< the mapped bytes, owned by the checkpoint; null where synthesised
};

/// A set of named tensors. Reading is thread-safe.
class Checkpoint {
public:
  virtual ~Checkpoint() = default;
  /// Returns every tensor, sorted by name.
  virtual const std::vector<TensorInfo> &tensors() const = 0;
  /// Returns the tensor called `name`, or null.
  const TensorInfo *find(llvm::StringRef name) const;
  /// Writes rows [row, row + count) of `tensor`, in its stored format, to `out` (count * row bytes).
  /// A tensor of one dimension is one row.
  virtual void readRows(const TensorInfo &tensor, int64_t row, int64_t count, uint8_t *out) const;
  /// What messages call this checkpoint: the path the user gave.
  virtual llvm::StringRef name() const = 0;
};

/// Opens `path`: a .safetensors file, a .safetensors.index.json, a .gguf file, or a directory holding one of
/// them (HF naming). Everything about the file is checked here (overlaps, sizes, types, missing shards).
llvm::Expected<std::unique_ptr<Checkpoint>> openCheckpoint(llvm::StringRef path);

/// Returns a checkpoint that holds exactly `required`, each element drawn deterministically from `seed`, the
/// tensor's name and its index (so any row can be made alone, in any order), in `format` for matrices and f32
/// for vectors. Scaled so that activations stay of order one (norm weights near 1).
std::unique_ptr<Checkpoint> randomCheckpoint(uint64_t seed, Format format, llvm::ArrayRef<RequiredTensor> required);

/// Checks that `checkpoint` has every required tensor with its shape, and nothing else than known leftovers
/// (rotary inv_freq buffers, masks; a stored head beside a tied one). One error naming file, tensor and both values.
llvm::Error checkTensors(const Checkpoint &checkpoint, llvm::ArrayRef<RequiredTensor> required, bool tiedHead);

} // namespace mcc
