// Names and places of weights: how a role becomes the name of a tensor, and which of its rows are the role's.
#include "compiler/Import/ModelSpec.h"

#include <cassert>

namespace mcc {

static void replacePlaceholder(std::string &name, const char *placeholder, int64_t value) {
  std::string token = std::string("{") + placeholder + "}";
  for (size_t at; (at = name.find(token)) != std::string::npos;)
    name.replace(at, token.size(), std::to_string(value));
}

std::string ModelSpec::tensorName(const std::string &role, int64_t layer, int64_t index) const {
  static const std::string biasSuffix = ".bias", weightSuffix = ".weight";
  auto found = tensors.find(role);
  std::string name;
  if (found != tensors.end()) {
    name = found->second;
  } else if (role.ends_with(biasSuffix)) {
    found = tensors.find(role.substr(0, role.size() - biasSuffix.size()));
    if (found == tensors.end() || !found->second.ends_with(weightSuffix))
      return "";
    name = found->second.substr(0, found->second.size() - weightSuffix.size()) + biasSuffix;
  }
  replacePlaceholder(name, "layer", layer);
  replacePlaceholder(name, "expert", index);
  replacePlaceholder(name, "head", index);
  return name;
}

/// Narrows `source` to the rows that hold q, k or v.
static void sliceQkv(WeightSource &source, const AttentionSpec &attention, char part) {
  int64_t perKvHead = attention.heads / attention.kvHeads, dim = attention.headDim;
  int64_t queryRows = attention.heads * dim, keyRows = attention.kvHeads * dim;
  source.whole = false;
  source.groups = 1;
  if (attention.qkvLayout == QkvLayout::Concatenated) {
    source.rows = part == 'q' ? queryRows : keyRows;
    source.first = part == 'q' ? 0 : part == 'k' ? queryRows : queryRows + keyRows;
    return;
  }
  source.groups = attention.kvHeads;
  source.stride = (perKvHead + 2) * dim;
  source.rows = part == 'q' ? perKvHead * dim : dim;
  source.first = part == 'q' ? 0 : part == 'k' ? perKvHead * dim : (perKvHead + 1) * dim;
}

/// Narrows `source` to the rows that hold gate or up.
static void sliceGateUp(WeightSource &source, const MlpSpec &mlp, bool up) {
  source.whole = false;
  if (mlp.gateUpLayout == GateUpLayout::Concatenated) {
    source.rows = mlp.width;
    source.first = up ? mlp.width : 0;
    return;
  }
  source.rows = 1;
  source.first = up ? 1 : 0;
  source.stride = 2;
  source.groups = mlp.width;
}

/// Narrows `source` to the rows of `part` among the parts of [first part, second, ...] that every one of `groups` heads has in turn.
static void slicePart(WeightSource &source, int64_t groups, const std::vector<int64_t> &parts, size_t part) {
  source.whole = false;
  source.groups = groups;
  for (size_t i = 0; i < parts.size(); ++i) {
    source.stride += parts[i];
    source.first += i < part ? parts[i] : 0;
  }
  source.rows = parts[part];
}

/// Narrows `source` to a part of a delta net's two projections, which hold for every key head its query, its key, and the values
/// and gates of its value heads; and the betas and decays of its value heads. Returns the stored role, or nothing.
static const char *sliceDelta(WeightSource &source, const DeltaNetSpec &delta, const std::string &role) {
  int64_t shared = delta.valueHeads / delta.keyHeads, values = shared * delta.valueDim;
  size_t part = 0;
  for (const char *name : {"delta_q", "delta_k", "delta_v", "delta_z", "delta_b", "delta_a"}) {
    if (role == name && part < 4)
      return slicePart(source, delta.keyHeads, {delta.keyDim, delta.keyDim, values, values}, part), "delta_in_qkvz";
    if (role == name)
      return slicePart(source, delta.keyHeads, {shared, shared}, part - 4), "delta_in_ba";
    ++part;
  }
  return nullptr;
}

/// The parts of a role's name: "expert_gate.bias" is the expert's "gate", and a bias.
struct RoleParts {
  std::string stem, prefix;
  bool bias = false;
};

static RoleParts splitRole(std::string role) {
  RoleParts parts;
  if (role.ends_with(".bias")) {
    parts.bias = true;
    role.resize(role.size() - 5);
  }
  for (const char *prefix : {"expert_", "shared_"})
    if (role.starts_with(prefix)) {
      parts.prefix = prefix;
      role = role.substr(parts.prefix.size());
    }
  parts.stem = role;
  return parts;
}

WeightSource weightSource(const ModelSpec &spec, const std::string &role, int64_t layer, int64_t index) {
  const BlockSpec &block = spec.block(layer);
  RoleParts parts = splitRole(role);
  bool isExpert = parts.prefix == "expert_";
  assert((!isExpert || block.moe) && "an expert's role in a block without experts");
  const MlpSpec &mlp = isExpert ? block.moe->expert : parts.prefix == "shared_" ? block.moe->shared : block.mlp;
  WeightSource source;
  std::string stored = parts.stem;
  bool isGatedQuery = block.attention.outputGate && (parts.stem == "q" || parts.stem == "q_gate");
  bool isQkv = parts.stem == "q" || parts.stem == "k" || parts.stem == "v";
  bool isGateUp = parts.stem == "gate" || parts.stem == "up";
  if (isGatedQuery) { // every head's query, then its gate
    stored = "q";
    slicePart(source, block.attention.heads, {block.attention.headDim, block.attention.headDim}, parts.stem == "q" ? 0 : 1);
  } else if (isQkv && block.attention.qkvLayout != QkvLayout::Separate) {
    stored = "qkv";
    sliceQkv(source, block.attention, parts.stem[0]);
  } else if (isGateUp && mlp.gated && mlp.gateUpLayout != GateUpLayout::Separate) {
    stored = "gate_up";
    sliceGateUp(source, mlp, parts.stem == "up");
  }
  if (const char *joined = block.deltaNet ? sliceDelta(source, *block.deltaNet, parts.stem) : nullptr)
    stored = joined;
  bool stacked = isExpert && block.moe->storage != MoeSpec::Storage::Separate;
  if (stacked)
    source.slab = index;
  source.transposed =
      !parts.bias && (isExpert ? block.moe->storage == MoeSpec::Storage::StackedTransposed : spec.transposedLinears);
  source.tensor = spec.tensorName(parts.prefix + stored + (parts.bias ? ".bias" : ""), layer, stacked ? -1 : index);
  return source;
}

} // namespace mcc
