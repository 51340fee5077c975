// Builds the unfused step of a decoder, block by block:
//
//   x = embed(tokens)
//   per layer:  n = norm(x); q, k, v = linear(n); rotate q, k; append k, v; x = x + linear(attention(q))
//               n = norm(x); x = x + linear(act(linear_gate(n)) * linear_up(n))
//   logits = linear(norm(last row of x)); token = argmax(logits)
//
// Every op's location names its place in the model ("layers.3.mlp.down"), so that messages and tables can. Nothing is
// fused or reordered here; passes do that.
#include "compiler/Build/BuildStep.h"

#include "compiler/Build/RopeFrequencies.h"
#include "compiler/Support/Error.h"
#include "dialects/Mcc/IR/MccOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

#include <map>

using namespace mlir;

namespace mcc {
namespace {

using namespace ir;

class StepBuilder {
public:
  StepBuilder(MLIRContext &mlirContext, const ModelSpec &spec, const Checkpoint &checkpoint, int64_t context)
      : spec(spec), checkpoint(checkpoint), context(context), builder(&mlirContext) {}

  OwningOpRef<ModuleOp> build();

private:
  Value buildLayer(Value x, int64_t layer);
  Value buildAttention(Value x, const BlockSpec &block, int64_t layer);
  Value buildMlp(Value x, const BlockSpec &block, int64_t layer);
  Value buildHead(Value x);

  Value norm(Value x, const NormSpec &norm, const std::string &role, int64_t layer, int64_t groups = 1);
  Value linear(Value x, const std::string &role, int64_t layer, int64_t rows, bool bias);
  Value matrix(const std::string &tensor, int64_t rows, int64_t cols);
  Value vector(const std::string &tensor, int64_t size, double offset = 0);
  Value rotary(const RopeSpec &rope);
  // Names the place of the ops built next: "layers.3.attention.q".
  void at(int64_t layer, const std::string &part);
  Value weight(const std::string &tensor, WeightType type, double offset);
  RankedTensorType type(int64_t features) { return activationsType(builder.getContext(), features); }

