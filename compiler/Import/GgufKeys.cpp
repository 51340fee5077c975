// Reads of GGUF metadata by one architecture. See GgufKeys.h.
#include "compiler/Import/GgufKeys.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace mcc {

static constexpr int64_t largest = int64_t(1) << 40;

void GgufKeys::fail(llvm::Error error) {
  if (failure)
    llvm::consumeError(std::move(error));
  else
    failure.emplace(std::move(error));
}

int64_t GgufKeys::integer(llvm::StringRef name, int64_t fallback) { return take(file.getInt(ask(name)), fallback); }

double GgufKeys::number(llvm::StringRef name, double fallback) { return take(file.getFloat(ask(name)), fallback); }

bool GgufKeys::flag(llvm::StringRef name, bool fallback) { return take(file.getBool(ask(name)), fallback); }

llvm::StringRef GgufKeys::text(llvm::StringRef name, llvm::StringRef fallback) {
  return take(file.getString(ask(name)), fallback);
}

int64_t GgufKeys::required(llvm::StringRef name) {
  llvm::Expected<int64_t> value = file.requireInt(ask(name));
  if (!value) {
    fail(value.takeError());
    return 1;
  }
  if (*value < 1 || *value > largest)
    refuse(name, "is {0}; expected at least 1", *value);
  return std::clamp<int64_t>(*value, 1, largest);
}

std::vector<int64_t> GgufKeys::perLayer(llvm::StringRef name, int64_t fallback, size_t layers) {
  const GgufValue *value = file.find(ask(name));
  bool isBools = value && value->type() == GgufType::Array && value->elementType() == GgufType::Bool;
  if (!value || (!value->isNumberArray() && !isBools))
    return std::vector<int64_t>(layers, integer(name, fallback));
  if (value->size() < layers)
    refuse(name, "has {0} elements; the model has {1} layers", value->size(), layers);
  std::vector<int64_t> numbers(layers, fallback);
  for (size_t layer = 0; layer < std::min<size_t>(layers, value->size()); ++layer)
    numbers[layer] = isBools ? int64_t(value->boolAt(layer)) : value->intAt(layer).value_or(-1);
  return numbers;
}

int64_t GgufKeys::sameForLayers(llvm::StringRef name, int64_t fallback, size_t layers) {
  std::vector<int64_t> numbers = perLayer(name, fallback, layers);
  for (size_t layer = 1; layer < numbers.size(); ++layer)
    if (numbers[layer] != numbers.front()) {
      refuse(name, "is {0} in layer 0 and {1} in layer {2}; only one value for all layers is supported",
             numbers.front(), numbers[layer], layer);
      break;
    }
  return numbers.front();
}

void GgufKeys::ignore(std::initializer_list<llvm::StringRef> names) {
  for (llvm::StringRef name : names)
    asked.insert(name);
}

const TensorInfo *GgufKeys::tensor(llvm::StringRef name, int64_t layer) const {
  return checkpoint.find(llvm::formatv("blk.{0}.{1}", layer, name).str());
}

const TensorInfo *GgufKeys::anyLayers(llvm::StringRef name, size_t layers) const {
  for (size_t layer = 0; layer < layers; ++layer)
    if (const TensorInfo *found = tensor(name, int64_t(layer)))
      return found;
  return nullptr;
}

std::vector<double> GgufKeys::vector(llvm::StringRef name) {
  const TensorInfo *info = checkpoint.find(name);
  if (!info)
    return {};
  std::string where = file.path() + ": tensor '" + name.str() + "'";
  if (info->format != Format::F32 || !info->otherType.empty() || !info->storedAs.empty() || info->shape.size() != 1 ||
      info->shape[0] > (1 << 16)) {
    fail(diagnose(where, "has type {0} and shape {1}; expected f32 and one divisor per rotated pair", info->typeName(),
                  shapeText(info->shape)));
    return {};
  }
  if (info->absent) {
    fail(diagnose(where, "has no data; the frequencies depend on it"));
    return {};
  }
  std::vector<float> values(info->shape[0]);
  checkpoint.readRows(*info, 0, 1, reinterpret_cast<uint8_t *>(values.data()));
  return {values.begin(), values.end()};
}

/// Whether a value says that the feature its key names is not there: nothing, false, or a factor of 1.
static bool isNeutral(llvm::StringRef name, const GgufValue &value) {
  if (std::optional<bool> flag = value.asBool())
    return !*flag;
  std::optional<double> number = value.asFloat();
  return number && (*number == 0 || (*number == 1 && (name.ends_with("scale") || name.ends_with("factor"))));
}

void GgufKeys::refuseUnread() {
  // About the file, its making, or what another key says too.
  static constexpr llvm::StringRef harmless[] = {"tensor_data_layout",
                                                 "rope.scaling.finetuned",
                                                 "attention.causal",
                                                 "attention.layer_norm_epsilon",
                                                 "attention.layer_norm_rms_epsilon",
                                                 "attention.group_norm_epsilon",
                                                 "vocab_size",
                                                 "feed_forward_length",
                                                 "interleave_moe_layer_step",
                                                 "moe_every_n_layers",
                                                 "leading_dense_block_count",
                                                 "expert_shared_count"};
  std::string prefix = (architecture + ".").str();
  for (const auto &[key, value] : file.entries()) {
    llvm::StringRef name = key;
    if (!name.consume_front(prefix) || asked.contains(name) || llvm::is_contained(harmless, name) ||
        isNeutral(name, value))
      continue;
    return refuse(name, "is given; what it means for '{0}' is not known, and the result may depend on it",
                  architecture);
  }
}

} // namespace mcc
