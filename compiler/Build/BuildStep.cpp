// Builds the unfused step of a decoder, block by block:
//
//   x = embed(tokens) [+ positions] [norm]
//   per layer:  a = mixer(norm(x)); m = mlp(norm(x + a)); x = x + a + m      (serial)
//               a = mixer(norm(x)); m = mlp(norm(x)); x = x + a + m          (parallel)
//               mixer: attention, a recurrent one (RecurrentMixers.cpp), or the sum of several
//               attention: q, k, v = linear(n); norms and rotation of q, k; append k, v; linear(attend(q))
//   logits = linear(norm(last row of x)); token = argmax(logits)
//
// Every op's location names its place in the model ("layers.3.mlp.down"), so that messages and tables can. Nothing is
// fused or reordered here; passes do that.
#include "compiler/Build/BuildStep.h"

#include "compiler/Build/AlibiSlopes.h"
#include "compiler/Build/RopeFrequencies.h"
#include "compiler/Build/StepBuilder.h"
#include "compiler/Support/Error.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace mcc {

using namespace ir;

void StepBuilder::at(int64_t layer, const std::string &part) {
  std::string name = layer < 0 ? part : "layers." + std::to_string(layer) + "." + part;
  location = NameLoc::get(builder.getStringAttr(name));
}

Value StepBuilder::weight(ArrayRef<Attribute> sources, WeightType type, double offset, bool negatedExp, bool interleaved) {
  ArrayAttr list = builder.getArrayAttr(sources);
  Value &value = weights[builder.getArrayAttr({list, TypeAttr::get(type), builder.getBoolAttr(negatedExp), builder.getBoolAttr(interleaved)})];
  if (!value)
    value = WeightOp::create(builder, location, type, list, interleaved, APFloat(offset), negatedExp, DeviceAttr());
  return value;
}

Attribute StepBuilder::sourceOf(const WeightSource &source, int64_t rows) {
  StringAttr tensor = builder.getStringAttr(source.tensor);
  if (source.whole && !source.transposed && source.slab < 0)
    return tensor;
  return SourceAttr::get(builder.getContext(), tensor, source.first, source.whole ? rows : source.rows, source.stride,
                         source.whole ? 1 : source.groups, source.transposed, source.slab);
}

Value StepBuilder::roleWeight(const std::string &role, int64_t layer, ArrayRef<int64_t> shape) {
  WeightSource source = weightSource(spec, role, layer);
  Format format = shape.size() == 1 ? Format::F32 : checkpoint.find(source.tensor)->format;
  return weight({sourceOf(source, shape[0])}, WeightType::get(builder.getContext(), shape, format), 0);
}

Value StepBuilder::norm(Value x, const NormSpec &norm, const std::string &role, int64_t layer) {
  if (norm.kind == NormSpec::Kind::None)
    return x;
  int64_t size = features(x.getType());
  Value gain = norm.hasWeight ? vector(spec.tensorName(role, layer), size, norm.weightOffset) : Value();
  Value bias = norm.hasBias ? vector(spec.tensorName(role + ".bias", layer), size) : Value();
  NormKind kind = norm.kind == NormSpec::Kind::Rms ? NormKind::Rms : NormKind::Layer;
  return NormOp::create(builder, location, x.getType(), kind, x, gain, bias, APFloat(norm.eps), 1, false, DeviceAttr());
}

