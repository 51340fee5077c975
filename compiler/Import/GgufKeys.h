// Typed reads of one architecture's metadata that remember what was asked for and what went wrong first.
//
// Getters never fail: after the first error, or where a key is absent, they return the fallback, and the importer asks
// `takeError()` once at the end. Keys are named without the architecture: `attention.head_count`.
#pragma once

#include "compiler/Import/Checkpoint.h"
#include "compiler/Import/Gguf.h"
#include "compiler/Support/Error.h"

#include "llvm/ADT/StringSet.h"

namespace mcc {

class GgufKeys {
public:
  GgufKeys(const Checkpoint &checkpoint, const GgufFile &file, llvm::StringRef architecture)
      : checkpoint(checkpoint), file(file), architecture(architecture) {}

  bool given(llvm::StringRef name) const { return file.find(full(name)) != nullptr; }
  int64_t integer(llvm::StringRef name, int64_t fallback);
  double number(llvm::StringRef name, double fallback);
  bool flag(llvm::StringRef name, bool fallback);
  llvm::StringRef text(llvm::StringRef name, llvm::StringRef fallback);
  /// An integer from 1 on that must be there.
  int64_t required(llvm::StringRef name);
  /// One number, or an array with one per layer, of integers or bools; `layers` numbers in either case.
  std::vector<int64_t> perLayer(llvm::StringRef name, int64_t fallback, size_t layers);
  /// As above where all layers must have the same.
  int64_t sameForLayers(llvm::StringRef name, int64_t fallback, size_t layers);
  /// Marks keys as known.
  void ignore(std::initializer_list<llvm::StringRef> names);

  /// Returns a tensor by its full name, or null.
  const TensorInfo *tensor(llvm::StringRef name) const { return checkpoint.find(name); }
  /// Returns `blk.L.NAME` of layer `layer`, or null.
  const TensorInfo *tensor(llvm::StringRef name, int64_t layer) const;
  /// Returns `blk.L.NAME` of the first of `layers` layers that has it, or null.
  const TensorInfo *anyLayers(llvm::StringRef name, size_t layers) const;
  /// Reads an f32 vector; nothing where it is absent.
  std::vector<double> vector(llvm::StringRef name);

  /// Refuses the file for a key: "key 'llama.x' WHAT".
  template <typename... Args>
  void refuse(llvm::StringRef name, const char *format, Args &&...args) {
    fail(diagnose(file.path(), "key '{0}' {1}", full(name), llvm::formatv(format, std::forward<Args>(args)...).str()));
  }
  void fail(llvm::Error error);
  bool failed() const { return failure.has_value(); }
  /// The first error; only after failed().
  llvm::Error takeError() { return std::move(*failure); }
  /// Refuses the first key of the architecture that nobody has asked for, unless it is known, or its value says, that it
  /// changes nothing.
  void refuseUnread();

  const Checkpoint &checkpoint;
  const GgufFile &file;

private:
  const llvm::StringRef architecture;
  llvm::StringSet<> asked;
  std::optional<llvm::Error> failure;

  std::string full(llvm::StringRef name) const { return (architecture + "." + name).str(); }
  std::string ask(llvm::StringRef name) {
    asked.insert(name);
    return full(name);
  }
  template <typename T>
  T take(llvm::Expected<std::optional<T>> value, T fallback) {
    if (value)
      return value->value_or(fallback);
    fail(value.takeError());
    return fallback;
  }
};

} // namespace mcc
