// Follows views to the memory they are of. See Address.h.
#include "dialects/Exec/IR/Address.h"

using namespace mlir;

namespace mcc::exec {

Address addressOf(Value pointer) {
  Operation *op = pointer.getDefiningOp();
  if (auto view = dyn_cast<ViewOp>(op)) {
    Address base = addressOf(view.getBase());
    return {base.space, base.offset + static_cast<int64_t>(view.getOffset()), base.bytes - static_cast<int64_t>(view.getOffset())};
  }
  Space space = cast<PointerType>(pointer.getType()).getSpace();
  if (isa<NoneOp>(op))
    return {space, 0, 0};
  auto address = op->getAttrOfType<IntegerAttr>("address");
  return {space, address ? address.getInt() : 0, op->getAttrOfType<IntegerAttr>("bytes").getInt()};
}

} // namespace mcc::exec
