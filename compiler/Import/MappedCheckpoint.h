// A checkpoint whose tensors lie in mapped files: what the safetensors and GGUF readers return.
#pragma once

#include "compiler/Import/Checkpoint.h"

#include <utility>

namespace mcc {

/// Tensors that point into files kept alive by `owners`.
class MappedCheckpoint : public Checkpoint {
public:
  /// Sorts `tensors` by name; names must be distinct.
  MappedCheckpoint(std::string name, std::vector<TensorInfo> tensors, std::vector<std::shared_ptr<const void>> owners,
                   std::shared_ptr<const GgufFile> metadata = nullptr);
  const std::vector<TensorInfo> &tensors() const override { return tensorList; }
  llvm::StringRef name() const override { return checkpointName; }
  const GgufFile *gguf() const override { return metadata.get(); }

private:
  std::string checkpointName;
  std::vector<TensorInfo> tensorList;
  std::vector<std::shared_ptr<const void>> owners;
  std::shared_ptr<const GgufFile> metadata;
};

} // namespace mcc
