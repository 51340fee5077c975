// Finds, for every weight the model needs, the tensors that a quantised checkpoint stores instead of it, and reads rows
// by dequantising them (kernels/reference/PublishedWeight.h), so that the rest of the compiler sees plain weights.
//
// Which weights are packed is what the file holds, not what the config lists as excluded: a tensor of an ordinary type
// under the weight's own name is plain. All sizes and indices are checked here, before any row is read.
#include "compiler/Import/QuantizedCheckpoint.h"

#include "compiler/Support/Error.h"
#include "kernels/reference/PublishedWeight.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Endian.h"

#include <cassert>
#include <cstring>
#include <variant>

namespace mcc {

namespace {

using Weight = std::variant<GptqWeight, AwqWeight, Fp8Weight, Mxfp4Weight>;
using Method = QuantizationSpec::Method;
using Shape = std::vector<int64_t>;

std::string whereTensor(const TensorInfo &tensor) { return tensor.file + ": tensor " + quoted(tensor.name); }

class QuantizedCheckpoint : public Checkpoint {
public:
  QuantizedCheckpoint(std::unique_ptr<Checkpoint> packed, const QuantizationSpec &quantization)
      : packed(std::move(packed)), quantization(quantization) {}

  llvm::Error unpack(llvm::ArrayRef<RequiredTensor> required);
  const std::vector<TensorInfo> &tensors() const override { return tensorList; }
  void readRows(const TensorInfo &tensor, int64_t row, int64_t count, uint8_t *out) const override;
  llvm::StringRef name() const override { return packed->name(); }
  const GgufFile *gguf() const override { return packed->gguf(); }

private:
  llvm::Error unpackOne(const RequiredTensor &wanted);
  llvm::Error addGptq(const RequiredTensor &wanted, const TensorInfo &quants);
  llvm::Error addAwq(const RequiredTensor &wanted, const TensorInfo &quants);
  llvm::Error addFp8(const RequiredTensor &wanted, const TensorInfo &elements);
  llvm::Error addMxfp4(const RequiredTensor &wanted, const TensorInfo &blocks);
  llvm::Error addGroupParameters(const std::string &base, const TensorInfo &quants, Shape zeroShape, Shape scaleShape,
                                 const uint8_t *&zeros, Scalars &scales);
  llvm::Error checkGroups(const TensorInfo &quants, int64_t cols, int64_t groupSize);
  llvm::Error checkGroupIndex(const TensorInfo &index, int64_t groups);
  llvm::Expected<const TensorInfo *> companion(const std::string &name, const TensorInfo &needing,
                                               llvm::ArrayRef<llvm::StringRef> types, const Shape &shape);
  llvm::Error checkStored(const TensorInfo &tensor, llvm::ArrayRef<llvm::StringRef> types, const Shape &shape);
  void add(const RequiredTensor &wanted, const TensorInfo &main, Weight weight, const char *storedAs,
           Format format = Format::F32);

