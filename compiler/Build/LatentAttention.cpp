// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434), with keys and values expanded before they are cached.
//
// A head of the checkpoint is [nope, rope]; ours is [rope, nope], for the kernels rotate the first features of a head, and q k^T
// does not mind. Values are padded to the size of a key, so that one cache geometry serves both, and cut again after attention.
#include "compiler/Build/StepBuilder.h"

using namespace mlir;

namespace mcc {

using namespace ir;

Value StepBuilder::assemble(HeadPart first, HeadPart second, int64_t heads, int64_t headDim) {
  return AssembleOp::create(builder, location, type(heads * headDim), first.x, first.distance, first.count, second.x, second.distance, second.count, heads, DeviceAttr());
}

Value StepBuilder::buildLatentAttention(Value n, const AttentionSpec &attention, int64_t layer) {
  const LatentSpec &latent = *attention.latent;
  const int64_t heads = attention.heads, dim = attention.headDim, rope = latent.ropeDim, nope = latent.nopeDim, expanded = nope + latent.valueDim;
  const NormSpec lowRank{.kind = NormSpec::Kind::Rms, .eps = latent.normEps};
  auto rest = [&](Value x, int64_t column) { return slice(x, column, features(x.getType()) - column); };

  at(layer, "attention.q");
  Value q = latent.queryRank == 0 ? linear(n, "q", layer, heads * dim, false)
                                  : linear(norm(linear(n, "q_a", layer, latent.queryRank, false), lowRank, "q_a_norm", layer), "q_b", layer, heads * dim, false);
  at(layer, "attention.kv");
  Value low = linear(n, "kv_a", layer, latent.kvRank + rope, false);
  Value kv = linear(norm(slice(low, 0, latent.kvRank), lowRank, "kv_a_norm", layer), "kv_b", layer, heads * expanded, false);
  at(layer, "attention.heads");
  q = assemble({rest(q, nope), dim, rope}, {q, dim, nope}, heads, dim);
  Value k = assemble({rest(low, latent.kvRank), 0, rope}, {kv, expanded, nope}, heads, dim);
  Value v = assemble({rest(kv, nope), expanded, latent.valueDim}, {}, heads, dim);
  at(layer, "attention");
  if (attention.rope) {
    RopePairing pairing = attention.rope->pairing == RopeSpec::Pairing::Half ? RopePairing::Half : RopePairing::Adjacent;
    Value cosSin = rotary(*attention.rope);
    q = RopeOp::create(builder, location, q.getType(), q, cosSin, heads, pairing, DeviceAttr());
    k = RopeOp::create(builder, location, k.getType(), k, cosSin, heads, pairing, DeviceAttr());
  }
  Value y = attend(q, k, v, attention, layer);
  if (latent.valueDim != dim)
    y = assemble({y, dim, latent.valueDim}, {}, heads, latent.valueDim);
  at(layer, "attention.o");
  return linear(y, "o", layer, spec.hidden, attention.outBias);
}

} // namespace mcc
