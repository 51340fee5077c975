// Moves a norm into the linears that are its only users.
//
//   %n = mcc.norm rms %x weight(%w) eps 1e-5   ->   %y = mcc.linear %x, %m norm rms weight %w eps 1e-5
//   %y = mcc.linear %n, %m
//
// A norm costs less than the barrier it would need: with few tokens every worker normalises for itself. Several users are
// taken together or not at all, so that the norm disappears.
#include "dialects/Mcc/IR/MccOps.h"
#include "dialects/Mcc/Transforms/Passes.h"

using namespace mlir;

namespace mcc::ir {
#define GEN_PASS_DEF_FUSENORMPASS
#include "dialects/Mcc/Transforms/Passes.h.inc"

namespace {

struct FuseNormPass : impl::FuseNormPassBase<FuseNormPass> {
  void runOnOperation() override {
    SmallVector<NormOp> norms;
    getOperation().walk([&](NormOp norm) { norms.push_back(norm); });
    for (NormOp norm : norms)
      if (takenByAll(norm))
        fuse(norm);
  }

  // Returns whether every user is a linear that reads the norm as its input and has no norm yet.
  static bool takenByAll(NormOp norm) {
    return norm.getGroups() == 1 && !norm->use_empty() && llvm::all_of(norm->getUses(), [](OpOperand &use) {
      auto linear = dyn_cast<LinearOp>(use.getOwner());
      return linear && use.getOperandNumber() == 0 && !linear.getNormKind();
    });
  }

  void fuse(NormOp norm) {
    for (Operation *user : llvm::make_early_inc_range(norm->getUsers())) {
      auto linear = cast<LinearOp>(user);
      linear.getInputMutable().assign(norm.getInput());
      if (norm.getWeight())
        linear.getNormWeightMutable().assign(norm.getWeight());
      if (norm.getBias())
        linear.getNormBiasMutable().assign(norm.getBias());
      linear.setNormKind(norm.getKind());
      linear.setEps(norm.getEps());
    }
    norm.erase();
  }
};

} // namespace
} // namespace mcc::ir
