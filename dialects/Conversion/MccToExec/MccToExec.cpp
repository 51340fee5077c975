// Lowers the placed `mcc` step, op by op, to an `exec` program.
//
// A value `tensor<?xNxf32>` becomes an address and a row stride: a buffer of `chunk` rows of its own, or a view. Views
// come from mcc.slice and from mcc.rope_cache (q stays where it was). A residual that dies with its linear is overwritten in place: the kernel reads an
// element before it writes it, on one thread. Addresses are left open; exec-plan-memory fills them in.
#include "dialects/Conversion/MccToExec/MccToExec.h"

#include "dialects/Mcc/IR/MccOps.h"
#include "kernels/cpu/Sizes.h"
#include "kernels/pack/Pack.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;

namespace mcc {
#define GEN_PASS_DEF_CONVERTMCCTOEXECPASS
#include "dialects/Conversion/MccToExec/Passes.h.inc"

namespace {

using exec::PointerType;
using exec::Space;

// Where a value lives: rows of `stride` elements from `pointer`.
struct Place {
  Value pointer;
  int64_t stride = 0;
};

float number(const APFloat &value) { return static_cast<float>(value.convertToDouble()); }

// Returns the positions that a step is made for, or 0 where it does not say.
int64_t contextOf(func::FuncOp step) {
  if (auto context = step->getAttrOfType<IntegerAttr>(ir::contextAttrName))
    return context.getInt();
  int64_t context = 0;
  step.walk([&](ir::CacheOp cache) { context = std::max(context, cache.getType().getPositions()); });
  return context;
}

class Lowering {
public:
  Lowering(func::FuncOp step, int64_t chunk, int64_t threads) : step(step), chunk(chunk), threads(threads), builder(step) {}

  LogicalResult run();

private:
  LogicalResult lower(Operation *op);
  void lowerWeight(ir::WeightOp op);
  void lowerCache(ir::CacheOp op);
  void lowerState(ir::StateOp op);
  void lowerEmbed(ir::EmbedOp op);
  void lowerRotary(ir::RotaryOp op);
  void lowerNorm(ir::NormOp op);
  void lowerLinear(ir::LinearOp op);
  void lowerAttention(ir::AttentionOp op);
  void lowerConv(ir::ConvOp op);
  void lowerSelectiveScan(ir::SelectiveScanOp op);
  void lowerStateScan(ir::StateScanOp op);
  void lowerRoute(ir::RouteOp op);
  void lowerAssemble(ir::AssembleOp op);
  void lowerExperts(ir::ExpertsOp op);
  void lowerCombine(ir::CombineOp op);
  void lowerDeltaScan(ir::DeltaScanOp op);
  void lowerActivate(ir::ActivateOp op);
  void lowerGate(ir::GateOp op);
  void lowerAdd(ir::AddOp op);
  void lowerSlice(ir::SliceOp op);
  LogicalResult lowerRopeCache(ir::RopeCacheOp op);
  void lowerPositions(ir::PositionsOp op);
  void lowerScale(ir::ScaleOp op);
  void lowerClamp(ir::ClampOp op);
  void lowerXielu(ir::XieluOp op);
  LogicalResult lowerLogits(ir::LogitsOp op);

  // Returns a new buffer of `bytes`, or an absent pointer for none. `rowBytes`: of one token, where it has a row for each.
  Value buffer(int64_t bytes, int64_t rowBytes = 0);
  Value none() { return absent; }
  PointerType type(Space space) { return PointerType::get(builder.getContext(), space); }
  Value view(Value base, int64_t offset);
  Value constants(std::optional<ArrayRef<float>> values);
  // Returns where `value` (null: absent) lives.
  Value pointer(Value value) { return value ? places.at(value).pointer : none(); }
  int64_t stride(Value value) { return value ? places.at(value).stride : 0; }
  // Gives `result` a buffer of its own.
  Place home(Value result);
  // Lets `result` take over the buffer of `source`. A copy is made first: an insertion moves the map's entries.
  Place share(Value result, Value source) {
    Place place = places.at(source);
    return places[result] = place;
  }
  // Returns whether `op` may overwrite its operand `value`: nothing reads it afterwards, and `op` reads it only there.
  bool diesAt(Value value, Operation *op);
  void launch(Operation *op, StringRef kernel, std::optional<Format> format, ValueRange buffers, ArrayRef<int64_t> ints, ArrayRef<float> floats);