  std::unique_ptr<Checkpoint> packed;
  QuantizationSpec quantization;
  std::vector<TensorInfo> tensorList;
  llvm::StringMap<Weight> weights;
  llvm::StringMap<uint64_t> usedBytes; // of the weight in work
  llvm::StringSet<> hidden;            // names that unpacked weights are made of
};

const llvm::StringRef kScaleTypes[] = {"f32", "f16", "bf16"};

std::string typesText(llvm::ArrayRef<llvm::StringRef> types) { return llvm::join(types, " or "); }

llvm::Error QuantizedCheckpoint::checkStored(const TensorInfo &tensor, llvm::ArrayRef<llvm::StringRef> types,
                                             const Shape &shape) {
  if (!llvm::is_contained(types, tensor.typeName()))
    return diagnose(whereTensor(tensor), "has type {0}; this quantisation stores it as {1}", tensor.typeName(),
                    typesText(types));
  if (tensor.shape != shape)
    return diagnose(whereTensor(tensor), "has shape {0}; this quantisation of the weight takes {1}",
                    shapeText(tensor.shape), shapeText(shape));
  hidden.insert(tensor.name);
  usedBytes[tensor.name] = tensor.bytes;
  return llvm::Error::success();
}

llvm::Expected<const TensorInfo *> QuantizedCheckpoint::companion(const std::string &name, const TensorInfo &needing,
                                                                  llvm::ArrayRef<llvm::StringRef> types,
                                                                  const Shape &shape) {
  const TensorInfo *found = packed->find(name);
  if (!found)
    return diagnose(needing.file + ": tensor " + quoted(name), "is missing; {0} cannot be read without it",
                    quoted(needing.name));
  if (llvm::Error error = checkStored(*found, types, shape))
    return std::move(error);
  return found;
}

void QuantizedCheckpoint::add(const RequiredTensor &wanted, const TensorInfo &main, Weight weight, const char *storedAs,
                              Format format) {
  TensorInfo info;
  info.name = wanted.name;
  info.format = format;
  info.storedAs = storedAs;
  info.shape = wanted.shape;
  info.file = main.file;
  for (const auto &entry : usedBytes)
    info.bytes += entry.second;
  tensorList.push_back(std::move(info));
  weights[wanted.name] = weight;
}

llvm::Error QuantizedCheckpoint::checkGroups(const TensorInfo &quants, int64_t cols, int64_t groupSize) {
  if (cols % groupSize == 0)
    return llvm::Error::success();
  return diagnose(whereTensor(quants), "is packed in groups of {0} inputs, which do not divide its {1} inputs",
                  groupSize, cols);
}

llvm::Error QuantizedCheckpoint::addGroupParameters(const std::string &base, const TensorInfo &quants, Shape zeroShape,
                                                    Shape scaleShape, const uint8_t *&zeros, Scalars &scales) {
  auto zeroTensor = companion(base + ".qzeros", quants, {"I32"}, zeroShape);
  if (!zeroTensor)
    return zeroTensor.takeError();
  auto scaleTensor = companion(base + ".scales", quants, kScaleTypes, scaleShape);
  if (!scaleTensor)
    return scaleTensor.takeError();
  zeros = (*zeroTensor)->data;
  scales = {(*scaleTensor)->data, (*scaleTensor)->format};
  return llvm::Error::success();
}

llvm::Error QuantizedCheckpoint::checkGroupIndex(const TensorInfo &index, int64_t groups) {
  for (int64_t i = 0; i < index.elems(); ++i) {
    int32_t group = static_cast<int32_t>(llvm::support::endian::read32le(index.data + i * 4));
    if (group < 0 || group >= groups)
      return diagnose(whereTensor(index), "puts input {0} into group {1}; there are {2} groups", i, group, groups);
  }
  return llvm::Error::success();
}

llvm::Error QuantizedCheckpoint::addGptq(const RequiredTensor &wanted, const TensorInfo &quants) {
  GptqWeight weight;
  weight.rows = wanted.shape[0], weight.cols = wanted.shape[1];
  weight.bits = static_cast<int>(quantization.bits);
  weight.groupSize = quantization.groupSize > 0 ? quantization.groupSize : weight.cols;
  weight.zerosLessOne = quantization.zerosLessOne;
  int64_t perWord = 32 / weight.bits;
  if (weight.rows % perWord != 0 || weight.cols % perWord != 0)
    return diagnose(whereTensor(quants), "stands for a weight of shape {0}, which {1}-bit words of {2} do not divide",
                    shapeText(wanted.shape), 32, perWord);
  if (llvm::Error error = checkGroups(quants, weight.cols, weight.groupSize))
    return error;
  int64_t groups = weight.cols / weight.groupSize;
  std::string base = wanted.name.substr(0, wanted.name.size() - 7);
  if (llvm::Error error = checkStored(quants, {"I32"}, {weight.cols / perWord, weight.rows}))
    return error;
  if (llvm::Error error = addGroupParameters(base, quants, {groups, weight.rows / perWord}, {groups, weight.rows},
                                             weight.zeros, weight.scales))
    return error;
  if (quantization.ordered || packed->find(base + ".g_idx")) {
    auto index = companion(base + ".g_idx", quants, {"I32"}, {weight.cols});
    if (!index)
      return index.takeError();
    if (llvm::Error error = checkGroupIndex(**index, groups))
      return error;
    weight.groups = (*index)->data;
  }
  weight.quants = quants.data;
  add(wanted, quants, weight, weight.bits == 4 ? "gptq int4" : "gptq int8");
  return llvm::Error::success();
}

llvm::Error QuantizedCheckpoint::addAwq(const RequiredTensor &wanted, const TensorInfo &quants) {
  AwqWeight weight;
  weight.rows = wanted.shape[0], weight.cols = wanted.shape[1];
  weight.groupSize = quantization.groupSize > 0 ? quantization.groupSize : weight.cols;
  if (quantization.bits != 4)
    return diagnose(whereTensor(quants), "is said to have {0} bits; awq is read with 4", quantization.bits);
  if (weight.rows % 8 != 0)
    return diagnose(whereTensor(quants), "stands for a weight of shape {0}, which {1}-bit words of {2} do not divide",
                    shapeText(wanted.shape), 32, 8);
  if (llvm::Error error = checkGroups(quants, weight.cols, weight.groupSize))
    return error;
  int64_t groups = weight.cols / weight.groupSize;
  std::string base = wanted.name.substr(0, wanted.name.size() - 7);
  if (llvm::Error error = checkStored(quants, {"I32"}, {weight.cols, weight.rows / 8}))
    return error;
  if (llvm::Error error = addGroupParameters(base, quants, {groups, weight.rows / 8}, {groups, weight.rows},
                                             weight.zeros, weight.scales))
    return error;
  weight.quants = quants.data;
  add(wanted, quants, weight, "awq int4");
  return llvm::Error::success();
}

llvm::Error QuantizedCheckpoint::addFp8(const RequiredTensor &wanted, const TensorInfo &elements) {
  Fp8Weight weight;
  weight.rows = wanted.shape[0], weight.cols = wanted.shape[1];
  if (llvm::Error error = checkStored(elements, {"F8_E4M3"}, wanted.shape))
    return error;
  std::string scaleName = wanted.name + "_scale_inv";
  if (!packed->find(scaleName) && packed->find(wanted.name + "_scale"))
    scaleName = wanted.name + "_scale";
  bool blocked = quantization.blockRows != 0;
  weight.blockRows = blocked ? quantization.blockRows : weight.rows;
  weight.blockCols = blocked ? quantization.blockCols : weight.cols;
  Shape shape = {(weight.rows + weight.blockRows - 1) / weight.blockRows,
                 (weight.cols + weight.blockCols - 1) / weight.blockCols};
  if (const TensorInfo *found = packed->find(scaleName); found && !blocked) {
    // One scale in any of its spellings, or one for every row.
    if (found->elems() == 1)
      shape = found->shape;
    else
      shape = {weight.rows, 1}, weight.blockRows = 1;
  }
  auto scales = companion(scaleName, elements, kScaleTypes, shape);
  if (!scales)
    return scales.takeError();
  weight.scales = {(*scales)->data, (*scales)->format};
  weight.elements = elements.data;
  // Scales of activations, for hardware that rounds those too.
  std::string base = wanted.name.substr(0, wanted.name.size() - 7);
  for (const char *suffix : {".input_scale", ".activation_scale"})
    hidden.insert(base + suffix);
  add(wanted, elements, weight, blocked ? "fp8 blocks" : "fp8", fitsF8(weight) ? Format::F8 : Format::F32);
  return llvm::Error::success();
}

llvm::Error QuantizedCheckpoint::addMxfp4(const RequiredTensor &wanted, const TensorInfo &blocks) {
  if (wanted.shape.size() != 3 || wanted.shape[1] % 32 != 0)
    return diagnose(
        whereTensor(blocks),
        "stands for a weight of shape {0}; mxfp4 packs [experts, inputs, outputs] with inputs in blocks of 32",
        shapeText(wanted.shape));
  Mxfp4Weight weight;
  int64_t experts = wanted.shape[0];
  weight.in = wanted.shape[1], weight.out = wanted.shape[2];
  if (llvm::Error error = checkStored(blocks, {"U8"}, {experts, weight.out, weight.in / 32, 16}))
    return error;
  auto scales = companion(wanted.name + "_scales", blocks, {"U8"}, {experts, weight.out, weight.in / 32});
  if (!scales)
    return scales.takeError();
  weight.blocks = blocks.data, weight.scales = (*scales)->data;
  add(wanted, blocks, weight, "mxfp4", Format::BF16);
  return llvm::Error::success();
}

llvm::Error QuantizedCheckpoint::unpackOne(const RequiredTensor &wanted) {
  const TensorInfo *plain = packed->find(wanted.name);
  usedBytes.clear();
  if (quantization.method == Method::Mxfp4) {
    const TensorInfo *blocks = plain ? nullptr : packed->find(wanted.name + "_blocks");
    return blocks ? addMxfp4(wanted, *blocks) : llvm::Error::success();
  }
  if (wanted.shape.size() != 2 || !llvm::StringRef(wanted.name).ends_with(".weight"))
    return llvm::Error::success();
  if (quantization.method == Method::Fp8)
    return plain && plain->otherType == "F8_E4M3" ? addFp8(wanted, *plain) : llvm::Error::success();
  const TensorInfo *quants = plain ? nullptr : packed->find(wanted.name.substr(0, wanted.name.size() - 7) + ".qweight");
  if (!quants)
    return llvm::Error::success();
  return quantization.method == Method::Awq ? addAwq(wanted, *quants) : addGptq(wanted, *quants);
}

llvm::Error QuantizedCheckpoint::unpack(llvm::ArrayRef<RequiredTensor> required) {
  for (const RequiredTensor &wanted : required)
    if (!weights.contains(wanted.name))
      if (llvm::Error error = unpackOne(wanted))
        return error;
  for (const TensorInfo &tensor : packed->tensors())
    if (!hidden.contains(tensor.name))
      tensorList.push_back(tensor);
  llvm::sort(tensorList, [](const TensorInfo &a, const TensorInfo &b) { return a.name < b.name; });
  return llvm::Error::success();
}

void QuantizedCheckpoint::readRows(const TensorInfo &tensor, int64_t row, int64_t count, uint8_t *out) const {
  auto found = weights.find(tensor.name);
  if (found == weights.end())
    return packed->readRows(tensor, row, count, out);
  assert(row >= 0 && count >= 0 && row + count <= tensor.rows() && "rows outside the tensor");
  if (tensor.format == Format::F8)
    return storeRowsAsF8(std::get<Fp8Weight>(found->second), row, count, out);
  std::vector<float> values(count * tensor.cols()); // `out` need not be aligned for floats
  std::visit([&](const auto &weight) { dequantizeRows(weight, row, count, values.data()); }, found->second);
  if (tensor.format == Format::F32) {
    if (!values.empty())
      std::memcpy(out, values.data(), values.size() * sizeof(float));
    return;
  }
  for (float value : values) { // bf16 is the upper half, and the lower half of these is zero
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    llvm::support::endian::write16le(out, static_cast<uint16_t>(bits >> 16));
    out += 2;
  }
}

} // namespace

llvm::Expected<std::unique_ptr<Checkpoint>> unpackQuantized(std::unique_ptr<Checkpoint> packed,
                                                            const QuantizationSpec &quantization,
                                                            llvm::ArrayRef<RequiredTensor> required) {
  auto unpacked = std::make_unique<QuantizedCheckpoint>(std::move(packed), quantization);
  if (llvm::Error error = unpacked->unpack(required))
    return std::move(error);
  return unpacked;
}

} // namespace mcc