// The norm of q or k, over what its scope says.
Value StepBuilder::headNorm(Value x, const AttentionSpec &attention, const std::string &role, int64_t layer, int64_t heads) {
  using Scope = AttentionSpec::NormScope;
  const NormSpec &norm = *attention.qkNorm;
  if (attention.qkNormScope == Scope::All)
    return this->norm(x, norm, role, layer);
  bool own = attention.qkNormScope != Scope::Head;
  int64_t size = own ? heads * attention.headDim : attention.headDim;
  auto gainOf = [&](const std::string &name, double offset) -> Value {
    SmallVector<Attribute> sources;
    if (attention.qkNormScope == Scope::HeadOwnTensors)
      for (int64_t head = 0; head < heads; ++head)
        sources.push_back(builder.getStringAttr(spec.tensorName(name, layer, head)));
    else
      sources.push_back(builder.getStringAttr(spec.tensorName(name, layer)));
    return weight(sources, WeightType::get(builder.getContext(), {size}, Format::F32), offset);
  };
  Value gain = norm.hasWeight ? gainOf(role, norm.weightOffset) : Value();
  Value bias = norm.hasBias ? gainOf(role + ".bias", 0) : Value();
  NormKind kind = norm.kind == NormSpec::Kind::Rms ? NormKind::Rms : NormKind::Layer;
  return NormOp::create(builder, location, x.getType(), kind, x, gain, bias, APFloat(norm.eps), heads, own, DeviceAttr());
}

Value StepBuilder::linear(Value x, const std::string &role, int64_t layer, int64_t rows, bool bias) {
  Value weight = roleWeight(role, layer, {rows, features(x.getType())});
  Value offset = bias ? roleWeight(role + ".bias", layer, {rows}) : Value();
  return LinearOp::create(builder, location, type(rows), x, weight, offset);
}

Value StepBuilder::scale(Value x, double factor) {
  return factor == 1 ? x : ScaleOp::create(builder, location, x.getType(), x, APFloat(factor), DeviceAttr()).getResult();
}

// The activation whose four parameters are weights of the layer, each a tensor of one element.
Value StepBuilder::xielu(Value x, int64_t layer) {
  SmallVector<Attribute> sources;
  for (const char *role : {"activation_alpha_p", "activation_alpha_n", "activation_beta", "activation_eps"})
    sources.push_back(builder.getStringAttr(spec.tensorName(role, layer)));
  Value parameters = weight(sources, WeightType::get(builder.getContext(), {4}, Format::F32), 0);
  return XieluOp::create(builder, location, x.getType(), x, parameters, DeviceAttr());
}

Value StepBuilder::rotary(const RopeSpec &rope) {
  for (auto &[known, value] : rotaries)
    if (known == rope)
      return value;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfterValue(tokens);
  RopeFrequencies made = ropeFrequencies(rope);
  Value value = RotaryOp::create(builder, NameLoc::get(builder.getStringAttr("rotary")), type(rope.dims), tokens,
                                 builder.getDenseF32ArrayAttr(made.frequencies), builder.getF64FloatAttr(made.factor),
                                 builder.getI64IntegerAttr(made.original), DeviceAttr());
  rotaries.push_back({rope, value});
  return value;
}

Value StepBuilder::slice(Value x, int64_t column, int64_t size) {
  return SliceOp::create(builder, location, type(size), x, column, DeviceAttr());
}

Value StepBuilder::gate(Activation activation, Value gate, Value x) {
  return GateOp::create(builder, location, x.getType(), static_cast<ActivationKind>(activation), gate, x, DeviceAttr());
}

// One of q, k, v: projected and clamped.
Value StepBuilder::projection(Value n, const AttentionSpec &attention, const std::string &role, int64_t layer, int64_t heads) {
  at(layer, "attention." + role);
  Value x = linear(n, role, layer, heads * attention.headDim, attention.qkvBias);
  if (attention.qkvClip != 0)
    x = ClampOp::create(builder, location, x.getType(), x, APFloat(attention.qkvClip), DeviceAttr());
  return x;
}

