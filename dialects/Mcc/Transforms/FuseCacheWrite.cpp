// Folds what happens to q, k and v between projection and attention into one op that works in place.
//
//   %q1 = mcc.norm rms %q groups h       ->  %qkv = mcc.concat %q, %k, %v
//   %q2 = mcc.rope half %q1, %r              %q2  = mcc.rope_cache half %qkv, %kc, %vc rotary(%r) ...
//   %k2 = mcc.rope half %k, %r               %a   = mcc.attention %q2, %kc, %vc
//   mcc.cache_append %k2 to %kc
//   mcc.cache_append %v to %vc
//   %a = mcc.attention %q2, %kc, %vc
//
// Where q, k and v (or two of them) are all of one value in slices, as join-projections makes them, the concat takes that
// value, and with one input it is none.
#include "dialects/Mcc/IR/MccOps.h"
#include "dialects/Mcc/Transforms/Passes.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace mcc::ir {
#define GEN_PASS_DEF_FUSECACHEWRITEPASS
#include "dialects/Mcc/Transforms/Passes.h.inc"

namespace {

// What precedes attention on q or k: projection -> optional per-head norm -> optional rotation.
struct Chain {
  Value source;
  NormOp norm;
  RopeOp rope;

  // Reads the chain that ends in `value`, as far as each step has no other user.
  static Chain of(Value value, int64_t heads) {
    Chain chain{value, {}, {}};
    if (auto rope = chain.source.getDefiningOp<RopeOp>(); rope && rope->hasOneUse() && static_cast<int64_t>(rope.getHeads()) == heads) {
      chain.rope = rope;
      chain.source = rope.getInput();
    }
    auto norm = chain.source.getDefiningOp<NormOp>();
    if (norm && norm->hasOneUse() && norm.getKind() == NormKind::Rms && static_cast<int64_t>(norm.getGroups()) == heads && norm.getWeight() &&
        !norm.getBias()) {
      chain.norm = norm;
      chain.source = norm.getInput();
    }
    return chain;
  }

  // Erases the chain's ops, which have lost their users.
  void erase() {
    for (Operation *op : {rope.getOperation(), norm.getOperation()})
      if (op)
        op->erase();
  }
};

// Returns the one append to `cache`, or null.
CacheAppendOp onlyAppend(Value cache) {
  CacheAppendOp found;
  for (Operation *user : cache.getUsers())
    if (auto append = dyn_cast<CacheAppendOp>(user)) {
      if (found)
        return {};
      found = append;
    }
  return found;
}

// Returns how many of `parts`, from the first, are together all of one value that has no other reader; 0 where they are not.
size_t wholeRun(ArrayRef<Value> parts) {
  Value whole;
  int64_t column = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    auto slice = parts[i].getDefiningOp<SliceOp>();
    if (!slice || !slice->hasOneUse() || static_cast<int64_t>(slice.getColumn()) != column || (whole && slice.getInput() != whole))
      return 0;
    whole = slice.getInput();
    column += features(parts[i].getType());
    if (column == features(whole.getType()))
      return static_cast<size_t>(std::distance(whole.user_begin(), whole.user_end())) == i + 1 ? i + 1 : 0;
  }
  return 0;
}

// Replaces slices that cover one value in order by that value.
SmallVector<Value> collapseSlices(ArrayRef<Value> parts) {
  SmallVector<Value> result;
  while (!parts.empty()) {
    size_t run = wholeRun(parts);
    result.push_back(run ? Value(parts.front().getDefiningOp<SliceOp>().getInput()) : parts.front());
    parts = parts.drop_front(std::max<size_t>(run, 1));
  }
  return result;
}

struct FuseCacheWritePass : impl::FuseCacheWritePassBase<FuseCacheWritePass> {
  void runOnOperation() override {
    SmallVector<AttentionOp> attentions;
    getOperation().walk([&](AttentionOp attention) { attentions.push_back(attention); });
    for (AttentionOp attention : attentions)
      fuse(attention);
  }

  void fuse(AttentionOp attention) {
    CacheAppendOp keys = onlyAppend(attention.getKeys()), values = onlyAppend(attention.getValues());
    if (!keys || !values || !attention.getQuery().hasOneUse())
      return;
    int64_t heads = attention.getHeads(), keyHeads = attention.getKeys().getType().getHeads();
    Chain q = Chain::of(attention.getQuery(), heads), k = Chain::of(keys.getInput(), keyHeads);
    // Both rotate alike or neither does, and norms share their epsilon: what one op can say.
    if (bool(q.rope) != bool(k.rope) || (q.rope && (q.rope.getCosSin() != k.rope.getCosSin() || q.rope.getPairing() != k.rope.getPairing())))
      return;
    if (q.norm && k.norm && q.norm.getEps() != k.norm.getEps())
      return;
    replace(attention, q, k, keys, values);
  }

  void replace(AttentionOp attention, Chain q, Chain k, CacheAppendOp keys, CacheAppendOp values) {
    OpBuilder builder(attention);
    SmallVector<Value> parts{q.source, k.source, values.getInput()}, inputs = collapseSlices(parts);
    Value whole = inputs.front();
    if (inputs.size() > 1) {
      int64_t total = 0;
      for (Value input : inputs)
        total += features(input.getType());
      whole = ConcatOp::create(builder, attention.getLoc(), activationsType(&getContext(), total), inputs, DeviceAttr());
    }
    Value cosSin = q.rope ? Value(q.rope.getCosSin()) : Value();
    RopePairing pairing = q.rope ? q.rope.getPairing() : RopePairing::Half;
    APFloat eps = q.norm ? q.norm.getEps() : k.norm ? k.norm.getEps() : APFloat(0.0);
    auto fused = RopeCacheOp::create(builder, attention.getLoc(), attention.getQuery().getType(), whole, cosSin, q.norm ? q.norm.getWeight() : Value(),
                                     k.norm ? k.norm.getWeight() : Value(), attention.getKeys(), attention.getValues(), attention.getHeads(), pairing, eps,
                                     DeviceAttr());
    attention.getQueryMutable().assign(fused.getQuery());
    keys.erase();
    values.erase();
    q.erase();
    k.erase();
    for (Value part : parts)
      if (auto slice = part.getDefiningOp<SliceOp>(); slice && slice->use_empty())
        slice.erase();
  }
};

} // namespace
} // namespace mcc::ir
