// Joins linears that read the same value, so that the value is read once and one launch has more rows to share out.
//
//   %q = mcc.linear %x, %wq      ->   %y = mcc.linear %x, %wqkv
//   %k = mcc.linear %x, %wk           %q = mcc.slice %y at 0
//                                     %k = mcc.slice %y at 64
//
//   %g = mcc.linear %x, %wg      ->   %y = mcc.linear %x, %wgu gated activation silu
//   %u = mcc.linear %x, %wu
//   %y = mcc.gate silu %g, %u
//
// Gates go first: what is left with a common input are the projections of one attention. Weights join only where both
// have one format and no other user (a joined weight is stored once, in joined order).
#include "dialects/Mcc/IR/MccOps.h"
#include "dialects/Mcc/Transforms/Passes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace mcc::ir {
#define GEN_PASS_DEF_JOINPROJECTIONSPASS
#include "dialects/Mcc/Transforms/Passes.h.inc"

namespace {

// Returns whether `linear` is still input, weight and bias only, over a weight that nobody else reads.
bool isPlain(LinearOp linear) {
  return linear && !linear.getNormKind() && !linear.getResidual() && !linear.getGated() && linear.getActivation() == ActivationKind::None &&
         linear.getScale().isExactlyValue(1.0) &&
         linear.getWeight().hasOneUse() && linear.getWeight().getDefiningOp<WeightOp>();
}

// Returns whether the two may become one weight.
bool joinable(LinearOp a, LinearOp b) {
  auto left = a.getWeight().getDefiningOp<WeightOp>(), right = b.getWeight().getDefiningOp<WeightOp>();
  return left.getType().getFormat() == right.getType().getFormat() && !left.getInterleaved() && !right.getInterleaved() &&
         left.getOffset() == right.getOffset() && !left.getNegatedExp() && !right.getNegatedExp() && bool(a.getBias()) == bool(b.getBias());
}

// Returns a weight whose sources are those of `parts`, in order, of type [rows, ...].
Value joinWeights(OpBuilder &builder, ArrayRef<Value> parts, bool interleaved) {
  SmallVector<Attribute> sources;
  SmallVector<Location> locations;
  SmallVector<int64_t> shape;
  for (Value part : parts) {
    auto weight = part.getDefiningOp<WeightOp>();
    llvm::append_range(sources, weight.getSources());
    locations.push_back(weight.getLoc());
    if (shape.empty())
      llvm::append_range(shape, weight.getType().getShape());
    else
      shape[0] += weight.getType().getShape()[0];
  }
  auto first = parts.front().getDefiningOp<WeightOp>();
  auto type = WeightType::get(builder.getContext(), shape, first.getType().getFormat());
  return WeightOp::create(builder, builder.getFusedLoc(locations), type, builder.getArrayAttr(sources), interleaved, first.getOffset(), /*negatedExp=*/false, DeviceAttr());
}

struct JoinProjectionsPass : impl::JoinProjectionsPassBase<JoinProjectionsPass> {
  void runOnOperation() override {
    getOperation().walk([&](GateOp gate) { joinGate(gate); });
    joinByInput();
  }

  // Makes one gated linear of a gate over two linears of one input.
  void joinGate(GateOp gate) {
    auto left = gate.getGate().getDefiningOp<LinearOp>(), right = gate.getUp().getDefiningOp<LinearOp>();
    if (!isPlain(left) || !isPlain(right) || left == right || left.getInput() != right.getInput() || left.getType() != right.getType() ||
        !left->hasOneUse() || !right->hasOneUse() || !joinable(left, right))
      return;
    OpBuilder builder(gate);
    Value weight = joinWeights(builder, {left.getWeight(), right.getWeight()}, /*interleaved=*/true);
    Value bias = left.getBias() ? joinWeights(builder, {left.getBias(), right.getBias()}, /*interleaved=*/true) : Value();
    auto joined = LinearOp::create(builder, builder.getFusedLoc({left.getLoc(), right.getLoc()}), gate.getType(), left.getInput(), weight, bias);
    joined.setActivation(gate.getActivation());
    joined.setGated(true);
    gate.replaceAllUsesWith(joined.getResult());
    eraseAll({gate, left, right});
  }

  // Joins the remaining linears of each input that have one format.
  void joinByInput() {
    llvm::MapVector<Value, SmallVector<SmallVector<LinearOp>>> groups;
    getOperation().walk([&](LinearOp linear) {
      // An activation of its own is worth more as an epilogue than a wider launch.
      if (!isPlain(linear) || llvm::any_of(linear->getUsers(), llvm::IsaPred<ActivateOp>))
        return;
      SmallVector<SmallVector<LinearOp>> &runs = groups[linear.getInput()];
      auto run = llvm::find_if(runs, [&](ArrayRef<LinearOp> other) { return joinable(other.front(), linear); });
      if (run != runs.end())
        run->push_back(linear);
      else
        runs.push_back({linear});
    });
    for (auto &[input, runs] : groups)
      for (ArrayRef<LinearOp> run : runs)
        if (run.size() > 1)
          joinGroup(run);
  }

  void joinGroup(ArrayRef<LinearOp> group) {
    SmallVector<Value> weights, biases;
    SmallVector<Location> locations;
    int64_t total = 0;
    for (LinearOp linear : group) {
      weights.push_back(linear.getWeight());
      if (linear.getBias())
        biases.push_back(linear.getBias());
      locations.push_back(linear.getLoc());
      total += features(linear.getType());
    }
    LinearOp first = group.front();
    OpBuilder builder(first);
    Value weight = joinWeights(builder, weights, /*interleaved=*/false);
    Value bias = biases.empty() ? Value() : joinWeights(builder, biases, /*interleaved=*/false);
    auto joined = LinearOp::create(builder, builder.getFusedLoc(locations), activationsType(&getContext(), total), first.getInput(), weight, bias);
    int64_t column = 0;
    for (LinearOp linear : group) {
      builder.setInsertionPoint(linear);
      auto slice = SliceOp::create(builder, linear.getLoc(), linear.getType(), joined, column, DeviceAttr());
      column += features(linear.getType());
      linear.replaceAllUsesWith(slice.getResult());
      eraseAll({linear});
    }
  }

  // Erases `ops` and the weights that only they read.
  void eraseAll(ArrayRef<Operation *> ops) {
    SmallVector<Operation *> weights;
    for (Operation *op : ops) {
      for (Value operand : op->getOperands())
        if (auto weight = operand.getDefiningOp<WeightOp>())
          weights.push_back(weight);
      op->erase();
    }
    for (Operation *weight : weights)
      if (weight->use_empty())
        weight->erase();
  }
};

} // namespace
} // namespace mcc::ir
