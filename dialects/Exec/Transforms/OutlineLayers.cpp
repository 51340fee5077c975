// Rolls identical layers into exec.repeat.
//
//   launch A(%w0) ; barrier ; launch B(%k0)        exec.repeat 2 addresses [w0, k0, w1, k1] {
//   launch A(%w1) ; barrier ; launch B(%k1)   ->   ^bb0(%w: weights, %k: cache): launch A(%w) ; barrier ; launch B(%k) }
//
// Each launch or barrier gets a number that is equal for equal kernel, constants and memories. A repeat of
// period p is a stretch where number i equals number i + p; the stretch that saves most is taken (smaller p on ties), then
// what is left and right of it is searched in turn. Quadratic in launches, which are a dozen a layer.
#include "dialects/Exec/Transforms/Passes.h"

#include "dialects/Exec/IR/Address.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace mcc::exec {
#define GEN_PASS_DEF_OUTLINELAYERSPASS
#include "dialects/Exec/Transforms/Passes.h.inc"

namespace {

// A stretch of `count` times `period` ops from `start`.
struct Repeat {
  size_t start = 0, period = 0, count = 1;
  size_t saved() const { return (count - 1) * period; }
};

Repeat longestRepeat(ArrayRef<unsigned> keys) {
  Repeat best;
  for (size_t period = 1; period <= keys.size() / 2; ++period) {
    size_t run = 0;
    for (size_t i = 0; i + period <= keys.size(); ++i) {
      if (i + period < keys.size() && keys[i] == keys[i + period]) {
        ++run;
        continue;
      }
      Repeat found{i - run, period, run / period + 1};
      if (found.saved() > best.saved())
        best = found;
      run = 0;
    }
  }
  return best;
}

struct OutlineLayersPass : impl::OutlineLayersPassBase<OutlineLayersPass> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    for (Operation &op : getOperation().getBody().front())
      if (isa<LaunchOp, BarrierOp>(op))
        ops.push_back(&op);
    outline(ops);
  }

  // Rolls the best repeat of `ops`, then looks at both sides.
  void outline(ArrayRef<Operation *> ops) {
    Repeat repeat = longestRepeat(keysOf(ops));
    if (repeat.count < 2 || repeat.saved() < 4)
      return;
    size_t length = repeat.period * repeat.count;
    outline(ops.take_front(repeat.start));
    outline(ops.drop_front(repeat.start + length));
    roll(ops.slice(repeat.start, length), repeat.period);
  }

  // Returns what a body must say of an op. Its code is for the CPU wherever a launch is placed, so not the device.
  static Attribute attributesOf(Operation *op) {
    NamedAttrList attributes(op->getAttrDictionary());
    if (auto launch = dyn_cast<LaunchOp>(op))
      attributes.erase(launch.getDeviceAttrName());
    return attributes.getDictionary(op->getContext());
  }

  // Numbers the ops so that equal numbers mean: one body can stand for both.
  static SmallVector<unsigned> keysOf(ArrayRef<Operation *> ops) {
    llvm::MapVector<Attribute, unsigned> numbers;
    return llvm::map_to_vector(ops, [&](Operation *op) {
      SmallVector<Attribute> parts{op->getName().getIdentifier(), attributesOf(op)};
      for (Type type : op->getOperandTypes())
        parts.push_back(TypeAttr::get(type));
      return numbers.insert({ArrayAttr::get(op->getContext(), parts), numbers.size()}).first->second;
    });
  }

  // Replaces `ops`, whole iterations of `period` ops, by one exec.repeat.
  static void roll(ArrayRef<Operation *> ops, size_t period) {
    size_t count = ops.size() / period;
    OpBuilder builder(ops.front());
    // Operands that differ between iterations, by their addresses in all of them: one argument each.
    llvm::MapVector<Attribute, std::pair<Type, SmallVector<int64_t>>> varying;
    llvm::DenseMap<OpOperand *, Attribute> argumentOf;
    for (size_t i = 0; i < period; ++i)
      for (OpOperand &operand : ops[i]->getOpOperands()) {
        SmallVector<int64_t> offsets;
        for (size_t n = 0; n < count; ++n)
          offsets.push_back(addressOf(ops[n * period + i]->getOperand(operand.getOperandNumber())).offset);
        if (llvm::all_equal(offsets))
          continue;
        Attribute key = builder.getArrayAttr({builder.getDenseI64ArrayAttr(offsets), TypeAttr::get(operand.get().getType())});
        varying.insert({key, {operand.get().getType(), offsets}});
        argumentOf[&operand] = key;
      }
    SmallVector<int64_t> addresses;
    for (size_t n = 0; n < count; ++n)
      for (auto &entry : varying)
        addresses.push_back(entry.second.second[n]);
    auto repeat = RepeatOp::create(builder, ops.front()->getLoc(), count, addresses);
    Block &body = repeat.getBody().emplaceBlock();
    llvm::DenseMap<Attribute, Value> arguments;
    for (auto &entry : varying)
      arguments[entry.first] = body.addArgument(entry.second.first, repeat.getLoc());
    for (Operation *op : ops.take_front(period)) {
      for (OpOperand &operand : op->getOpOperands())
        if (auto found = argumentOf.find(&operand); found != argumentOf.end())
          operand.set(arguments[found->second]);
      op->moveBefore(&body, body.end());
    }
    for (Operation *op : ops.drop_front(period))
      op->erase();
    hoistDeclarations(repeat);
  }

  // Declarations of memory have no order; all that the body reads must stand before it.
  static void hoistDeclarations(RepeatOp repeat) {
    repeat.walk([&](LaunchOp launch) {
      for (Value operand : launch.getOperands())
        hoist(operand, repeat);
    });
  }

  static void hoist(Value value, RepeatOp repeat) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != repeat->getBlock() || op->isBeforeInBlock(repeat))
      return;
    for (Value operand : op->getOperands())
      hoist(operand, repeat);
    op->moveBefore(repeat);
  }
};

} // namespace
} // namespace mcc::exec
