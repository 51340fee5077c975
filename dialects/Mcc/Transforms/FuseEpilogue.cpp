// Moves element-wise work after a linear into its epilogue.
//
//   %y = mcc.activate gelu_tanh %l   ->  mcc.linear ... activation gelu_tanh
//   %y = mcc.scale %l by 0.5         ->  mcc.linear ... scale 0.5
//   %y = mcc.add %l, %r              ->  mcc.linear ... residual %r
//
// The epilogue applies bias, activation or gate, scale, then residual; so a residual ends the chain.
#include "dialects/Mcc/IR/MccOps.h"
#include "dialects/Mcc/Transforms/Passes.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace mcc::ir {
#define GEN_PASS_DEF_FUSEEPILOGUEPASS
#include "dialects/Mcc/Transforms/Passes.h.inc"

namespace {

// Returns the linear that made `value` for this user alone and whose epilogue has room, or null.
LinearOp openLinear(Value value) {
  auto linear = value.getDefiningOp<LinearOp>();
  return linear && linear->hasOneUse() && !linear.getResidual() ? linear : LinearOp();
}

struct FuseEpiloguePass : impl::FuseEpiloguePassBase<FuseEpiloguePass> {
  void runOnOperation() override {
    getOperation().walk([&](ActivateOp activate) {
      LinearOp linear = openLinear(activate.getInput());
      if (!linear || linear.getGated() || linear.getActivation() != ActivationKind::None || !linear.getScale().isExactlyValue(1.0))
        return;
      linear.setActivation(activate.getActivation());
      activate.replaceAllUsesWith(linear.getResult());
      activate.erase();
    });
    getOperation().walk([&](ScaleOp scale) {
      LinearOp linear = openLinear(scale.getInput());
      if (!linear)
        return;
      linear.setScaleAttr(FloatAttr::get(scale.getFactorAttr().getType(), linear.getScale() * scale.getFactor()));
      scale.replaceAllUsesWith(linear.getResult());
      scale.erase();
    });
    getOperation().walk([&](AddOp add) {
      if (!fuseResidual(add, add.getLhs(), add.getRhs()))
        fuseResidual(add, add.getRhs(), add.getLhs());
    });
  }

  // Makes `residual` the last term of the linear behind `value`; the linear moves down to where both are known.
  static bool fuseResidual(AddOp add, Value value, Value residual) {
    LinearOp linear = openLinear(value);
    if (!linear || residual == value)
      return false;
    linear->moveBefore(add);
    linear.getResidualMutable().assign(residual);
    add.replaceAllUsesWith(linear.getResult());
    add.erase();
    return true;
  }
};

} // namespace
} // namespace mcc::ir
