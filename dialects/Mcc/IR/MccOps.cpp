// Verifiers and folders of the `mcc` dialect. Checks cite the constraint of the op's description.
#include "dialects/Mcc/IR/MccOps.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mcc;
using namespace mcc::ir;

#include "dialects/Mcc/IR/MccInterfaces.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Mcc/IR/MccOps.cpp.inc"

// Checks that `weight`, where present, is an f32 vector of `size`.
static LogicalResult verifyVector(Operation *op, StringRef what, Value weight, int64_t size) {
  if (!weight)
    return success();
  auto type = cast<WeightType>(weight.getType());
  if (type.getShape().size() != 1 || type.getShape()[0] != size || type.getFormat() != Format::F32)
    return op->emitOpError() << what << " has type " << type << "; an f32 vector of " << size << " is wanted";
  return success();
}

// Checks that `weight` is a matrix with `cols` columns.
static LogicalResult verifyMatrix(Operation *op, WeightType weight, int64_t cols) {
  if (weight.getShape().size() != 2)
    return op->emitOpError() << "weight has type " << weight << "; a matrix is wanted";
  if (weight.getShape()[1] != cols)
    return op->emitOpError() << "weight has " << weight.getShape()[1] << " columns; the input has " << cols << " features";
  return success();
}

LogicalResult WeightOp::verify() {
  if (getSources().empty()) // C1
    return emitOpError("has no source; name at least one tensor");
  if (getInterleaved() && (getSources().size() != 2 || getType().getShape()[0] % 2)) // C2
    return emitOpError() << "interleaves " << getSources().size() << " sources into " << getType().getShape()[0]
                         << " rows; two sources of equal rows are wanted";
  return success();
}

LogicalResult EmbedOp::verify() {
  return verifyMatrix(*this, getTable().getType(), features(getType())); // C1
}

LogicalResult RotaryOp::verify() {
  int64_t wanted = 2 * static_cast<int64_t>(getFrequencies().size());
  if (features(getType()) != wanted) // C1
    return emitOpError() << "result has " << features(getType()) << " features; " << getFrequencies().size() << " frequencies give " << wanted;
  return success();
}

LogicalResult NormOp::verify() {
  int64_t size = features(getType()), groups = getGroups();
  if (groups <= 0 || size % groups) // C1
    return emitOpError() << "has " << groups << " groups; the input has " << size << " features";
  int64_t elems = getOwnWeights() ? size : size / groups;
  if (failed(verifyVector(*this, "weight", getWeight(), elems))) // C2
    return failure();
  return verifyVector(*this, "bias", getBias(), elems);
}

LogicalResult LinearOp::verify() {
  WeightType weight = getWeight().getType();
  int64_t in = features(getInput().getType()), out = features(getType());
  if (failed(verifyMatrix(*this, weight, in))) // C1
    return failure();
  int64_t rows = weight.getShape()[0];
  if (out * (getGated() ? 2 : 1) != rows) // C2
    return emitOpError() << "result has " << out << " features; the weight has " << rows << (getGated() ? " gate and up rows" : " rows");
  if (failed(verifyVector(*this, "bias", getBias(), rows))) // C3
    return failure();
  if (getResidual() && features(getResidual().getType()) != out) // C4
    return emitOpError() << "residual has " << features(getResidual().getType()) << " features; the result has " << out;
  if (!getNormKind() && (getNormWeight() || getNormBias())) // C5
    return emitOpError("has norm operands but no norm kind");
  if (failed(verifyVector(*this, "norm weight", getNormWeight(), in)))
    return failure();
  return verifyVector(*this, "norm bias", getNormBias(), in);
}

LogicalResult RopeOp::verify() {
  int64_t size = features(getType()), heads = getHeads();
  if (heads <= 0 || size % heads) // C1
    return emitOpError() << "has " << heads << " heads; the input has " << size << " features";
  if (int64_t rotated = features(getCosSin().getType()); rotated > size / heads) // C2
    return emitOpError() << "rotates " << rotated << " dimensions; a head has " << size / heads;
  return success();
}

