// The mixers with a state: Mamba, Mamba 2, LFM2's short convolution and the gated delta net.
//
//   mamba:      x, z = in(n); x = silu(conv(x)); dt, B, C = x_proj(x); out(scan(x, dt_proj(dt), B, C) * silu(z))
//   mamba2:     z, x, B, C, dt = in(n); x, B, C = silu(conv(x, B, C)); y = scan(x, dt, B, C); out(norm(y, z)), the norm gated by silu(z)
//   short conv: B, C, x = in(n); out(C * conv(B * x))
//   delta net:  q, k, v, z, b, a = in(n); q, k, v = silu(conv(q, k, v)); y = delta(q, k, v, b, a); out(norm(y) * silu(z))
#include "compiler/Build/StepBuilder.h"

using namespace mlir;

namespace mcc {

using namespace ir;

Value StepBuilder::state(int64_t layer, const std::string &name, ArrayRef<int64_t> shape) {
  std::string whole = "layers." + std::to_string(layer) + "." + name;
  return StateOp::create(builder, location, StateType::get(builder.getContext(), shape), builder.getStringAttr(whole), DeviceAttr());
}

Value StepBuilder::conv(Value x, const std::string &role, const std::string &name, int64_t layer, int64_t first, int64_t taps, bool bias,
                        Activation activation) {
  int64_t size = features(x.getType());
  auto part = [&](const std::string &stored, ArrayRef<int64_t> shape) {
    WeightSource source;
    source.tensor = spec.tensorName(stored, layer);
    source.whole = checkpoint.find(source.tensor)->shape[0] == size;
    source.first = first;
    source.rows = size;
    return weight({sourceOf(source, size)}, WeightType::get(builder.getContext(), shape, Format::F32), 0);
  };
  Value kernel = part(role, {size, taps}), offset = bias ? part(role + ".bias", {size}) : Value();
  Value history = taps > 1 ? state(layer, name, {taps - 1, size}) : Value();
  return ConvOp::create(builder, location, x.getType(), x, kernel, offset, history, static_cast<ActivationKind>(activation), DeviceAttr());
}

Value StepBuilder::buildMamba(Value n, const MambaSpec &mamba, int64_t layer) {
  int64_t inner = mamba.inner, depth = mamba.state;
  at(layer, "mamba.in");
  Value projected = linear(n, "mamba_in", layer, 2 * inner, mamba.bias);
  Value x = slice(projected, 0, inner), z = slice(projected, inner, inner);
  at(layer, "mamba.conv");
  x = conv(x, "mamba_conv", "conv", layer, 0, mamba.kernel, mamba.convBias, Activation::Silu);
  at(layer, "mamba.x");
  Value parameters = linear(x, "mamba_x", layer, mamba.timeRank + 2 * depth, false);
  Value b = slice(parameters, mamba.timeRank, depth), c = slice(parameters, mamba.timeRank + depth, depth);
  at(layer, "mamba.dt");
  Value time = linear(slice(parameters, 0, mamba.timeRank), "mamba_dt", layer, inner, true);
  at(layer, "mamba.scan");
  Value rates = floats("mamba_a_log", layer, {inner, depth}, /*negatedExp=*/true), skip = floats("mamba_d", layer, {inner});
  Value y = SelectiveScanOp::create(builder, location, x.getType(), x, time, b, c, rates, skip, state(layer, "scan", {depth, inner}), DeviceAttr());
  y = gate(Activation::Silu, z, y);
  at(layer, "mamba.out");
  return linear(y, "mamba_out", layer, spec.hidden, mamba.bias);
}

// The norm of a scan's result y and its gate z, in the order that the model has them.
Value StepBuilder::gatedNorm(Value y, Value z, const Mamba2Spec &mamba, int64_t layer) {
  auto normalise = [&] {
    Value gain = mamba.norm->hasWeight ? vector(spec.tensorName("mamba_norm", layer), mamba.inner, mamba.norm->weightOffset) : Value();
    Value bias = mamba.norm->hasBias ? vector(spec.tensorName("mamba_norm.bias", layer), mamba.inner) : Value();
    NormKind kind = mamba.norm->kind == NormSpec::Kind::Layer ? NormKind::Layer : NormKind::Rms;
    y = NormOp::create(builder, location, y.getType(), kind, y, gain, bias, APFloat(mamba.norm->eps), mamba.normGroups, mamba.normGroups > 1, DeviceAttr());
  };
  bool normed = mamba.norm && mamba.norm->kind != NormSpec::Kind::None;
  if (normed && mamba.normBeforeGate)
    normalise();
  y = gate(Activation::Silu, z, y);
  if (normed && !mamba.normBeforeGate)
    normalise();
  return y;
}

Value StepBuilder::buildMamba2(Value n, const Mamba2Spec &mamba, int64_t layer) {
  int64_t inner = mamba.inner, shared = mamba.groups * mamba.state;
  at(layer, "mamba.in");
  Value projected = linear(scale(n, mamba.inputScale), "mamba_in", layer, 2 * inner + 2 * shared + mamba.heads, mamba.inBias);
  auto part = [&](size_t index, int64_t column, int64_t size) {
    return scale(slice(projected, column, size), mamba.partScales.empty() ? 1 : mamba.partScales[index]);
  };
  Value z = part(0, 0, inner), time = part(4, 2 * inner + 2 * shared, mamba.heads);
  auto convolved = [&](Value x, const std::string &name, int64_t first) {
    at(layer, "mamba.conv");
    return conv(x, "mamba_conv", name, layer, first, mamba.kernel, mamba.convBias, Activation::Silu);
  };
  Value x, b, c;
  if (mamba.partScales.empty()) {
    Value mixed = convolved(slice(projected, inner, inner + 2 * shared), "conv", 0);
    x = slice(mixed, 0, inner), b = slice(mixed, inner, shared), c = slice(mixed, inner + shared, shared);
  } else { // each part has its factor, and so its own convolution
    x = convolved(part(1, inner, inner), "conv.x", 0);
    b = convolved(part(2, 2 * inner, shared), "conv.b", inner);
    c = convolved(part(3, 2 * inner + shared, shared), "conv.c", inner + shared);
  }
  at(layer, "mamba.scan");
  Value rates = floats("mamba_a_log", layer, {mamba.heads}, /*negatedExp=*/true);
  Value timeBias = floats("mamba_dt_bias", layer, {mamba.heads}), skip = floats("mamba_d", layer, {mamba.heads});
  FloatAttr timeMax = mamba.timeMax ? builder.getF64FloatAttr(*mamba.timeMax) : FloatAttr();
  Value y = StateScanOp::create(builder, location, x.getType(), x, time, b, c, rates, timeBias, skip,
                                state(layer, "scan", {mamba.heads, mamba.state, mamba.headDim}), builder.getI64IntegerAttr(mamba.groups),
                                builder.getF64FloatAttr(mamba.timeMin), timeMax, DeviceAttr());
  y = gatedNorm(y, z, mamba, layer);
  at(layer, "mamba.out");
  return scale(linear(y, "mamba_out", layer, spec.hidden, mamba.outBias), mamba.outputScale);
}

Value StepBuilder::buildShortConv(Value n, const ShortConvSpec &shortConv, int64_t layer) {
  int64_t size = spec.hidden;
  at(layer, "conv.in");
  Value projected = linear(n, "conv_in", layer, 3 * size, shortConv.bias);
  Value b = slice(projected, 0, size), c = slice(projected, size, size), x = slice(projected, 2 * size, size);
  at(layer, "conv");
  x = conv(gate(Activation::None, b, x), "conv", "conv", layer, 0, shortConv.kernel, shortConv.bias, Activation::None);
  x = gate(Activation::None, c, x);
  at(layer, "conv.out");
  return linear(x, "conv_out", layer, size, shortConv.bias);
}

Value StepBuilder::joinedLinear(Value x, ArrayRef<const char *> roles, int64_t layer, int64_t rows) {
  SmallVector<Attribute> sources;
  Format format = Format::F32;
  for (const char *role : roles) {
    WeightSource source = weightSource(spec, role, layer);
    format = checkpoint.find(source.tensor)->format;
    sources.push_back(sourceOf(source, source.rows * source.groups));
  }
  Value matrix = weight(sources, WeightType::get(builder.getContext(), {rows, features(x.getType())}, format), 0);
  return LinearOp::create(builder, location, type(rows), x, matrix, Value());
}

Value StepBuilder::buildDeltaNet(Value n, const DeltaNetSpec &delta, int64_t layer) {
  int64_t keys = delta.keyHeads * delta.keyDim, values = delta.valueHeads * delta.valueDim;
  at(layer, "delta.in");
  Value qkv = joinedLinear(n, {"delta_q", "delta_k", "delta_v"}, layer, 2 * keys + values);
  Value z = linear(n, "delta_z", layer, values, false);
  Value beta = linear(n, "delta_b", layer, delta.valueHeads, false), decay = linear(n, "delta_a", layer, delta.valueHeads, false);
  at(layer, "delta.conv");
  qkv = conv(qkv, "delta_conv", "conv", layer, 0, delta.kernel, false, Activation::Silu);
  at(layer, "delta.scan");
  Value rates = floats("delta_a_log", layer, {delta.valueHeads}, /*negatedExp=*/true), decayBias = floats("delta_dt_bias", layer, {delta.valueHeads});
  Value y = DeltaScanOp::create(builder, location, type(values), slice(qkv, 0, keys), slice(qkv, keys, keys), slice(qkv, 2 * keys, values), beta, decay,
                                rates, decayBias, state(layer, "scan", {delta.valueHeads, delta.keyDim, delta.valueDim}), delta.keyHeads, DeviceAttr());
  Value gain = delta.norm.hasWeight ? vector(spec.tensorName("delta_norm", layer), delta.valueDim, delta.norm.weightOffset) : Value();
  y = NormOp::create(builder, location, y.getType(), NormKind::Rms, y, gain, Value(), APFloat(delta.norm.eps), delta.valueHeads, false, DeviceAttr());
  y = gate(Activation::Silu, z, y);
  at(layer, "delta.out");
  return linear(y, "delta_out", layer, spec.hidden, false);
}

} // namespace mcc
