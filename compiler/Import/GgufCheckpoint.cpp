// Makes a checkpoint of a GGUF file or of a split set.
//
// A split set is NAME-00001-of-0000N.gguf and its fellows; the first carries the metadata, and every part says its
// number (split.no, from 0), how many parts there are (split.count) and how many tensors the whole set has.
// Tensors of types that no kernel computes with are converted to f32 as their rows are read. Where writers change the
// form of a tensor, its shape here is PyTorch's, and `ssm_a`, stored as -exp(a), is read as a. Apertus keeps four weights
// of each layer in arrays of the metadata: they become tensors, blk.L.xielu.NAME.
#include "compiler/Import/Gguf.h"
#include "compiler/Import/MappedCheckpoint.h"
#include "compiler/Support/Error.h"
#include "kernels/reference/StoredFormat.h"

#include "llvm/ADT/StringMap.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

namespace mcc {

namespace {

using FilePointer = std::shared_ptr<const GgufFile>;

/// What a part says about its set.
struct SplitInfo {
  int64_t number = 0, count = 1;
  std::optional<int64_t> tensors;
};

llvm::Expected<SplitInfo> splitInfo(const GgufFile &file) {
  auto number = file.getInt("split.no"), count = file.getInt("split.count"),
       tensors = file.getInt("split.tensors.count");
  if (llvm::Error error =
          llvm::joinErrors(llvm::joinErrors(number.takeError(), count.takeError()), tensors.takeError()))
    return error;
  SplitInfo info{number->value_or(0), count->value_or(1), *tensors};
  // llama.cpp writes a count of 0 or 1 for a file that is not split.
  info.count = std::max<int64_t>(info.count, 1);
  if (info.number < 0 || info.number >= info.count || info.count > 99999)
    return diagnose(file.path(), "key 'split.no' is {0} and 'split.count' {1}; a part's number is below the count",
                    info.number, info.count);
  return info;
}

/// Returns the path of part `number` (from 0) given the path of the first.
llvm::Expected<std::string> partPath(llvm::StringRef first, int64_t number, int64_t count) {
  std::string suffix = llvm::formatv("-00001-of-{0,0+5}.gguf", count).str();
  if (!first.consume_back(suffix))
    return diagnose(first.str(),
                    "is part 1 of {0}, and its name does not end in '{1}'; the other parts cannot be found", count,
                    suffix);
  return llvm::formatv("{0}-{1,0+5}-of-{2,0+5}.gguf", first, number + 1, count).str();
}

/// Opens the parts after the first.
llvm::Expected<std::vector<FilePointer>> openParts(FilePointer first) {
  auto info = splitInfo(*first);
  if (!info)
    return info.takeError();
  if (info->number != 0)
    return diagnose(first->path(), "is part {0} of {1} of a split model; give the first part", info->number + 1,
                    info->count);
  std::vector<FilePointer> parts = {first};
  for (int64_t number = 1; number < info->count; ++number) {
    auto path = partPath(first->path(), number, info->count);
    if (!path)
      return path.takeError();
    auto part = GgufFile::open(*path);
    if (!part)
      return part.takeError();
    auto partInfo = splitInfo(**part);
    if (!partInfo)
      return partInfo.takeError();
    if (partInfo->number != number || partInfo->count != info->count)
      return diagnose(*path, "says that it is part {0} of {1}; its name says {2} of {3}", partInfo->number + 1,
                      partInfo->count, number + 1, info->count);
    parts.push_back(*part);
  }
  uint64_t found = 0;
  for (const FilePointer &part : parts)
    found += part->tensors().size();
  if (info->count > 1 && info->tensors && static_cast<uint64_t>(*info->tensors) != found)
    return diagnose(first->path(), "says that the set has {0} tensors; its {1} parts have {2}", *info->tensors,
                    info->count, found);
  return parts;
}

/// A tensor to be converted: its format, and its blocks in the mapped file.
struct StoredBlocks {
  const StoredFormat *format = nullptr;
  const uint8_t *data = nullptr;
};

/// A mapped checkpoint some of whose tensors are read as f32.
class GgufCheckpoint : public MappedCheckpoint {
public:
  using MappedCheckpoint::MappedCheckpoint;
  void addStored(const std::string &name, StoredBlocks blocks) { stored[name] = blocks; }
  void readRows(const TensorInfo &tensor, int64_t row, int64_t count, uint8_t *out) const override;

private:
  llvm::StringMap<StoredBlocks> stored;
};

void GgufCheckpoint::readRows(const TensorInfo &tensor, int64_t row, int64_t count, uint8_t *out) const {
  auto found = stored.find(tensor.name);
  if (found == stored.end())
    return MappedCheckpoint::readRows(tensor, row, count, out);
  assert(!tensor.absent && row >= 0 && count >= 0 && row + count <= tensor.rows() && "no such rows to read");
  const StoredFormat &format = *found->second.format;
  int64_t blocksPerRow = tensor.cols() / format.blockElems;
  const uint8_t *in = found->second.data + row * blocksPerRow * format.blockBytes;
  std::vector<float> block(format.blockElems); // `out` need not be aligned for floats
  for (int64_t i = 0; i < count * blocksPerRow; ++i, in += format.blockBytes, out += block.size() * sizeof(float)) {
    dequantizeStored(format, in, block.data(), format.blockElems);
    std::memcpy(out, block.data(), block.size() * sizeof(float));
  }
}

/// -exp(a), one number a block, read as a.
void logOfDecay(const uint8_t *in, float *out) {
  float value;
  std::memcpy(&value, in, sizeof(value));
  *out = std::log(-value);
}
const StoredFormat kDecay = {"f32", 0, 1, 4, logOfDecay};

bool isDecay(llvm::StringRef name, const GgmlTypeInfo &type) {
  return name.starts_with("blk.") && name.ends_with(".ssm_a") && type.name == "f32";
}

/// Returns the format that a tensor is converted from, or null.
const StoredFormat *conversionOf(const GgufTensor &tensor) {
  return isDecay(tensor.name, *tensor.type) ? &kDecay : storedFormatFromGguf(tensor.type->id);
}

/// Gives a shape the axes that PyTorch's has and GGUF's writers leave out, or the other way round.
void restoreShape(llvm::StringRef name, std::vector<int64_t> &shape) {
  if (!name.starts_with("blk."))
    return;
  if ((name.ends_with(".ssm_conv1d.weight") || name.ends_with(".shortconv.conv.weight")) && shape.size() == 2)
    shape.insert(shape.begin() + 1, 1);
  if ((name.ends_with(".ssm_a") || name.ends_with(".ssm_d")) && shape.size() == 2 && shape.back() == 1)
    shape.pop_back();
  if (name.ends_with(".ssm_norm.weight") && shape.size() == 2)
    shape = {shape[0] * shape[1]};
  if (name.ends_with(".ffn_gate_inp_shexp.weight") && shape.size() == 1)
    shape.insert(shape.begin(), 1);
}

TensorInfo tensorInfo(const GgufFile &file, const GgufTensor &tensor) {
  TensorInfo info;
  info.name = tensor.name.str();
  if (conversionOf(tensor))
    info.storedAs = tensor.type->name.str();
  else if (std::optional<Format> format = formatFromGguf(tensor.type->id))
    info.format = *format;
  else
    info.otherType = tensor.type->name.str();
  info.shape.assign(tensor.dims.rbegin(), tensor.dims.rend());
  restoreShape(info.name, info.shape);
  info.bytes = tensor.bytes;
  info.file = file.path();
  info.absent = !file.hasData();
  info.data = info.absent || !info.storedAs.empty() ? nullptr : file.contents().data() + tensor.offset;
  return info;
}

/// Adds the tensors that lie in arrays of the metadata.
void addMetadataTensors(const GgufFile &file, const llvm::StringMap<llvm::StringRef> &fileOf,
                        std::vector<TensorInfo> &tensors) {
  constexpr uint64_t mostLayers = 1 << 16;
  for (auto [name, isScalar] : {std::pair("alpha_p", false), {"alpha_n", false}, {"beta", true}, {"eps", true}}) {
    const GgufValue *values = file.find(std::string("xielu.") + name);
    for (uint64_t layer = 0; values && layer < mostLayers && values->floatData(layer); ++layer) {
      TensorInfo info;
      info.name = llvm::formatv("blk.{0}.xielu.{1}", layer, name).str();
      if (!isScalar)
        info.shape = {1};
      info.bytes = sizeof(float);
      info.file = file.path();
      info.data = values->floatData(layer);
      if (!fileOf.contains(info.name))
        tensors.push_back(info);
    }
  }
}

} // namespace

llvm::Expected<std::unique_ptr<Checkpoint>> openGguf(llvm::StringRef path) {
  auto first = GgufFile::open(path);
  if (!first)
    return first.takeError();
  auto parts = openParts(*first);
  if (!parts)
    return parts.takeError();
  std::vector<TensorInfo> tensors;
  std::vector<std::shared_ptr<const void>> owners;
  std::vector<std::pair<std::string, StoredBlocks>> stored;
  llvm::StringMap<llvm::StringRef> fileOf;
  for (const FilePointer &part : *parts) {
    owners.push_back(part);
    for (const GgufTensor &tensor : part->tensors()) {
      auto [known, isNew] = fileOf.try_emplace(tensor.name, part->path());
      if (!isNew)
        return diagnose(part->path() + ": tensor " + quoted(tensor.name), "is in this part and in {0}", known->second);
      tensors.push_back(tensorInfo(*part, tensor));
      if (!tensors.back().storedAs.empty())
        stored.push_back(
            {tensor.name.str(), {conversionOf(tensor), part->contents().data() + tensor.offset}});
    }
  }
  addMetadataTensors(**first, fileOf, tensors);
  auto checkpoint = std::make_unique<GgufCheckpoint>(path.str(), std::move(tensors), std::move(owners), *first);
  for (const auto &[name, blocks] : stored)
    checkpoint->addStored(name, blocks);
  return checkpoint;
}

} // namespace mcc
