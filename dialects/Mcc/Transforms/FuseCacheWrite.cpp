// Folds what happens to q and k between projection and attention into one op that works in place.
//
//   %q1 = mcc.norm rms %q groups h       ->  %q2 = mcc.rope_cache half %q, %k, %v into %kc, %vc rotary(%r) ...
//   %q2 = mcc.rope half %q1, %r              %a  = mcc.attention %q2, %kc, %vc
//   %k2 = mcc.rope half %k, %r
//   mcc.cache_append %k2 to %kc
//   mcc.cache_append %v to %vc
//   %a = mcc.attention %q2, %kc, %vc
//
// q, k and v may be slices of one joined projection or values of their own. Where the norms follow the ropes, the op says so
// by `norm_after`.
#include "dialects/Mcc/IR/MccOps.h"
#include "dialects/Mcc/Transforms/Passes.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace mcc::ir {
#define GEN_PASS_DEF_FUSECACHEWRITEPASS
#include "dialects/Mcc/Transforms/Passes.h.inc"

namespace {

// What precedes attention on q or k: projection -> optional per-head norm -> optional rotation, or the latter two exchanged.
struct Chain {
  Value source;
  NormOp norm;
  RopeOp rope;
  bool normAfter = false; // the norm reads the rotated heads

  // Reads the chain that ends in `value`, as far as each step has no other user.
  static Chain of(Value value, int64_t heads) {
    Chain chain{value, {}, {}};
    chain.takeNorm(heads);
    if (auto rope = chain.source.getDefiningOp<RopeOp>(); rope && rope->hasOneUse() && static_cast<int64_t>(rope.getHeads()) == heads) {
      chain.rope = rope;
      chain.source = rope.getInput();
      chain.normAfter = bool(chain.norm);
    }
    if (!chain.norm)
      chain.takeNorm(heads);
    return chain;
  }

  // Takes up the norm that makes `source`, where the op can say it.
  void takeNorm(int64_t heads) {
    auto made = source.getDefiningOp<NormOp>();
    if (!made || !made->hasOneUse() || made.getKind() != NormKind::Rms || static_cast<int64_t>(made.getGroups()) != heads || !made.getWeight() ||
        made.getBias() || made.getOwnWeights())
      return;
    norm = made;
    source = made.getInput();
  }

  // Erases the chain's ops, which have lost their users.
  void erase() {
    Operation *last = rope, *first = norm;
    if (normAfter)
      std::swap(last, first);
    for (Operation *op : {last, first})
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
    // The op overwrites q, so nobody else may read it.
    int64_t heads = attention.getHeads(), keyHeads = attention.getKeys().getType().getHeads();
    Chain q = Chain::of(attention.getQuery(), heads), k = Chain::of(keys.getInput(), keyHeads);
    if (!q.source.hasOneUse())
      return;
    // Both rotate alike or neither does, and norms share their epsilon: what one op can say.
    if (bool(q.rope) != bool(k.rope) || (q.rope && (q.rope.getCosSin() != k.rope.getCosSin() || q.rope.getPairing() != k.rope.getPairing())))
      return;
    if (q.norm && k.norm && (q.norm.getEps() != k.norm.getEps() || q.normAfter != k.normAfter))
      return;
    replace(attention, q, k, keys, values);
  }

  void replace(AttentionOp attention, Chain q, Chain k, CacheAppendOp keys, CacheAppendOp values) {
    OpBuilder builder(attention);
    Value cosSin = q.rope ? Value(q.rope.getCosSin()) : Value();
    RopePairing pairing = q.rope ? q.rope.getPairing() : RopePairing::Half;
    APFloat eps = q.norm ? q.norm.getEps() : k.norm ? k.norm.getEps() : APFloat(0.0);
    auto fused = RopeCacheOp::create(builder, attention.getLoc(), q.source.getType(), q.source, k.source, values.getInput(), cosSin, q.norm ? q.norm.getWeight() : Value(),
                                     k.norm ? k.norm.getWeight() : Value(), attention.getKeys(), attention.getValues(), attention.getHeads(), pairing, q.normAfter || k.normAfter, eps,
                                     DeviceAttr());
    attention.getQueryMutable().assign(fused.getResult());
    keys.erase();
    values.erase();
    q.erase();
    k.erase();
  }
};

} // namespace
} // namespace mcc::ir