  func::FuncOp step;
  const int64_t chunk, threads;
  OpBuilder builder;
  Location location = builder.getUnknownLoc();
  llvm::DenseMap<Value, Place> places;
  Value absent; // the one exec.none
};

Value Lowering::buffer(int64_t bytes, int64_t rowBytes) {
  if (bytes == 0)
    return none();
  return exec::BufferOp::create(builder, location, type(Space::Arena), rowBytes ? builder.getI64IntegerAttr(rowBytes) : IntegerAttr(),
                                builder.getI64IntegerAttr(bytes), IntegerAttr());
}

Value Lowering::view(Value base, int64_t offset) {
  return offset == 0 ? base : exec::ViewOp::create(builder, location, base.getType(), base, offset).getResult();
}

Place Lowering::home(Value result) {
  int64_t cols = ir::features(result.getType());
  return places[result] = {buffer(chunk * cols * 4, cols * 4), cols};
}

bool Lowering::diesAt(Value value, Operation *op) {
  if (!value.getDefiningOp() || llvm::count(op->getOperands(), value) != 1 || isa<ir::SliceOp, ir::RopeCacheOp>(value.getDefiningOp()))
    return false;
  return llvm::all_of(value.getUsers(), [&](Operation *user) { return user == op || (!isa<ir::SliceOp>(user) && user->isBeforeInBlock(op)); });
}

void Lowering::launch(Operation *op, StringRef kernel, std::optional<Format> format, ValueRange buffers, ArrayRef<int64_t> ints, ArrayRef<float> floats) {
  ir::Device device = cast<ir::PlacedOpInterface>(op).getPlacement().value_or(ir::Device::Cpu);
  StringAttr formatName = format ? builder.getStringAttr(formatInfo(*format).name) : StringAttr();
  exec::LaunchOp::create(builder, location, builder.getStringAttr(kernel), formatName, buffers, builder.getDenseI64ArrayAttr(ints),
                         builder.getDenseF32ArrayAttr(floats), ir::DeviceAttr::get(builder.getContext(), device));
}

void Lowering::lowerWeight(ir::WeightOp op) {
  ir::WeightType weight = op.getType();
  int64_t rows = weight.getShape()[0], bytes;
  if (weight.getShape().size() == 1)
    bytes = 4 * (op.getInterleaved() ? packedGatedBiasFloats(rows / 2) : cpu::roundUp(rows, cpu::kPanelRows));
  else
    bytes = op.getInterleaved() ? packedGatedBytes(weight.getFormat(), rows / 2, weight.getShape()[1])
                                : packedBytes(weight.getFormat(), rows, weight.getShape()[1]);
  Value address = exec::WeightOp::create(builder, location, type(Space::Weights), op.getSourcesAttr(), op.getInterleavedAttr(), op.getOffsetAttr(),
                                         op.getNegatedExpAttr(), TypeAttr::get(weight), builder.getI64IntegerAttr(bytes), IntegerAttr());
  places[op.getResult()] = {address, 0};
}

void Lowering::lowerCache(ir::CacheOp op) {
  ir::CacheType cache = op.getType();
  bool keys = llvm::any_of(op->getUsers(), [&](Operation *user) {
    auto attention = dyn_cast<ir::AttentionOp>(user);
    return attention && attention.getKeys() == op.getResult();
  });
  int64_t bytes = keys ? cpu::keyCacheBytes(cache.getHeads(), cache.getHeadDim(), cache.getPositions())
                       : cpu::valueCacheBytes(cache.getHeads(), cache.getHeadDim(), cache.getPositions());
  places[op.getResult()] = {exec::CacheOp::create(builder, location, type(Space::Cache), op.getCacheNameAttr(), builder.getI64IntegerAttr(bytes), IntegerAttr()), 0};
}

void Lowering::lowerState(ir::StateOp op) {
  ArrayRef<int64_t> shape = op.getType().getShape();
  int64_t bytes = cpu::stateBytes(llvm::product_of(shape.drop_back()), shape.back());
  places[op.getResult()] = {exec::CacheOp::create(builder, location, type(Space::Cache), op.getStateNameAttr(), builder.getI64IntegerAttr(bytes), IntegerAttr()), 0};
}

void Lowering::lowerEmbed(ir::EmbedOp op) {
  ArrayRef<int64_t> shape = op.getTable().getType().getShape();
  Place y = home(op.getResult());
  launch(op, "embed", op.getTable().getType().getFormat(), {pointer(op.getTable()), y.pointer}, {shape[0], shape[1], y.stride},
         {number(op.getScale())});
}

void Lowering::lowerRotary(ir::RotaryOp op) {
  Value frequencies = constants(op.getFrequencies());
  Place y = home(op.getResult());
  launch(op, "rotary", std::nullopt, {frequencies, y.pointer}, {y.stride / 2, static_cast<int64_t>(op.getOriginal())}, {number(op.getFactor())});
}

void Lowering::lowerNorm(ir::NormOp op) {
  Place y = home(op.getResult());
  launch(op, "norm", std::nullopt, {pointer(op.getInput()), pointer(op.getWeight()), pointer(op.getBias()), y.pointer},
         {ir::features(op.getType()), static_cast<int64_t>(op.getGroups()), op.getOwnWeights() ? 1 : 0, stride(op.getInput()), y.stride,
          static_cast<int64_t>(op.getKind())},
         {number(op.getEps())});
}

void Lowering::lowerLinear(ir::LinearOp op) {
  int64_t cols = op.getWeight().getType().getShape()[1];
  bool inPlace = op.getResidual() && diesAt(op.getResidual(), op);
  Place y = inPlace ? share(op.getResult(), op.getResidual()) : home(op.getResult());
  int64_t normKind = op.getNormKind() ? static_cast<int64_t>(*op.getNormKind()) : -1;
  Value normed = op.getNormKind() ? buffer(cpu::normedBytes(chunk, cols)) : none();
  launch(op, "linear", op.getWeight().getType().getFormat(),
         {pointer(op.getInput()), pointer(op.getWeight()), pointer(op.getBias()), pointer(op.getResidual()), pointer(op.getNormWeight()),
          pointer(op.getNormBias()), normed, y.pointer},
         {ir::features(op.getType()), cols, stride(op.getInput()), y.stride, stride(op.getResidual()), static_cast<int64_t>(op.getActivation()),
          op.getGated() ? 1 : 0, normKind},
         {number(op.getEps()), number(op.getScale())});
}

// Returns the constant numbers as a segment among the weights; absent where there are none.
Value Lowering::constants(std::optional<ArrayRef<float>> values) {
  if (!values)
    return none();
  int64_t bytes = cpu::roundUp(static_cast<int64_t>(values->size()), cpu::kPanelRows) * 4;
  return exec::ConstantOp::create(builder, location, type(Space::Weights), builder.getDenseF32ArrayAttr(*values), builder.getI64IntegerAttr(bytes),
                                  IntegerAttr());
}

void Lowering::lowerAttention(ir::AttentionOp op) {
  ir::CacheType keys = op.getKeys().getType();
  Value slopes = constants(op.getSlopes());
  Place y = home(op.getResult());
  launch(op, "attention", std::nullopt, {pointer(op.getQuery()), pointer(op.getKeys()), pointer(op.getValues()), slopes, pointer(op.getSinks()), y.pointer},
         {static_cast<int64_t>(op.getHeads()), keys.getHeads(), keys.getHeadDim(), stride(op.getQuery()), y.stride, static_cast<int64_t>(op.getWindow()),
          static_cast<int64_t>(op.getChunk()), op.getRoundedSlopes() ? 1 : 0, keys.getPositions()},
         {number(op.getScale()), number(op.getSoftcap())});
}

void Lowering::lowerConv(ir::ConvOp op) {
  Place y = home(op.getResult());
  launch(op, "conv", std::nullopt, {pointer(op.getInput()), pointer(op.getWeight()), pointer(op.getBias()), pointer(op.getState()), y.pointer},
         {ir::features(op.getType()), op.getWeight().getType().getShape()[1], stride(op.getInput()), y.stride, static_cast<int64_t>(op.getActivation())}, {});
}

void Lowering::lowerSelectiveScan(ir::SelectiveScanOp op) {
  Place y = home(op.getResult());
  launch(op, "selective_scan", std::nullopt,
         {pointer(op.getInput()), pointer(op.getTime()), pointer(op.getB()), pointer(op.getC()), pointer(op.getRates()), pointer(op.getSkip()),
          pointer(op.getState()), y.pointer},
         {ir::features(op.getType()), op.getState().getType().getShape()[0], stride(op.getInput()), stride(op.getTime()), stride(op.getB()), stride(op.getC()),
          y.stride},
         {});
}

void Lowering::lowerAssemble(ir::AssembleOp op) {
  Place y = home(op.getResult());
  int64_t heads = op.getHeads();
  launch(op, "assemble", std::nullopt, {pointer(op.getA()), pointer(op.getB()), y.pointer},
         {heads, y.stride / heads, static_cast<int64_t>(op.getFirst()), static_cast<int64_t>(op.getSecond()), static_cast<int64_t>(op.getAHead()),
          static_cast<int64_t>(op.getBHead()), stride(op.getA()), stride(op.getB()), y.stride},
         {});
}

void Lowering::lowerRoute(ir::RouteOp op) {
  Place y = home(op.getResult());
  launch(op, "route", std::nullopt, {pointer(op.getInput()), pointer(op.getBias()), y.pointer},
         {ir::features(op.getInput().getType()), static_cast<int64_t>(op.getChosen()), static_cast<int64_t>(op.getScoring()), op.getNormalize() ? 1 : 0,
          static_cast<int64_t>(op.getGroups()), static_cast<int64_t>(op.getGroupsChosen()), static_cast<int64_t>(op.getGroupScore()), stride(op.getInput()), y.stride},
         {number(op.getScale())});
}

void Lowering::lowerExperts(ir::ExpertsOp op) {
  ir::WeightType weight = op.getWeight().getType();
  int64_t experts = op.getExperts(), picks = ir::features(op.getPicks().getType()) / 2, cols = weight.getShape()[1];
  Place y = home(op.getResult());
  launch(op, "experts", weight.getFormat(), {pointer(op.getInput()), pointer(op.getPicks()), pointer(op.getWeight()), pointer(op.getBias()), y.pointer},
         {experts, picks, ir::features(op.getType()) / picks, cols, ir::features(op.getInput().getType()) == cols ? 0 : 1, stride(op.getInput()), stride(op.getPicks()),
          y.stride, static_cast<int64_t>(op.getActivation()), op.getGated() ? 1 : 0},
         {number(op.getLimit()), number(op.getUpOffset())});
}

void Lowering::lowerCombine(ir::CombineOp op) {
  Place y = home(op.getResult());
  launch(op, "combine", std::nullopt, {pointer(op.getWeights()), pointer(op.getInput()), y.pointer},
         {static_cast<int64_t>(op.getSlots()), ir::features(op.getType()), stride(op.getWeights()), stride(op.getInput()), y.stride}, {});
}

void Lowering::lowerStateScan(ir::StateScanOp op) {
  ArrayRef<int64_t> state = op.getState().getType().getShape();
  float timeMax = op.getTimeMax() ? number(*op.getTimeMax()) : std::numeric_limits<float>::max();
  Place y = home(op.getResult());
  launch(op, "state_scan", std::nullopt,
         {pointer(op.getInput()), pointer(op.getTime()), pointer(op.getB()), pointer(op.getC()), pointer(op.getRates()), pointer(op.getTimeBias()),
          pointer(op.getSkip()), pointer(op.getState()), y.pointer},
         {state[0], state[2], static_cast<int64_t>(op.getGroups()), state[1], stride(op.getInput()), stride(op.getTime()), stride(op.getB()),
          stride(op.getC()), y.stride},
         {number(op.getTimeMin()), timeMax});
}

void Lowering::lowerDeltaScan(ir::DeltaScanOp op) {
  ArrayRef<int64_t> state = op.getState().getType().getShape();
  Place y = home(op.getResult());
  launch(op, "delta_scan", std::nullopt,
         {pointer(op.getQuery()), pointer(op.getKey()), pointer(op.getValue()), pointer(op.getBeta()), pointer(op.getDecay()), pointer(op.getRates()),
          pointer(op.getDecayBias()), pointer(op.getState()), y.pointer},
         {static_cast<int64_t>(op.getKeyHeads()), state[0], state[1], state[2], stride(op.getQuery()), stride(op.getKey()), stride(op.getValue()),
          stride(op.getBeta()), stride(op.getDecay()), y.stride},
         {});
}

void Lowering::lowerActivate(ir::ActivateOp op) {
  Place y = home(op.getResult());
  launch(op, "activate", std::nullopt, {pointer(op.getInput()), y.pointer},
         {ir::features(op.getType()), stride(op.getInput()), y.stride, static_cast<int64_t>(op.getActivation())}, {});
}

void Lowering::lowerGate(ir::GateOp op) {
  Place y = home(op.getResult());
  launch(op, "gate", std::nullopt, {pointer(op.getGate()), pointer(op.getUp()), y.pointer},
         {ir::features(op.getType()), stride(op.getGate()), stride(op.getUp()), y.stride, static_cast<int64_t>(op.getActivation())}, {});
}

void Lowering::lowerAdd(ir::AddOp op) {
  Place y = home(op.getResult());
  launch(op, "add", std::nullopt, {pointer(op.getLhs()), pointer(op.getRhs()), y.pointer},
         {ir::features(op.getType()), stride(op.getLhs()), stride(op.getRhs()), y.stride}, {});
}

void Lowering::lowerSlice(ir::SliceOp op) {
  Place base = places.at(op.getInput());
  places[op.getResult()] = {view(base.pointer, op.getColumn() * 4), base.stride};
}

void Lowering::lowerPositions(ir::PositionsOp op) {
  ir::WeightType table = op.getTable().getType();
  bool inPlace = diesAt(op.getInput(), op);
  Place y = inPlace ? share(op.getResult(), op.getInput()) : home(op.getResult());
  launch(op, "positions", table.getFormat(), {pointer(op.getInput()), pointer(op.getTable()), y.pointer},
         {table.getShape()[0], table.getShape()[1], stride(op.getInput()), y.stride, static_cast<int64_t>(op.getOffset())}, {});
}

void Lowering::lowerScale(ir::ScaleOp op) {
  Place y = home(op.getResult());
  launch(op, "scale", std::nullopt, {pointer(op.getInput()), y.pointer}, {ir::features(op.getType()), stride(op.getInput()), y.stride}, {number(op.getFactor())});
}

void Lowering::lowerClamp(ir::ClampOp op) {
  Place y = home(op.getResult());
  launch(op, "clamp", std::nullopt, {pointer(op.getInput()), y.pointer}, {ir::features(op.getType()), stride(op.getInput()), y.stride}, {number(op.getLimit())});
}

void Lowering::lowerXielu(ir::XieluOp op) {
  bool inPlace = diesAt(op.getInput(), op);
  Place y = inPlace ? share(op.getResult(), op.getInput()) : home(op.getResult());
  launch(op, "xielu", std::nullopt, {pointer(op.getInput()), pointer(op.getParameters()), y.pointer}, {ir::features(op.getType()), stride(op.getInput()), y.stride}, {});
}

LogicalResult Lowering::lowerRopeCache(ir::RopeCacheOp op) {
  if (!op.getQuery().hasOneUse())
    return op.emitOpError("would overwrite a query that others read");
  ir::CacheType keys = op.getKeys().getType();
  Place q = places.at(op.getQuery());
  int64_t pairs = op.getCosSin() ? ir::features(op.getCosSin().getType()) / 2 : 0;
  launch(op, "rope_cache", std::nullopt,
         {q.pointer, pointer(op.getKey()), pointer(op.getValue()), pointer(op.getCosSin()), pointer(op.getQueryNorm()), pointer(op.getKeyNorm()),
          pointer(op.getKeys()), pointer(op.getValues())},
         {static_cast<int64_t>(op.getHeads()), keys.getHeads(), keys.getHeadDim(), pairs, static_cast<int64_t>(op.getPairing()), q.stride, stride(op.getKey()),
          stride(op.getValue()), keys.getPositions(), op.getNormAfter() ? 1 : 0},
         {number(op.getEps())});
  places[op.getResult()] = q;
  return success();
}

LogicalResult Lowering::lowerLogits(ir::LogitsOp op) {
  ArrayRef<int64_t> shape = op.getWeight().getType().getShape();
  Value partials = buffer(cpu::partialsBytes(threads)), logits = buffer(cpu::roundUp(shape[0], cpu::kPanelRows) * 4), token = buffer(64);
  int64_t normKind = op.getNormKind() ? static_cast<int64_t>(*op.getNormKind()) : -1;
  launch(op, "logits", op.getWeight().getType().getFormat(),
         {pointer(op.getInput()), pointer(op.getWeight()), pointer(op.getBias()), pointer(op.getNormWeight()), pointer(op.getNormBias()), partials, logits},
         {shape[0], shape[1], stride(op.getInput()), normKind},
         {number(op.getEps()), number(op.getScale()),
          number(op.getSoftcap())});
  launch(op, "argmax", std::nullopt, {partials, token}, {}, {});
  places[op.getToken()] = {token, 0};
  places[op.getLogits()] = {logits, shape[0]};
  return success();
}

LogicalResult Lowering::lower(Operation *op) {
  location = op->getLoc();
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](ir::WeightOp o) { return lowerWeight(o), success(); })
      .Case([&](ir::CacheOp o) { return lowerCache(o), success(); })
      .Case([&](ir::StateOp o) { return lowerState(o), success(); })
      .Case([&](ir::EmbedOp o) { return lowerEmbed(o), success(); })
      .Case([&](ir::RotaryOp o) { return lowerRotary(o), success(); })
      .Case([&](ir::NormOp o) { return lowerNorm(o), success(); })
      .Case([&](ir::LinearOp o) { return lowerLinear(o), success(); })
      .Case([&](ir::AttentionOp o) { return lowerAttention(o), success(); })
      .Case([&](ir::ConvOp o) { return lowerConv(o), success(); })
      .Case([&](ir::SelectiveScanOp o) { return lowerSelectiveScan(o), success(); })
      .Case([&](ir::StateScanOp o) { return lowerStateScan(o), success(); })
      .Case([&](ir::RouteOp o) { return lowerRoute(o), success(); })
      .Case([&](ir::AssembleOp o) { return lowerAssemble(o), success(); })
      .Case([&](ir::ExpertsOp o) { return lowerExperts(o), success(); })
      .Case([&](ir::CombineOp o) { return lowerCombine(o), success(); })
      .Case([&](ir::DeltaScanOp o) { return lowerDeltaScan(o), success(); })
      .Case([&](ir::ActivateOp o) { return lowerActivate(o), success(); })
      .Case([&](ir::GateOp o) { return lowerGate(o), success(); })
      .Case([&](ir::AddOp o) { return lowerAdd(o), success(); })
      .Case([&](ir::SliceOp o) { return lowerSlice(o), success(); })
      .Case([&](ir::PositionsOp o) { return lowerPositions(o), success(); })
      .Case([&](ir::ScaleOp o) { return lowerScale(o), success(); })
      .Case([&](ir::ClampOp o) { return lowerClamp(o), success(); })
      .Case([&](ir::XieluOp o) { return lowerXielu(o), success(); })
      .Case([&](ir::RopeCacheOp o) { return lowerRopeCache(o); })
      .Case([&](ir::LogitsOp o) { return lowerLogits(o); })
      .Case([&](func::ReturnOp o) {
        exec::ResultOp::create(builder, location, places.at(o.getOperand(0)).pointer, places.at(o.getOperand(1)).pointer);
        return success();
      })
      .Default([](Operation *other) { return other->emitOpError("has no lowering to 'exec'; run the fusion passes first"); });
}

