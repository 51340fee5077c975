// Lowers a planned `exec` program to the LLVM dialect.
//
//   exec.launch norm(%x, ...) ints(cols = 64, ...)      llvm.func internal @launch.3.norm(%step, %tokens, %x, ...) { call @mcc_cpu_norm(..., 64, ...) }
//   exec.repeat 2 addresses [a0, b0, a1, b1] {...}  ->  loop n in [0, 2): a = base + table[2n], b = base + table[2n+1] ; calls
//   exec.barrier                                        call @mccrt_barrier(%step)
//
// The program is emitted twice, for one token (a constant, which prunes the kernels) and for any number. A launch function
// takes the addresses, so all layers share it; everything else in it is constant. With the option `entries`, each has an
// entry besides that takes its addresses as an array: mcc_launch_N_decode and _prefill, for a runtime that runs launches
// one by one.
#include "dialects/Conversion/ExecToLLVM/ExecToLLVM.h"

#include "dialects/Exec/IR/Address.h"
#include "dialects/Exec/IR/ProgramTable.h"
#include "kernels/KernelTable.h"
#include "kernels/Step.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace mcc {
#define GEN_PASS_DEF_CONVERTEXECTOLLVMPASS
#define GEN_PASS_DEF_VERIFYLOWEREDPASS
#include "dialects/Conversion/ExecToLLVM/Passes.h.inc"

namespace {

using exec::Space;

class Lowering {
public:
  Lowering(ModuleOp module, bool entries)
      : entries(entries), module(module), builder(module.getContext()), pointer(LLVM::LLVMPointerType::get(module.getContext())), i64(builder.getI64Type()),
        voidType(LLVM::LLVMVoidType::get(module.getContext())) {}

  void run(exec::ProgramOp program);

private:
  // The three bases of one variant of the step, and its token count.
  struct Frame {
    Value step, tokens, weights, arena, cache;
    bool decode;
  };

  LLVM::LLVMFuncOp emitVariant(exec::ProgramOp program, bool decode);
  void emitBody(Block &body, const Frame &frame, llvm::DenseMap<Value, Value> &arguments);
  void emitRepeat(exec::RepeatOp repeat, const Frame &frame);
  void emitLaunch(exec::LaunchOp launch, const Frame &frame, llvm::DenseMap<Value, Value> &arguments);
  void emitDispatch(LLVM::LLVMFuncOp decode, LLVM::LLVMFuncOp prefill);
  LLVM::LLVMFuncOp launchFunction(exec::LaunchOp launch, bool decode);
  void emitEntries(exec::ProgramOp program);
  void emitEntry(exec::LaunchOp launch, StringRef name, bool decode);
  LLVM::GlobalOp table(ArrayRef<int64_t> addresses);
  LLVM::LLVMFuncOp declare(StringRef name, LLVM::LLVMFunctionType type);

  Value load(Value step, int64_t offset, Type type) { return LLVM::LoadOp::create(builder, loc, type, at(step, constant(offset))); }
  Value constant(int64_t value) { return LLVM::ConstantOp::create(builder, loc, i64, builder.getI64IntegerAttr(value)); }
  Value at(Value base, Value offset) { return LLVM::GEPOp::create(builder, loc, pointer, builder.getI8Type(), base, ValueRange{offset}); }
  Value base(const Frame &frame, Space space) { return space == Space::Weights ? frame.weights : space == Space::Cache ? frame.cache : frame.arena; }