// Writes k and v and attends with q.
Value StepBuilder::attend(Value q, Value k, Value v, const AttentionSpec &attention, int64_t layer) {
  auto cacheType = CacheType::get(builder.getContext(), attention.kvHeads, context, attention.headDim);
  std::string prefix = "layers." + std::to_string(layer);
  Value keys = CacheOp::create(builder, location, cacheType, builder.getStringAttr(prefix + ".k"), DeviceAttr());
  Value values = CacheOp::create(builder, location, cacheType, builder.getStringAttr(prefix + ".v"), DeviceAttr());
  CacheAppendOp::create(builder, location, k, keys, DeviceAttr());
  CacheAppendOp::create(builder, location, v, values, DeviceAttr());
  Value sinks = attention.sinks ? vector(spec.tensorName("sinks", layer), attention.heads) : Value();
  DenseF32ArrayAttr slopes;
  if (attention.alibi)
    slopes = builder.getDenseF32ArrayAttr(alibiSlopes(*attention.alibi, attention.heads, attention.scale));
  return AttentionOp::create(builder, location, q.getType(), q, keys, values, sinks, attention.heads, APFloat(attention.scale), attention.window,
                             attention.chunk, APFloat(attention.softcap), slopes, attention.alibi && attention.alibi->rounded, DeviceAttr());
}

Value StepBuilder::buildAttention(Value n, const BlockSpec &block, int64_t layer) {
  const AttentionSpec &attention = block.attention;
  at(layer, "attention");
  n = scale(n, attention.inputScale);
  Value q = projection(n, attention, "q", layer, attention.heads);
  Value k = projection(n, attention, "k", layer, attention.kvHeads);
  Value v = projection(n, attention, "v", layer, attention.kvHeads);
  at(layer, "attention");
  auto normalise = [&] {
    q = headNorm(q, attention, "q_norm", layer, attention.heads);
    k = headNorm(k, attention, "k_norm", layer, attention.kvHeads);
  };
  if (attention.qkNorm && !attention.qkNormAfterRope)
    normalise();
  if (attention.rope) {
    RopePairing pairing = attention.rope->pairing == RopeSpec::Pairing::Half ? RopePairing::Half : RopePairing::Adjacent;
    Value cosSin = rotary(*attention.rope);
    q = RopeOp::create(builder, location, q.getType(), q, cosSin, attention.heads, pairing, DeviceAttr());
    k = RopeOp::create(builder, location, k.getType(), k, cosSin, attention.kvHeads, pairing, DeviceAttr());
  }
  if (attention.qkNorm && attention.qkNormAfterRope)
    normalise();
  Value y = attend(q, k, v, attention, layer);
  if (attention.outputGate) {
    at(layer, "attention.gate");
    y = gate(Activation::Sigmoid, linear(n, "q_gate", layer, attention.heads * attention.headDim, attention.qkvBias), y);
  }
  if (attention.innerNorm)
    y = norm(y, *attention.innerNorm, "attention_inner_norm", layer);
  at(layer, "attention.o");
  return scale(linear(y, "o", layer, spec.hidden, attention.outBias), attention.outputScale);
}

Value StepBuilder::buildMixers(Value n, const BlockSpec &block, int64_t layer) {
  SmallVector<Value> results;
  if (block.attention.heads != 0)
    results.push_back(block.attention.latent ? buildLatentAttention(n, block.attention, layer) : buildAttention(n, block, layer));
  if (block.mamba)
    results.push_back(buildMamba(n, *block.mamba, layer));
  if (block.mamba2)
    results.push_back(buildMamba2(n, *block.mamba2, layer));
  if (block.shortConv)
    results.push_back(buildShortConv(n, *block.shortConv, layer));
  if (block.deltaNet)
    results.push_back(buildDeltaNet(n, *block.deltaNet, layer));
  Value y = results.front();
  for (Value other : ArrayRef(results).drop_front())
    y = add(y, other);
  if (block.attentionPostNorm)
    y = norm(y, *block.attentionPostNorm, "attention_post_norm", layer);
  return scale(y, block.residualScale);
}

