// Compares what a model needs with what a checkpoint has, and makes one error of the first difference: a missing
// tensor, one that cannot be used, or one the model would not read (it would compute something else than its author
// did). What is known to change nothing is passed over.
#include "compiler/Import/Checkpoint.h"
#include "compiler/Import/ModelSpec.h"
#include "compiler/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

#include <algorithm>

namespace mcc {

namespace {

using Names = llvm::StringSet<>;

Names requiredNames(llvm::ArrayRef<RequiredTensor> required) {
  Names names;
  for (const RequiredTensor &tensor : required)
    names.insert(tensor.name);
  return names;
}

/// Returns whether a tensor that the model does not read cannot change its result.
bool isLeftover(const TensorInfo &tensor, bool tiedHead) {
  llvm::StringRef name = tensor.name;
  // Rotary frequencies, recomputed from the config; GGUF stores divisors of them, which the importer has read.
  if (name.ends_with("inv_freq") || name == "rope_freqs.weight")
    return true;
  // Causal masks that old checkpoints store as buffers. A real bias is a vector; a mask never is.
  if (name.ends_with("attn.masked_bias") || name.ends_with("attention.masked_bias"))
    return true;
  if ((name.ends_with("attn.bias") || name.ends_with("attention.bias")) && tensor.shape.size() != 1)
    return true;
  return tiedHead && (name.ends_with("lm_head.weight") || name.ends_with("embed_out.weight"));
}

/// Returns the tensor that the missing `name` may be under another name: one whose name is the other's tail, else
/// the one with the fewest edits, if few; null where none is near. Only tensors that nothing needs are considered.
const TensorInfo *nearest(const Checkpoint &checkpoint, llvm::StringRef name, const Names &needed) {
  const TensorInfo *best = nullptr;
  unsigned bestEdits = std::max<unsigned>(2, name.size() / 5) + 1;
  for (const TensorInfo &tensor : checkpoint.tensors()) {
    if (needed.contains(tensor.name))
      continue;
    llvm::StringRef other = tensor.name;
    bool isTail = other.ends_with(("." + name).str()) || name.ends_with(("." + other).str());
    if (isTail && other.contains('.'))
      return &tensor;
    unsigned edits = name.edit_distance(other, /*AllowReplacements=*/true, bestEdits);
    if (edits < bestEdits) {
      best = &tensor;
      bestEdits = edits;
    }
  }
  return best;
}

llvm::Error missingError(const Checkpoint &checkpoint, llvm::ArrayRef<RequiredTensor> required,
                         const RequiredTensor &first, const Names &needed) {
  auto missing = llvm::count_if(required, [&](const RequiredTensor &t) { return !checkpoint.find(t.name); });
  std::string text = "is missing; the model needs it with shape " + shapeText(first.shape);
  if (missing > 1)
    text += " (" + std::to_string(missing) + " of " + std::to_string(required.size()) + " tensors are missing)";
  if (const TensorInfo *near = nearest(checkpoint, first.name, needed))
    text += "; did you mean " + quoted(near->name) + "?";
  return diagnose(checkpoint.name().str() + ": tensor " + quoted(first.name), "{0}", text);
}

std::string whereTensor(const TensorInfo &tensor) { return tensor.file + ": tensor " + quoted(tensor.name); }

/// Returns "f32, f16, ...": the types that weights may have.
std::string weightTypes() {
  std::string text;
#define MCC_FORMAT(enumerator, name, elems, bytes, ggufId) text += (text.empty() ? "" : ", ") + std::string(name);
#include "kernels/FormatTable.def"
  return text;
}

llvm::Error checkUsable(const TensorInfo &tensor, const RequiredTensor &wanted) {
  if (!tensor.otherType.empty())
    return diagnose(whereTensor(tensor), "has type {0}; weights are one of {1}", tensor.otherType, weightTypes());
  if (tensor.shape != wanted.shape)
    return diagnose(whereTensor(tensor), "has shape {0}; the model needs {1}", shapeText(tensor.shape),
                    shapeText(wanted.shape));
  if (tensor.absent)
    return diagnose(whereTensor(tensor), "has {0} bytes by the header; the file ends where the data would begin",
                    tensor.bytes);
  return llvm::Error::success();
}

llvm::Error checkSurplus(const Checkpoint &checkpoint, const Names &needed, bool tiedHead) {
  const TensorInfo *first = nullptr;
  size_t count = 0;
  for (const TensorInfo &tensor : checkpoint.tensors()) {
    if (needed.contains(tensor.name) || isLeftover(tensor, tiedHead))
      continue;
    first = first ? first : &tensor;
    ++count;
  }
  if (!first)
    return llvm::Error::success();
  std::string others = count == 1   ? ""
                       : count == 2 ? " (nor 1 other)"
                                    : llvm::formatv(" (nor {0} others)", count - 1).str();
  return diagnose(whereTensor(*first), "has shape {0}; the model reads no such tensor{1}", shapeText(first->shape),
                  others);
}

} // namespace

llvm::Error checkTensors(const Checkpoint &checkpoint, llvm::ArrayRef<RequiredTensor> required, bool tiedHead) {
  Names needed = requiredNames(required);
  for (const RequiredTensor &wanted : required) {
    const TensorInfo *tensor = checkpoint.find(wanted.name);
    if (!tensor)
      return missingError(checkpoint, required, wanted, needed);
    if (llvm::Error error = checkUsable(*tensor, wanted))
      return error;
  }
  return checkSurplus(checkpoint, needed, tiedHead);
}

} // namespace mcc