  const bool entries;
  ModuleOp module;
  OpBuilder builder;
  Location loc = UnknownLoc::get(module.getContext());
  Type pointer, i64, voidType;
  llvm::DenseMap<Attribute, LLVM::LLVMFuncOp> launches;
  llvm::DenseMap<Attribute, LLVM::GlobalOp> tables;
};

LLVM::LLVMFuncOp Lowering::declare(StringRef name, LLVM::LLVMFunctionType type) {
  if (auto found = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return found;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  return LLVM::LLVMFuncOp::create(builder, loc, name, type);
}

// Makes or finds the function that is this launch but for its addresses.
LLVM::LLVMFuncOp Lowering::launchFunction(exec::LaunchOp launch, bool decode) {
  NamedAttrList attributes(launch->getAttrDictionary());
  attributes.erase(launch.getDeviceAttrName()); // the code is for the CPU wherever the launch is placed
  SmallVector<Attribute> parts{builder.getBoolAttr(decode), attributes.getDictionary(builder.getContext())};
  for (Type type : launch.getBuffers().getTypes())
    parts.push_back(builder.getBoolAttr(cast<exec::PointerType>(type).getSpace() == Space::None));
  LLVM::LLVMFuncOp &function = launches[builder.getArrayAttr(parts)];
  if (function)
    return function;

  std::string kernel = launch.getKernel().str() + (launch.getFormat() ? "_" + launch.getFormat()->str() : "");
  Type f32 = builder.getF32Type();
  SmallVector<Type> types{pointer, i64}, kernelTypes{pointer, i64};
  for (Type type : launch.getBuffers().getTypes()) {
    kernelTypes.push_back(pointer);
    if (cast<exec::PointerType>(type).getSpace() != Space::None)
      types.push_back(pointer);
  }
  kernelTypes.append(launch.getInts().size(), i64);
  kernelTypes.append(launch.getFloats().size(), f32);
  auto callee = declare("mcc_cpu_" + kernel, LLVM::LLVMFunctionType::get(voidType, kernelTypes));

  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(module.getBody());
  std::string name = "launch." + llvm::utostr(launches.size()) + "." + kernel;
  function = LLVM::LLVMFuncOp::create(builder, loc, name, LLVM::LLVMFunctionType::get(voidType, types), LLVM::Linkage::Internal);
  function.setNoInline(true);
  Block *entry = function.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);
  SmallVector<Value> arguments{entry->getArgument(0), decode ? constant(1) : entry->getArgument(1)};
  unsigned next = 2;
  for (Type type : launch.getBuffers().getTypes()) {
    bool absent = cast<exec::PointerType>(type).getSpace() == Space::None;
    arguments.push_back(absent ? LLVM::ZeroOp::create(builder, loc, pointer).getResult() : entry->getArgument(next++));
  }
  for (int64_t value : launch.getInts())
    arguments.push_back(constant(value));
  for (float value : launch.getFloats())
    arguments.push_back(LLVM::ConstantOp::create(builder, loc, f32, builder.getF32FloatAttr(value)));
  LLVM::CallOp::create(builder, loc, callee, arguments);
  LLVM::ReturnOp::create(builder, loc, ValueRange());
  return function;
}

// Emits the function that calls the launch's own with the pointers of an array.
void Lowering::emitEntry(exec::LaunchOp launch, StringRef name, bool decode) {
  loc = launch.getLoc();
  LLVM::LLVMFuncOp callee = launchFunction(launch, decode);
  builder.setInsertionPointToEnd(module.getBody());
  auto function = LLVM::LLVMFuncOp::create(builder, loc, name, LLVM::LLVMFunctionType::get(voidType, {pointer, i64, pointer}));
  Block *entry = function.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);
  SmallVector<Value> operands{entry->getArgument(0), entry->getArgument(1)};
  for (auto [index, type] : llvm::enumerate(launch.getBuffers().getTypes()))
    if (cast<exec::PointerType>(type).getSpace() != Space::None)
      operands.push_back(load(entry->getArgument(2), static_cast<int64_t>(index * sizeof(void *)), pointer));
  LLVM::CallOp::create(builder, loc, callee, operands);
  LLVM::ReturnOp::create(builder, loc, ValueRange());
}

void Lowering::emitEntries(exec::ProgramOp program) {
  exec::LaunchCodes codes(program);
  llvm::DenseSet<unsigned> done;
  program.walk([&](exec::LaunchOp launch) {
    unsigned code = codes.of(launch);
    if (!done.insert(code).second)
      return;
    for (bool decode : {true, false})
      emitEntry(launch, exec::LaunchCodes::functionName(code, decode), decode);
  });
}

void Lowering::emitLaunch(exec::LaunchOp launch, const Frame &frame, llvm::DenseMap<Value, Value> &arguments) {
  SmallVector<Value> operands{frame.step, frame.tokens};
  for (Value buffer : launch.getBuffers()) {
    Space space = cast<exec::PointerType>(buffer.getType()).getSpace();
    if (space == Space::None)
      continue;
    Value offset = isa<BlockArgument>(buffer) ? arguments.at(buffer) : constant(exec::addressOf(buffer).offset);
    operands.push_back(at(base(frame, space), offset));
  }
  LLVM::CallOp::create(builder, loc, launchFunction(launch, frame.decode), operands);
}

LLVM::GlobalOp Lowering::table(ArrayRef<int64_t> addresses) {
  LLVM::GlobalOp &global = tables[builder.getDenseI64ArrayAttr(addresses)];
  if (global)
    return global;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  auto type = LLVM::LLVMArrayType::get(i64, addresses.size());
  auto values = DenseElementsAttr::get(RankedTensorType::get({static_cast<int64_t>(addresses.size())}, i64), addresses);
  std::string name = "addresses." + llvm::utostr(tables.size());
  return global = LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal, name, values);
}

