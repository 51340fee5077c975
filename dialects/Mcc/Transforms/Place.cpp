// Gives every op, weight and cache a device.
#include "dialects/Mcc/IR/MccOps.h"
#include "dialects/Mcc/Transforms/Passes.h"

using namespace mlir;

namespace mcc::ir {
#define GEN_PASS_DEF_PLACEPASS
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

} // namespace
} // namespace mcc::ir
