// Where weights come from: named tensors in files that are mapped, never read whole, or synthesised from a seed.
#pragma once

#include "kernels/Format.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mcc {

struct RequiredTensor;
class GgufFile;

/// One tensor of a checkpoint.
struct TensorInfo {
  std::string name;
  Format format = Format::F32;
  /// The file's name of a type that mcc lists but does not compute with ("I64", "q8_1"); else empty. Such a
  /// tensor has no `format`, and `checkTensors` refuses it as a weight.
  std::string otherType;
  /// The file's name of a type that has no kernel and is read as f32, exactly ("q2_k"); else empty. `format` is
  /// F32 then, `data` null, and `bytes` what the file holds: use readRows().
  std::string storedAs;
  std::vector<int64_t> shape;    ///< row-major, PyTorch order: [rows, cols], contiguous dimension last
  uint64_t bytes = 0;            ///< as stored
  std::string file;              ///< for messages
  const uint8_t *data = nullptr; ///< the mapped bytes, owned by the checkpoint; null where synthesised or converted
  bool absent = false;           ///< the file is a header without tensor data

  /// The stored type's name as printed: "bf16", "q4_0", "q2_k", "I64".
  llvm::StringRef typeName() const;
  /// Product of the shape (1 for a scalar).
  int64_t elems() const;
  /// Elements of the last dimension (1 for a scalar).
  int64_t cols() const;
  /// Product of all dimensions but the last: 1 for a vector.
  int64_t rows() const;
};

/// Returns `[4096, 11008]`.
std::string shapeText(llvm::ArrayRef<int64_t> shape);

/// A set of named tensors. Reading is thread-safe.
class Checkpoint {
public:
  virtual ~Checkpoint() = default;
  /// Returns every tensor, sorted by name.
  virtual const std::vector<TensorInfo> &tensors() const = 0;
  /// Returns the tensor called `name`, or null.
  const TensorInfo *find(llvm::StringRef name) const;
  /// Writes rows [row, row + count) of `tensor`, in its `format`, to `out` (count * row bytes). A row is the last
  /// dimension; a tensor of one dimension is one row. The tensor must have a format and data.
  virtual void readRows(const TensorInfo &tensor, int64_t row, int64_t count, uint8_t *out) const;
  /// What messages call this checkpoint: the path the user gave.
  virtual llvm::StringRef name() const = 0;
  /// The GGUF file whose metadata describes this checkpoint, or null where it is none.
  virtual const GgufFile *gguf() const { return nullptr; }
};

/// Opens `path`: a .safetensors file, a .safetensors.index.json, a .gguf file, or a directory holding one of
/// them (Hugging Face naming). Everything about the file is checked here (overlaps, sizes, types, missing shards).
llvm::Expected<std::unique_ptr<Checkpoint>> openCheckpoint(llvm::StringRef path);

/// Returns a checkpoint that holds exactly `required`, each element drawn deterministically from `seed`, the
/// tensor's name and its index (so any row can be made alone, in any order), in `format` for matrices and f32
/// for vectors. Scaled so that activations stay of order one (norm weights near 1). A matrix whose rows are not
/// whole blocks of `format` is q8_0 where they are multiples of 32, else f32.
std::unique_ptr<Checkpoint> randomCheckpoint(uint64_t seed, Format format, llvm::ArrayRef<RequiredTensor> required);

/// Checks that `checkpoint` has every required tensor with its shape, and nothing else than known leftovers
/// (rotary inv_freq buffers, masks; a stored head beside a tied one). One error naming file, tensor and both values.
llvm::Error checkTensors(const Checkpoint &checkpoint, llvm::ArrayRef<RequiredTensor> required, bool tiedHead);

/// Prints what `mcc inspect FILE` shows: name, type, shape and bytes of every tensor, and totals.
void printTensorTable(const Checkpoint &checkpoint, llvm::raw_ostream &os);

} // namespace mcc