void Lowering::emitRepeat(exec::RepeatOp repeat, const Frame &frame) {
  Block &body = repeat.getBody().front();
  int64_t width = body.getNumArguments();
  Value rows = width ? LLVM::AddressOfOp::create(builder, loc, table(repeat.getAddresses())).getResult() : Value();
  Block *before = builder.getInsertionBlock();
  Block *loop = builder.createBlock(before->getParent(), {}, {i64}, {loc});
  builder.setInsertionPointToEnd(before);
  LLVM::BrOp::create(builder, loc, ValueRange{constant(0)}, loop);
  builder.setInsertionPointToStart(loop);
  llvm::DenseMap<Value, Value> arguments;
  Value row = LLVM::MulOp::create(builder, loc, loop->getArgument(0), constant(width * 8));
  for (BlockArgument argument : body.getArguments()) {
    Value offset = LLVM::AddOp::create(builder, loc, row, constant(argument.getArgNumber() * 8));
    arguments[argument] = LLVM::LoadOp::create(builder, loc, i64, at(rows, offset));
  }
  emitBody(body, frame, arguments);
  Value next = LLVM::AddOp::create(builder, loc, loop->getArgument(0), constant(1));
  Value more = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::slt, next, constant(repeat.getCount()));
  Block *from = builder.getInsertionBlock();
  Block *after = builder.createBlock(before->getParent());
  builder.setInsertionPointToEnd(from);
  LLVM::CondBrOp::create(builder, loc, more, loop, ValueRange{next}, after, ValueRange());
  builder.setInsertionPointToEnd(after);
}

void Lowering::emitBody(Block &body, const Frame &frame, llvm::DenseMap<Value, Value> &arguments) {
  for (Operation &op : body) {
    loc = op.getLoc();
    if (auto launch = dyn_cast<exec::LaunchOp>(op))
      emitLaunch(launch, frame, arguments);
    else if (auto repeat = dyn_cast<exec::RepeatOp>(op))
      emitRepeat(repeat, frame);
    else if (isa<exec::BarrierOp>(op))
      LLVM::CallOp::create(builder, loc, declare("mccrt_barrier", LLVM::LLVMFunctionType::get(voidType, {pointer})), ValueRange{frame.step});
  }
}

LLVM::LLVMFuncOp Lowering::emitVariant(exec::ProgramOp program, bool decode) {
  builder.setInsertionPointToEnd(module.getBody());
  auto function = LLVM::LLVMFuncOp::create(builder, loc, decode ? "step.decode" : "step.prefill", LLVM::LLVMFunctionType::get(voidType, {pointer}),
                                           LLVM::Linkage::Internal);
  function.setNoInline(true);
  Block *entry = function.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);
  Value step = entry->getArgument(0);
  Frame frame{step,
              decode ? constant(1) : load(step, offsetof(MccStep, count), i64),
              load(step, offsetof(MccStep, weights), pointer),
              load(step, offsetof(MccStep, arena), pointer),
              load(step, offsetof(MccStep, cache), pointer),
              decode};
  llvm::DenseMap<Value, Value> arguments;
  emitBody(program.getBody().front(), frame, arguments);
  LLVM::ReturnOp::create(builder, loc, ValueRange());
  return function;
}

void Lowering::emitDispatch(LLVM::LLVMFuncOp decode, LLVM::LLVMFuncOp prefill) {
  builder.setInsertionPointToEnd(module.getBody());
  auto function = LLVM::LLVMFuncOp::create(builder, loc, stepSymbol, LLVM::LLVMFunctionType::get(voidType, {pointer}));
  Block *entry = function.addEntryBlock(builder);
  Block *one = builder.createBlock(&function.getBody()), *many = builder.createBlock(&function.getBody());
  builder.setInsertionPointToStart(entry);
  Value count = load(entry->getArgument(0), offsetof(MccStep, count), i64);
  Value single = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, count, constant(1));
  LLVM::CondBrOp::create(builder, loc, single, one, many);
  for (auto [block, variant] : {std::pair(one, decode), std::pair(many, prefill)}) {
    builder.setInsertionPointToStart(block);
    LLVM::CallOp::create(builder, loc, variant, ValueRange{entry->getArgument(0)});
    LLVM::ReturnOp::create(builder, loc, ValueRange());
  }
}

void Lowering::run(exec::ProgramOp program) {
  loc = program.getLoc();
  LLVM::LLVMFuncOp decode = emitVariant(program, /*decode=*/true);
  LLVM::LLVMFuncOp prefill = emitVariant(program, /*decode=*/false);
  loc = program.getLoc();
  emitDispatch(decode, prefill);
  if (entries)
    emitEntries(program);
  program.erase();
}

struct ConvertExecToLLVMPass : impl::ConvertExecToLLVMPassBase<ConvertExecToLLVMPass> {
  using ConvertExecToLLVMPassBase::ConvertExecToLLVMPassBase;

  void runOnOperation() override {
    auto programs = getOperation().getOps<exec::ProgramOp>();
    if (programs.empty())
      return;
    Lowering(getOperation(), entries).run(*programs.begin());
  }
};

struct VerifyLoweredPass : impl::VerifyLoweredPassBase<VerifyLoweredPass> {
  void runOnOperation() override {
    if (!getOperation().lookupSymbol<LLVM::LLVMFuncOp>(stepSymbol)) {
      getOperation().emitError() << "defines no '" << stepSymbol << "'; run convert-exec-to-llvm";
      return signalPassFailure();
    }
    WalkResult result = getOperation().walk([](Operation *op) {
      if (isa<ModuleOp>(op) || isa<LLVM::LLVMDialect>(op->getDialect()))
        return WalkResult::advance();
      op->emitOpError("is left over in the llvm phase");
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
} // namespace mcc
