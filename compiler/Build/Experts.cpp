// Mixtures of experts: a router's choice, the chosen experts' feed-forward networks, their weighted sum, and a shared expert.
//
// The experts' weights are one stack, so that the kernel finds an expert by its number: all gates, then all ups, interleaved.
#include "compiler/Build/StepBuilder.h"

using namespace mlir;

namespace mcc {

using namespace ir;

Value StepBuilder::route(Value n, const MoeSpec &moe, int64_t layer) {
  at(layer, "moe.router");
  Value logits = linear(n, "router", layer, moe.experts, moe.routerBias);
  at(layer, "moe.route");
  Value bias = moe.selectionBias ? vector(spec.tensorName("router_selection_bias", layer), moe.experts) : Value();
  auto scoring = static_cast<Scoring>(moe.scoring);
  auto groupScore = moe.groupScore == MoeSpec::GroupScore::Max ? GroupScore::Max : GroupScore::TopTwoSum;
  return RouteOp::create(builder, location, type(2 * moe.expertsPerToken), scoring, logits, bias, moe.expertsPerToken, moe.normalize, moe.groups, moe.groupsPerToken,
                         groupScore, APFloat(moe.scale), DeviceAttr());
}

Value StepBuilder::expertLinear(Value x, Value picks, ArrayRef<const char *> roles, const MoeSpec &moe, int64_t layer, int64_t rows) {
  bool gated = roles.size() == 2;
  int64_t parts = static_cast<int64_t>(roles.size()), stacked = parts * moe.experts * rows;
  int64_t in = features(x.getType()), cols = roles.back() == StringRef("expert_down") ? moe.expert.width : in;
  auto stack = [&](const std::string &suffix, ArrayRef<int64_t> shape) -> Value {
    SmallVector<Attribute> sources;
    Format format = Format::F32;
    for (const char *role : roles)
      for (int64_t expert = 0; expert < moe.experts; ++expert) {
        WeightSource source = weightSource(spec, role + suffix, layer, expert);
        sources.push_back(sourceOf(source, rows));
        format = shape.size() == 1 ? Format::F32 : checkpoint.find(source.tensor)->format;
      }
    return weight(sources, WeightType::get(builder.getContext(), shape, format), 0, false, gated);
  };
  Value weights = stack("", {stacked, cols}), bias = moe.expert.bias ? stack(".bias", {stacked}) : Value();
  auto activation = gated || roles.back() != StringRef("expert_down") ? static_cast<ActivationKind>(moe.expert.activation) : ActivationKind::None;
  return ExpertsOp::create(builder, location, type(moe.expertsPerToken * rows), x, picks, weights, bias, moe.experts, activation, gated,
                           APFloat(gated ? moe.expert.clamp : 0.0), APFloat(gated ? moe.expert.upOffset : 0.0), DeviceAttr());
}

Value StepBuilder::buildExperts(Value n, const MoeSpec &moe, int64_t layer) {
  Value picks = route(n, moe, layer);
  at(layer, "moe.up");
  Value inner = moe.expert.gated ? expertLinear(n, picks, {"expert_gate", "expert_up"}, moe, layer, moe.expert.width)
                                 : expertLinear(n, picks, {"expert_up"}, moe, layer, moe.expert.width);
  at(layer, "moe.down");
  Value outer = expertLinear(inner, picks, {"expert_down"}, moe, layer, spec.hidden);
  at(layer, "moe.combine");
  Value y = CombineOp::create(builder, location, type(spec.hidden), picks, outer, moe.expertsPerToken, DeviceAttr());
  if (moe.shared.width == 0)
    return y;
  Value shared = buildFeedForward(n, moe.shared, "shared_", "moe.shared", layer);
  if (moe.sharedGate) {
    at(layer, "moe.shared.router");
    Value logit = linear(n, "shared_router", layer, 1, false);
    Value open = ActivateOp::create(builder, location, logit.getType(), ActivationKind::Sigmoid, logit, DeviceAttr());
    shared = CombineOp::create(builder, location, type(spec.hidden), open, shared, 1, DeviceAttr());
  }
  at(layer, "moe.add");
  return add(y, shared);
}

} // namespace mcc
