// Joins the end of the step into one op, so that the argmax is taken while the head's rows are computed.
//
//   %r = mcc.last_row %x ; %n = mcc.norm %r ; %l = mcc.linear %n, %head ; %s = mcc.scale_logits %l ; %t = mcc.argmax %s
//     ->  %t, %s = mcc.logits %x, %head norm ... scale ...
#include "dialects/Mcc/IR/MccOps.h"
#include "dialects/Mcc/Transforms/Passes.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace mcc::ir {
#define GEN_PASS_DEF_FUSELOGITSPASS
#include "dialects/Mcc/Transforms/Passes.h.inc"

namespace {

struct FuseLogitsPass : impl::FuseLogitsPassBase<FuseLogitsPass> {
  void runOnOperation() override {
    getOperation().walk([&](ArgmaxOp argmax) { fuse(argmax); });
  }

  void fuse(ArgmaxOp argmax) {
    Value logits = argmax.getInput();
    auto scaling = logits.getDefiningOp<ScaleLogitsOp>();
    auto head = (scaling ? Value(scaling.getInput()) : logits).getDefiningOp<LinearOp>();
    if (!head || head.getResidual() || head.getGated() || !head.getScale().isExactlyValue(1.0) || head.getActivation() != ActivationKind::None)
      return;
    auto last = head.getInput().getDefiningOp<LastRowOp>();
    if (!last)
      return;
    OpBuilder builder(argmax);
    auto fused = LogitsOp::create(builder, head.getLoc(), argmax.getType(), logits.getType(), last.getInput(), head.getWeight(), head.getBias(),
                                  head.getNormWeight(), head.getNormBias(), head.getNormKindAttr(), head.getEpsAttr(),
                                  scaling ? scaling.getScaleAttr() : builder.getF64FloatAttr(1.0),
                                  scaling ? scaling.getSoftcapAttr() : builder.getF64FloatAttr(0.0), DeviceAttr());
    argmax.replaceAllUsesWith(fused.getToken());
    logits.replaceAllUsesWith(fused.getLogits());
    argmax.erase();
    if (scaling)
      scaling.erase();
    head.erase();
    if (last->use_empty())
      last.erase();
  }
};

} // namespace
} // namespace mcc::ir