LogicalResult Lowering::run() {
  auto logits = dyn_cast<func::ReturnOp>(step.front().getTerminator());
  if (!logits || logits.getNumOperands() != 2 || !ir::isTokens(logits.getOperand(0).getType()) || !ir::isActivations(logits.getOperand(1).getType()))
    return step.emitOpError("is no step; it must return the greedy token and the logits");
  int64_t context = contextOf(step);
  if (context == 0)
    return step.emitOpError() << "has no cache that says its context; give it the attribute '" << ir::contextAttrName << "'";
  auto program = exec::ProgramOp::create(builder, step.getLoc(), step.getSymName(), context, chunk, ir::features(logits.getOperand(1).getType()), IntegerAttr(),
                                         IntegerAttr(), IntegerAttr(), IntegerAttr());
  builder.setInsertionPointToStart(&program.getBody().emplaceBlock());
  absent = exec::NoneOp::create(builder, step.getLoc(), type(Space::None));
  for (Operation &op : step.front())
    if (failed(lower(&op)))
      return failure();
  step.erase();
  return success();
}

struct ConvertMccToExecPass : impl::ConvertMccToExecPassBase<ConvertMccToExecPass> {
  using ConvertMccToExecPassBase::ConvertMccToExecPassBase;

  void runOnOperation() override {
    for (func::FuncOp step : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (failed(Lowering(step, chunk, threads).run()))
        return signalPassFailure();
  }
};

} // namespace
} // namespace mcc
