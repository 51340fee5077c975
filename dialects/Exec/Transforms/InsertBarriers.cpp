// Puts barriers between dependent launches.
//
// Workers run the step on their own; a launch's outputs are complete for all only after a barrier. So a launch needs one
// before it if, since the last barrier, something wrote bytes that it touches, or read bytes that it writes.
#include "dialects/Exec/Transforms/Passes.h"

#include "dialects/Exec/IR/Address.h"
#include "kernels/KernelTable.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace mcc::exec {
#define GEN_PASS_DEF_INSERTBARRIERSPASS
#include "dialects/Exec/Transforms/Passes.h.inc"

namespace {

struct Access {
  Address address;
  bool written;

  bool conflicts(const Access &other) const {
    return (written || other.written) && address.space == other.address.space && address.offset < other.address.offset + other.address.bytes &&
           other.address.offset < address.offset + address.bytes;
  }
};

SmallVector<Access> accessesOf(LaunchOp launch) {
  const KernelInfo *kernel = findKernel(launch.getKernel());
  SmallVector<Access> accesses;
  for (auto [pointer, buffer] : llvm::zip(launch.getBuffers(), kernel->buffers)) {
    Address address = addressOf(pointer);
    if (address.space == Space::Arena || address.space == Space::Cache)
      accesses.push_back({address, buffer.written});
  }
  return accesses;
}

struct InsertBarriersPass : impl::InsertBarriersPassBase<InsertBarriersPass> {
  void runOnOperation() override {
    SmallVector<Access> open;
    for (LaunchOp launch : llvm::make_early_inc_range(getOperation().getBody().getOps<LaunchOp>())) {
      SmallVector<Access> accesses = accessesOf(launch);
      bool depends = llvm::any_of(accesses, [&](const Access &access) {
        return llvm::any_of(open, [&](const Access &earlier) { return access.conflicts(earlier); });
      });
      if (depends) {
        OpBuilder builder(launch);
        BarrierOp::create(builder, launch.getLoc());
        open.clear();
      }
      llvm::append_range(open, accesses);
    }
  }
};

} // namespace
} // namespace mcc::exec