// The feed-forward network of `mlp`, whose roles begin with `prefix`.
Value StepBuilder::buildFeedForward(Value n, const MlpSpec &mlp, const std::string &prefix, const std::string &place, int64_t layer) {
  Value inner;
  if (mlp.gated) {
    at(layer, place + ".gate");
    Value gated = scale(linear(n, prefix + "gate", layer, mlp.width, mlp.bias), mlp.gateScale);
    at(layer, place + ".up");
    inner = gate(mlp.activation, gated, linear(n, prefix + "up", layer, mlp.width, mlp.bias));
  } else {
    at(layer, place + ".up");
    Value up = linear(n, prefix + "up", layer, mlp.width, mlp.bias);
    inner = mlp.activation == Activation::Xielu
                ? xielu(up, layer)
                : ActivateOp::create(builder, location, up.getType(), static_cast<ActivationKind>(mlp.activation), up, DeviceAttr()).getResult();
  }
  if (mlp.innerNorm)
    inner = norm(inner, *mlp.innerNorm, "mlp_inner_norm", layer);
  at(layer, place + ".down");
  return scale(linear(inner, prefix + "down", layer, spec.hidden, mlp.bias), mlp.outputScale);
}

Value StepBuilder::buildMlp(Value n, const BlockSpec &block, int64_t layer) {
  Value y = block.moe ? buildExperts(n, *block.moe, layer) : buildFeedForward(n, block.mlp, "", "mlp", layer);
  if (block.mlpPostNorm)
    y = norm(y, *block.mlpPostNorm, "mlp_post_norm", layer);
  return scale(y, block.residualScale);
}

Value StepBuilder::buildLayer(Value x, int64_t layer) {
  const BlockSpec &block = spec.block(layer);
  at(layer, "attention.norm");
  Value n = norm(x, block.attentionNorm, "attention_norm", layer);
  Value mixed = buildMixers(n, block, layer);
  if (block.mlp.width == 0 && !block.moe)
    return add(x, mixed);
  if (block.residual == Residual::Serial) {
    x = add(x, mixed);
    at(layer, "mlp.norm");
    Value fed = buildMlp(norm(x, block.mlpNorm, "mlp_norm", layer), block, layer);
    return add(x, fed);
  }
  at(layer, "mlp.norm");
  if (block.residual == Residual::Parallel)
    n = norm(x, block.mlpNorm, "mlp_norm", layer);
  Value fed = buildMlp(n, block, layer);
  return add(add(x, mixed), fed);
}

Value StepBuilder::buildInput() {
  at(-1, "embedding");
  Value table = matrix(spec.tensorName("embedding"), spec.vocabulary, spec.hidden);
  Value x = EmbedOp::create(builder, location, type(spec.hidden), tokens, table, APFloat(spec.embeddingScale), DeviceAttr());
  if (spec.learnedPositions != 0) {
    at(-1, "position_embedding");
    Value positions = matrix(spec.tensorName("position_embedding"), spec.learnedPositions, spec.hidden);
    x = PositionsOp::create(builder, location, x.getType(), x, positions, spec.positionOffset, DeviceAttr());
  }
  if (spec.embeddingNorm)
    x = norm(x, *spec.embeddingNorm, "embedding_norm", -1);
  return x;
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
  step->setAttr(contextAttrName, builder.getI64IntegerAttr(context));
  Block *entry = step.addEntryBlock();
  tokens = entry->getArgument(0);
  builder.setInsertionPointToStart(entry);
  Value x = buildInput();
  for (size_t layer = 0; layer < spec.layers.size(); ++layer)
    x = buildLayer(x, static_cast<int64_t>(layer));
  Value logits = buildHead(x);
  Value token = ArgmaxOp::create(builder, location, tokenType, logits, DeviceAttr());
  func::ReturnOp::create(builder, location, ValueRange{token, logits});
  return module;
}

llvm::Expected<OwningOpRef<ModuleOp>> buildStep(MLIRContext &mlirContext, const ModelSpec &spec, const Checkpoint &checkpoint, int64_t context) {
  return StepBuilder(mlirContext, spec, checkpoint, context).build();
}

} // namespace mcc
