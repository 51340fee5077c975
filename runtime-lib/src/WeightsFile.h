// The mapped weights file of the running program.
#pragma once

#include "mcc/Blob.h"
#include "mcc/Model.h"
#include "runtime-lib/src/Result.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mcc::runtime {

/// Returns the path of the weights that belong to this executable: its own real path with `.weights` appended.
Result<std::string> defaultWeightsPath();

/// A weights file, checked and mapped read-only; unmapped when destroyed. Movable.
class WeightsFile {
public:
  /// Maps `path` and checks its header against the file and against `model`. Cost does not depend on the size.
  /// Messages begin with the path and give both values.
  static Result<WeightsFile> open(const std::string &path, const MccModel &model);

  WeightsFile(WeightsFile &&other) noexcept;
  WeightsFile &operator=(WeightsFile &&) = delete;
  ~WeightsFile();

  /// Returns the bytes of the segment `name`, page-aligned, or nullopt where the file has none.
  std::optional<std::span<const uint8_t>> segment(std::string_view name) const;

  /// Reads everything and compares every segment's digest. Fails at the first difference, naming the segment.
  Status verify() const;

  const MccBlobHeader &header() const { return *reinterpret_cast<const MccBlobHeader *>(base); }
  const std::string &path() const { return filePath; }

private:
  WeightsFile(std::string path, const uint8_t *base, size_t bytes)
      : filePath(std::move(path)), base(base), bytes(bytes) {}
  Status checkHeader(const MccModel &model) const;
  Status checkSegments() const;
  void advise() const;

  std::string filePath;
  const uint8_t *base;
  size_t bytes;
};

/// Returns a segment's name, which is NUL-padded but not terminated when it fills the field.
std::string_view segmentName(const MccBlobSegment &segment);

} // namespace mcc::runtime
