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
  if (getInterleaved() && (getSources().size() % 2 || getType().getShape()[0] % 2)) // C2
    return emitOpError() << "interleaves " << getSources().size() << " sources into " << getType().getShape()[0]
                         << " rows; two halves of equal rows are wanted";
  if (getNegatedExp() && getType().getFormat() != Format::F32) // C3
    return emitOpError() << "takes exponentials into " << getType() << "; only f32 holds them";
  return success();
}

LogicalResult EmbedOp::verify() {
  return verifyMatrix(*this, getTable().getType(), features(getType())); // C1
}

LogicalResult RotaryOp::verify() {
  int64_t wanted = (getOriginal() > 0 ? 1 : 2) * static_cast<int64_t>(getFrequencies().size());
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

// Checks that `weight` is an f32 matrix of `rows` and `cols`.
static LogicalResult verifyFloatMatrix(Operation *op, StringRef what, WeightType weight, int64_t rows, int64_t cols) {
  if (weight.getShape() == ArrayRef<int64_t>{rows, cols} && weight.getFormat() == Format::F32)
    return success();
  return op->emitOpError() << what << " has type " << weight << "; an f32 matrix of " << rows << " x " << cols << " is wanted";
}

// Checks that `value` has `wanted` features.
static LogicalResult verifyFeatures(Operation *op, StringRef what, Value value, int64_t wanted) {
  if (features(value.getType()) == wanted)
    return success();
  return op->emitOpError() << what << " has " << features(value.getType()) << " features; " << wanted << " are wanted";
}

static InFlightDiagnostic emitStateError(Operation *op, StateType state) { return op->emitOpError() << "state has type " << state << "; "; }

LogicalResult AssembleOp::verify() {
  int64_t heads = getHeads(), first = getFirst(), second = getSecond(), out = features(getType());
  if (heads < 1 || out % heads || first < 1 || second < 0 || first + second > out / heads) // C1
    return emitOpError() << "result has " << out << " features; " << heads << " heads of at least " << first + second << " are wanted";
  auto ends = [&](Value part, int64_t distance, int64_t count) { return distance >= 0 && (heads - 1) * distance + count <= features(part.getType()); };
  if (!ends(getA(), getAHead(), first)) // C2
    return emitOpError() << "takes " << first << " features every " << getAHead() << " for " << heads << " heads; the first part has " << features(getA().getType());
  if (getB() && !ends(getB(), getBHead(), second))
    return emitOpError() << "takes " << second << " features every " << getBHead() << " for " << heads << " heads; the second part has " << features(getB().getType());
  if (!getB() && second != 0) // C3
    return emitOpError() << "takes " << second << " features of a second part that is not there";
  return success();
}

LogicalResult RouteOp::verify() {
  int64_t experts = features(getInput().getType()), chosen = getChosen(), groups = getGroups();
  if (chosen < 1 || chosen > experts) // C1
    return emitOpError() << "chooses " << chosen << " of " << experts << " experts";
  if (features(getType()) != 2 * chosen) // C2
    return emitOpError() << "result has " << features(getType()) << " features; " << chosen << " weights and numbers are wanted";
  if (failed(verifyVector(*this, "bias", getBias(), experts))) // C3
    return failure();
  int64_t groupsChosen = getGroupsChosen();
  if (groups < 1 || experts % groups || groupsChosen < 1 || groupsChosen > groups || experts / groups * groupsChosen < chosen) // C4
    return emitOpError() << "chooses " << chosen << " experts from " << groupsChosen << " of " << groups << " groups of " << experts << " experts in all";
  if (getGroupScore() == GroupScore::TopTwoSum && experts / groups < 2)
    return emitOpError() << "ranks groups by their two best; a group has " << experts / groups;
  return success();
}

LogicalResult ExpertsOp::verify() {
  WeightType weight = getWeight().getType();
  int64_t experts = getExperts(), picks = features(getPicks().getType()) / 2;
  if (weight.getShape().size() != 2 || experts < 1 || weight.getShape()[0] % (experts * (getGated() ? 32 : 16))) // C1
    return emitOpError() << "weight has type " << weight << "; " << experts << " experts of whole panels of 16 rows are wanted";
  int64_t rows = weight.getShape()[0] / experts / (getGated() ? 2 : 1), cols = weight.getShape()[1], in = features(getInput().getType());
  if (features(getType()) != picks * rows) // C2
    return emitOpError() << "result has " << features(getType()) << " features; " << picks << " picks of " << rows << " rows are wanted";
  if (in != cols && in != picks * cols) // C3
    return emitOpError() << "input has " << in << " features; " << cols << " columns once or for each of " << picks << " picks are wanted";
  return verifyVector(*this, "bias", getBias(), weight.getShape()[0]); // C4
}

LogicalResult CombineOp::verify() {
  int64_t slots = getSlots(), in = features(getInput().getType());
  if (slots < 1 || in != slots * features(getType())) // C1
    return emitOpError() << "input has " << in << " features; " << slots << " slots of " << features(getType()) << " are wanted";
  if (features(getWeights().getType()) < slots) // C2
    return emitOpError() << "has " << features(getWeights().getType()) << " weights for " << slots << " slots";
  return success();
}

LogicalResult ConvOp::verify() {
  WeightType weight = getWeight().getType();
  int64_t size = features(getType()), taps = weight.getShape().back();
  if (failed(verifyFloatMatrix(*this, "weight", weight, size, taps))) // C1
    return failure();
  if (failed(verifyVector(*this, "bias", getBias(), size))) // C2
    return failure();
  if (!getState() && taps > 1) // C3
    return emitOpError() << "has " << taps << " taps and no state; " << taps - 1 << " x " << size << " is wanted";
  if (getState() && getState().getType().getShape() != ArrayRef<int64_t>{taps - 1, size})
    return emitStateError(*this, getState().getType()) << taps - 1 << " x " << size << " is wanted";
  return success();
}

LogicalResult SelectiveScanOp::verify() {
  StateType state = getState().getType();
  int64_t size = features(getType()), depth = state.getShape()[0];
  if (state.getShape() != ArrayRef<int64_t>{depth, size}) // C1
    return emitStateError(*this, state) << "depth x " << size << " is wanted";
  if (failed(verifyFeatures(*this, "in", getB(), depth)) || failed(verifyFeatures(*this, "out", getC(), depth))) // C2
    return failure();
  if (failed(verifyFloatMatrix(*this, "rates", getRates().getType(), size, depth))) // C3
    return failure();
  return verifyVector(*this, "skip", getSkip(), size);
}

LogicalResult StateScanOp::verify() {
  StateType state = getState().getType();
  int64_t size = features(getType()), heads = state.getShape()[0], groups = getGroups();
  if (state.getShape().size() != 3 || heads * state.getShape()[2] != size) // C1
    return emitStateError(*this, state) << "heads x depth x head dim is wanted, for " << size << " features";
  if (groups <= 0 || heads % groups)
    return emitOpError() << "has " << groups << " groups; there are " << heads << " heads";
  int64_t mixed = groups * state.getShape()[1];
  if (failed(verifyFeatures(*this, "time", getTime(), heads)) || failed(verifyFeatures(*this, "in", getB(), mixed)) || // C2
      failed(verifyFeatures(*this, "out", getC(), mixed)))
    return failure();
  if (failed(verifyVector(*this, "rates", getRates(), heads)) || failed(verifyVector(*this, "time bias", getTimeBias(), heads))) // C3
    return failure();
  return verifyVector(*this, "skip", getSkip(), heads);
}

LogicalResult DeltaScanOp::verify() {
  StateType state = getState().getType();
  int64_t size = features(getType()), heads = state.getShape()[0], keyHeads = getKeyHeads();
  if (state.getShape().size() != 3 || heads * state.getShape()[2] != size) // C1
    return emitStateError(*this, state) << "value heads x key dim x value dim is wanted, for " << size << " features";
  if (keyHeads <= 0 || heads % keyHeads)
    return emitOpError() << "has " << keyHeads << " key heads; there are " << heads << " value heads";
  int64_t keys = keyHeads * state.getShape()[1];
  if (failed(verifyFeatures(*this, "query", getQuery(), keys)) || failed(verifyFeatures(*this, "key", getKey(), keys)) || // C2
      failed(verifyFeatures(*this, "beta", getBeta(), heads)) || failed(verifyFeatures(*this, "decay", getDecay(), heads)))
    return failure();
  if (failed(verifyVector(*this, "rates", getRates(), heads))) // C3
    return failure();
  return verifyVector(*this, "decay bias", getDecayBias(), heads);
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
