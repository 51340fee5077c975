// The checkpoint `random:SEED`: exactly the tensors a model needs, made as they are read.
//
// Deviations keep activations of order one: 1/sqrt(columns) for matrices, 1 for an embedding (a tied one, which is
// the head too, is a matrix), norm weights 1 with a deviation of 0.1, biases 0 with 0.02.
#include "compiler/Import/RandomCheckpoint.h"

#include "compiler/Import/Checkpoint.h"
#include "compiler/Import/ModelSpec.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/xxhash.h"

#include <cassert>
#include <cmath>

namespace mcc {

namespace {

RandomRecipe recipeFor(const RequiredTensor &tensor, uint64_t seed, bool tiedHead) {
  RandomRecipe recipe;
  recipe.key = llvm::xxh3_64bits(llvm::StringRef(tensor.name)) ^ (seed + 1) * 0xd1342543de82ef95;
  double columns = tensor.shape.empty() ? 1 : std::max<double>(1, static_cast<double>(tensor.shape.back()));
  if (llvm::StringRef(tensor.role).ends_with(".bias"))
    recipe.deviation = 0.02;
  else if (tensor.shape.size() < 2) {
    recipe.mean = 1;
    recipe.deviation = 0.1;
  } else if (tensor.role != "embedding" || tiedHead)
    recipe.deviation = 1 / std::sqrt(columns);
  return recipe;
}

/// Returns the format a tensor of `shape` is made in.
Format formatFor(Format wanted, llvm::ArrayRef<int64_t> shape) {
  if (shape.size() < 2)
    return Format::F32;
  for (Format format : {wanted, Format::Q8_0})
    if (shape.back() % formatInfo(format).blockElems == 0)
      return format;
  return Format::F32;
}

class RandomCheckpoint : public Checkpoint {
public:
  RandomCheckpoint(uint64_t seed, Format format, llvm::ArrayRef<RequiredTensor> required);
  const std::vector<TensorInfo> &tensors() const override { return tensorList; }
  llvm::StringRef name() const override { return checkpointName; }
  void readRows(const TensorInfo &tensor, int64_t row, int64_t count, uint8_t *out) const override;

private:
  std::string checkpointName;
  std::vector<TensorInfo> tensorList;
  std::vector<RandomRecipe> recipes; ///< of tensorList, in its order
};

RandomCheckpoint::RandomCheckpoint(uint64_t seed, Format format, llvm::ArrayRef<RequiredTensor> required)
    : checkpointName("random:" + std::to_string(seed)) {
  bool tiedHead = llvm::none_of(required, [](const RequiredTensor &t) { return t.role == "head"; });
  std::vector<const RequiredTensor *> sorted;
  for (const RequiredTensor &tensor : required)
    sorted.push_back(&tensor);
  llvm::sort(sorted, [](const RequiredTensor *a, const RequiredTensor *b) { return a->name < b->name; });
  for (const RequiredTensor *tensor : sorted) {
    TensorInfo info;
    info.name = tensor->name;
    info.format = formatFor(format, tensor->shape);
    info.shape = tensor->shape;
    info.file = checkpointName;
    info.bytes = static_cast<uint64_t>(formatBytes(info.format, info.elems()));
    tensorList.push_back(std::move(info));
    recipes.push_back(recipeFor(*tensor, seed, tiedHead));
  }
}

void RandomCheckpoint::readRows(const TensorInfo &tensor, int64_t row, int64_t count, uint8_t *out) const {
  const TensorInfo *own = find(tensor.name);
  assert(own && row >= 0 && count >= 0 && row + count <= own->rows() && "no such rows in this checkpoint");
  int64_t blocksPerRow = own->cols() / formatInfo(own->format).blockElems;
  fillRandomBlocks(own->format, recipes[own - tensorList.data()], static_cast<uint64_t>(row * blocksPerRow),
                   static_cast<uint64_t>(count * blocksPerRow), out);
}

} // namespace

std::unique_ptr<Checkpoint> randomCheckpoint(uint64_t seed, Format format, llvm::ArrayRef<RequiredTensor> required) {
  return std::make_unique<RandomCheckpoint>(seed, format, required);
}

} // namespace mcc