  const ModelSpec &spec;
  const Checkpoint &checkpoint;
  const int64_t context;
  OpBuilder builder;
  Location location = builder.getUnknownLoc();
  Value tokens;
  std::vector<std::pair<RopeSpec, Value>> rotaries; // one per distinct rope, made at the start
  std::map<std::string, Value> weights;             // a tensor used twice is one op
};

void StepBuilder::at(int64_t layer, const std::string &part) {
  std::string name = layer < 0 ? part : "layers." + std::to_string(layer) + "." + part;
  location = NameLoc::get(builder.getStringAttr(name));
}

Value StepBuilder::weight(const std::string &tensor, WeightType type, double offset) {
  Value &value = weights[tensor];
  if (!value)
    value = WeightOp::create(builder, location, type, builder.getStrArrayAttr({tensor}), false, APFloat(offset), DeviceAttr());
  return value;
}

Value StepBuilder::matrix(const std::string &tensor, int64_t rows, int64_t cols) {
  return weight(tensor, WeightType::get(builder.getContext(), {rows, cols}, checkpoint.find(tensor)->format), 0);
}

Value StepBuilder::vector(const std::string &tensor, int64_t size, double offset) {
  return weight(tensor, WeightType::get(builder.getContext(), {size}, Format::F32), offset);
}

Value StepBuilder::norm(Value x, const NormSpec &norm, const std::string &role, int64_t layer, int64_t groups) {
  if (norm.kind == NormSpec::Kind::None)
    return x;
  int64_t size = features(x.getType()) / groups;
  Value gain = norm.hasWeight ? vector(spec.tensorName(role, layer), size, norm.weightOffset) : Value();
  Value bias = norm.hasBias ? vector(spec.tensorName(role + ".bias", layer), size) : Value();
  NormKind kind = norm.kind == NormSpec::Kind::Rms ? NormKind::Rms : NormKind::Layer;
  return NormOp::create(builder, location, x.getType(), kind, x, gain, bias, APFloat(norm.eps), groups, DeviceAttr());
}

Value StepBuilder::linear(Value x, const std::string &role, int64_t layer, int64_t rows, bool bias) {
  Value weight = matrix(spec.tensorName(role, layer), rows, features(x.getType()));
  Value offset = bias ? vector(spec.tensorName(role + ".bias", layer), rows) : Value();
  return LinearOp::create(builder, location, type(rows), x, weight, offset);
}

Value StepBuilder::rotary(const RopeSpec &rope) {
  for (auto &[known, value] : rotaries)
    if (known == rope)
      return value;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfterValue(tokens);
  RopeFrequencies made = ropeFrequencies(rope);
  Value value = RotaryOp::create(builder, NameLoc::get(builder.getStringAttr("rotary")), type(rope.dims), tokens,
                                 builder.getDenseF32ArrayAttr(made.frequencies), builder.getF64FloatAttr(made.factor), DeviceAttr());
  rotaries.push_back({rope, value});
  return value;
}

Value StepBuilder::buildAttention(Value x, const BlockSpec &block, int64_t layer) {
  const AttentionSpec &attention = block.attention;
  at(layer, "attention.norm");
  Value n = norm(x, block.attentionNorm, "attention_norm", layer);
  at(layer, "attention.q");
  Value q = linear(n, "q", layer, attention.heads * attention.headDim, attention.qkvBias);
  at(layer, "attention.k");
  Value k = linear(n, "k", layer, attention.kvHeads * attention.headDim, attention.qkvBias);
  at(layer, "attention.v");
  Value v = linear(n, "v", layer, attention.kvHeads * attention.headDim, attention.qkvBias);
  at(layer, "attention");
  if (attention.qkNorm) {
    q = norm(q, *attention.qkNorm, "q_norm", layer, attention.heads);
    k = norm(k, *attention.qkNorm, "k_norm", layer, attention.kvHeads);
  }
  if (attention.rope) {
    RopePairing pairing = attention.rope->pairing == RopeSpec::Pairing::Half ? RopePairing::Half : RopePairing::Adjacent;
    Value cosSin = rotary(*attention.rope);
    q = RopeOp::create(builder, location, q.getType(), q, cosSin, attention.heads, pairing, DeviceAttr());
    k = RopeOp::create(builder, location, k.getType(), k, cosSin, attention.kvHeads, pairing, DeviceAttr());
  }
  auto cacheType = CacheType::get(builder.getContext(), attention.kvHeads, context, attention.headDim);
  std::string prefix = "layers." + std::to_string(layer);
  Value keys = CacheOp::create(builder, location, cacheType, builder.getStringAttr(prefix + ".k"), DeviceAttr());
  Value values = CacheOp::create(builder, location, cacheType, builder.getStringAttr(prefix + ".v"), DeviceAttr());
  CacheAppendOp::create(builder, location, k, keys, DeviceAttr());
  CacheAppendOp::create(builder, location, v, values, DeviceAttr());
  Value y = AttentionOp::create(builder, location, q.getType(), q, keys, values, attention.heads, APFloat(attention.scale), attention.window,
                                APFloat(attention.softcap), DeviceAttr());
  at(layer, "attention.o");
  return linear(y, "o", layer, spec.hidden, attention.outBias);
}

Value StepBuilder::buildMlp(Value x, const BlockSpec &block, int64_t layer) {
  const MlpSpec &mlp = block.mlp;
  ActivationKind activation = static_cast<ActivationKind>(mlp.activation);
  at(layer, "mlp.norm");
  Value n = norm(x, block.mlpNorm, "mlp_norm", layer);
  Value inner;
  if (mlp.gated) {
    at(layer, "mlp.gate");
    Value gate = linear(n, "gate", layer, mlp.width, mlp.bias);
    at(layer, "mlp.up");
    Value up = linear(n, "up", layer, mlp.width, mlp.bias);
    inner = GateOp::create(builder, location, gate.getType(), activation, gate, up, DeviceAttr());
  } else {
    at(layer, "mlp.up");
    Value up = linear(n, "up", layer, mlp.width, mlp.bias);
    inner = ActivateOp::create(builder, location, up.getType(), activation, up, DeviceAttr());
  }
  at(layer, "mlp.down");
  return linear(inner, "down", layer, spec.hidden, mlp.bias);
}

Value StepBuilder::buildLayer(Value x, int64_t layer) {
  const BlockSpec &block = spec.block(layer);
  Value attended = buildAttention(x, block, layer);
  x = AddOp::create(builder, location, x.getType(), x, attended, DeviceAttr());
  Value fed = buildMlp(x, block, layer);
  return AddOp::create(builder, location, x.getType(), x, fed, DeviceAttr());
}

Value StepBuilder::buildHead(Value x) {
  auto row = RankedTensorType::get({1, spec.hidden}, builder.getF32Type());
  auto logitsType = RankedTensorType::get({1, spec.vocabulary}, builder.getF32Type());
  at(-1, "head");
  Value last = LastRowOp::create(builder, location, row, x, DeviceAttr());
  Value n = norm(last, spec.finalNorm, "final_norm", -1);
  Value weight = matrix(spec.tensorName(spec.tiedHead ? "embedding" : "head"), spec.vocabulary, spec.hidden);
  Value bias = spec.headBias ? vector(spec.tensorName("head.bias"), spec.vocabulary) : Value();
  Value logits = LinearOp::create(builder, location, logitsType, n, weight, bias);
  if (spec.logitScale != 1 || spec.logitSoftcap != 0)
    logits = ScaleLogitsOp::create(builder, location, logitsType, logits, APFloat(spec.logitScale), APFloat(spec.logitSoftcap), DeviceAttr());
  return logits;
}

OwningOpRef<ModuleOp> StepBuilder::build() {
  OwningOpRef<ModuleOp> module(ModuleOp::create(location));
  auto tokensType = RankedTensorType::get({ShapedType::kDynamic}, builder.getI32Type());
  auto tokenType = RankedTensorType::get({1}, builder.getI32Type());
  auto logitsType = RankedTensorType::get({1, spec.vocabulary}, builder.getF32Type());
  builder.setInsertionPointToEnd(module->getBody());
  auto step = func::FuncOp::create(builder, location, "step", builder.getFunctionType({tokensType}, {tokenType, logitsType}));
  Block *entry = step.addEntryBlock();
  tokens = entry->getArgument(0);
  builder.setInsertionPointToStart(entry);
  at(-1, "embedding");
  Value table = matrix(spec.tensorName("embedding"), spec.vocabulary, spec.hidden);
  Value x = EmbedOp::create(builder, location, type(spec.hidden), tokens, table, APFloat(spec.embeddingScale), DeviceAttr());
  for (size_t layer = 0; layer < spec.layers.size(); ++layer)
    x = buildLayer(x, static_cast<int64_t>(layer));
  Value logits = buildHead(x);
  Value token = ArgmaxOp::create(builder, location, tokenType, logits, DeviceAttr());
  func::ReturnOp::create(builder, location, ValueRange{token, logits});
  return module;
}

} // namespace

llvm::Expected<OwningOpRef<ModuleOp>> buildStep(MLIRContext &mlirContext, const ModelSpec &spec, const Checkpoint &checkpoint, int64_t context) {
  return StepBuilder(mlirContext, spec, checkpoint, context).build();
}

} // namespace mcc
