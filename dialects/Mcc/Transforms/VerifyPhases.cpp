// The verifiers that close the phases mcc, fused and placed: each says what the next phase may rely on.
#include "dialects/Mcc/IR/MccOps.h"
#include "dialects/Mcc/Transforms/Passes.h"

using namespace mlir;

namespace mcc::ir {
#define GEN_PASS_DEF_VERIFYBUILTPASS
#define GEN_PASS_DEF_VERIFYPLACEDPASS
#define GEN_PASS_DEF_VERIFYFUSEDPASS
#include "dialects/Mcc/Transforms/Passes.h.inc"

namespace {

struct VerifyBuiltPass : impl::VerifyBuiltPassBase<VerifyBuiltPass> {
  void runOnOperation() override {
    Operation *end = getOperation().front().getTerminator();
    if (end->getNumOperands() != 2 || !isTokens(end->getOperand(0).getType()) || !isActivations(end->getOperand(1).getType())) {
      getOperation().emitOpError("is no step; it must return the greedy token and the logits");
      return signalPassFailure();
    }
    WalkResult result = getOperation().walk([](PlacedOpInterface op) {
      if (!isa<RopeCacheOp, LogitsOp>(op.getOperation()) && !op.getPlacement())
        return WalkResult::advance();
      op->emitOpError() << (op.getPlacement() ? "has a device before placement" : "is a fused form before fusion");
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

struct VerifyPlacedPass : impl::VerifyPlacedPassBase<VerifyPlacedPass> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk([](PlacedOpInterface op) {
      if (op.getPlacement())
        return WalkResult::advance();
      op->emitOpError("has no device after placement; run mcc-place");
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

struct VerifyFusedPass : impl::VerifyFusedPassBase<VerifyFusedPass> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk([](Operation *op) {
      if (!isa<RopeOp, CacheAppendOp, LastRowOp, ScaleLogitsOp, ArgmaxOp>(op))
        return WalkResult::advance();
      op->emitOpError("is left over after fusion; the kernels run it only as part of rope_cache or logits");
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
} // namespace mcc::ir