LogicalResult CacheAppendOp::verify() {
  CacheType cache = getCache().getType();
  int64_t wanted = cache.getHeads() * cache.getHeadDim();
  if (features(getInput().getType()) != wanted) // C1
    return emitOpError() << "input has " << features(getInput().getType()) << " features; the cache takes " << wanted;
  return success();
}

LogicalResult AttentionOp::verify() {
  CacheType keys = getKeys().getType(), values = getValues().getType();
  int64_t heads = getHeads();
  if (heads <= 0 || heads % keys.getHeads()) // C1
    return emitOpError() << "has " << heads << " heads; the caches have " << keys.getHeads();
  if (features(getQuery().getType()) != heads * keys.getHeadDim()) // C2
    return emitOpError() << "query has " << features(getQuery().getType()) << " features; " << heads << " heads of " << keys.getHeadDim() << " are wanted";
  if (keys.getHeads() != values.getHeads() || keys.getPositions() != values.getPositions()) // C3
    return emitOpError() << "keys " << keys << " and values " << values << " differ in heads or context";
  if (features(getType()) != heads * values.getHeadDim()) // C4
    return emitOpError() << "result has " << features(getType()) << " features; " << heads << " heads of " << values.getHeadDim() << " are wanted";
  if (getSlopes() && static_cast<int64_t>(getSlopes()->size()) != heads) // C5
    return emitOpError() << "has " << getSlopes()->size() << " slopes; there are " << heads << " heads";
  return verifyVector(*this, "sinks", getSinks(), heads);
}

LogicalResult SliceOp::verify() {
  int64_t column = getColumn(), size = features(getType()), whole = features(getInput().getType());
  if (column < 0 || column + size > whole) // C1
    return emitOpError() << "takes features " << column << " to " << column + size << "; the input has " << whole;
  return success();
}

LogicalResult XieluOp::verify() {
  return verifyVector(*this, "parameters", getParameters(), 4); // C1
}

LogicalResult PositionsOp::verify() {
  return verifyMatrix(*this, getTable().getType(), features(getType())); // C1
}

LogicalResult RopeCacheOp::verify() {
  CacheType keys = getKeys().getType(), values = getValues().getType();
  int64_t heads = getHeads();
  if (features(getQuery().getType()) != heads * keys.getHeadDim()) // C1
    return emitOpError() << "query has " << features(getQuery().getType()) << " features; " << heads << " heads of " << keys.getHeadDim() << " are wanted";
  for (auto [name, value, cache] : {std::tuple("key", getKey(), keys), std::tuple("value", getValue(), values)}) // C2
    if (int64_t wanted = cache.getHeads() * cache.getHeadDim(); features(value.getType()) != wanted)
      return emitOpError() << name << " has " << features(value.getType()) << " features; the cache takes " << wanted;
  if (failed(verifyVector(*this, "query norm", getQueryNorm(), keys.getHeadDim()))) // C3
    return failure();
  if (failed(verifyVector(*this, "key norm", getKeyNorm(), keys.getHeadDim())))
    return failure();
  if (getNormAfter() && !getQueryNorm() && !getKeyNorm()) // C4
    return emitOpError("has no norm to take after the rotation");
  return success();
}

LogicalResult LogitsOp::verify() {
  WeightType weight = getWeight().getType();
  int64_t in = features(getInput().getType());
  if (failed(verifyMatrix(*this, weight, in))) // C1
    return failure();
  if (features(getLogits().getType()) != weight.getShape()[0])
    return emitOpError() << "gives " << features(getLogits().getType()) << " logits; the weight has " << weight.getShape()[0] << " rows";
  if (failed(verifyVector(*this, "bias", getBias(), weight.getShape()[0])) || failed(verifyVector(*this, "norm weight", getNormWeight(), in))) // C2
    return failure();
  return verifyVector(*this, "norm bias", getNormBias(), in);
}

OpFoldResult ActivateOp::fold(FoldAdaptor) { return getActivation() == ActivationKind::None ? getInput() : Value(); }

OpFoldResult ScaleOp::fold(FoldAdaptor) { return getFactor().isExactlyValue(1.0) ? getInput() : Value(); }

OpFoldResult SliceOp::fold(FoldAdaptor) { return getInput().getType() == getType() ? getInput() : Value(); }
