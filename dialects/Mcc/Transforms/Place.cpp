// Gives every op, weight and cache a device, and the verifiers that close the fused and placed phases.
#include "dialects/Mcc/IR/MccOps.h"
#include "dialects/Mcc/Transforms/Passes.h"

using namespace mlir;

namespace mcc::ir {
#define GEN_PASS_DEF_PLACEPASS
#define GEN_PASS_DEF_VERIFYPLACEDPASS
#define GEN_PASS_DEF_VERIFYFUSEDPASS
#include "dialects/Mcc/Transforms/Passes.h.inc"

namespace {

struct PlacePass : impl::PlacePassBase<PlacePass> {
  using PlacePassBase::PlacePassBase;

  void runOnOperation() override {
    std::optional<Device> wanted = symbolizeDevice(device);
    if (!wanted) {
      getOperation().emitError() << "unknown device '" << device << "'; known are cpu and gpu";
      return signalPassFailure();
    }
    getOperation().walk([&](PlacedOpInterface op) {
      if (!op.getPlacement())
        op.setPlacement(*wanted);
    });
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
