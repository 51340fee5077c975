// Gives memory its addresses.
//
// Weights and caches simply follow each other. A buffer lives from its first launch to its last (through views); buffers
// are placed largest first, each at the lowest 64-byte aligned address where no buffer alive at the same time lies. That
// first-fit by size is within a few per cent of the peak for the near-chains that decoders are.
#include "dialects/Exec/Transforms/Passes.h"

#include "dialects/Exec/IR/Address.h"
#include "kernels/cpu/Sizes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace mcc::exec {
#define GEN_PASS_DEF_PLANMEMORYPASS
#define GEN_PASS_DEF_VERIFYPLANNEDPASS
#include "dialects/Exec/Transforms/Passes.h.inc"

namespace {

constexpr int64_t alignment = 64;

struct Lifetime {
  BufferOp buffer;
  int64_t first = INT64_MAX, last = -1; // launches, both included
  int64_t bytes = 0, address = 0;
  size_t order = 0; // of first use, to break ties the same way every time
};

// Returns the buffer behind `pointer`, or null.
BufferOp bufferOf(Value pointer) {
  while (auto view = pointer.getDefiningOp<ViewOp>())
    pointer = view.getBase();
  return pointer.getDefiningOp<BufferOp>();
}

struct PlanMemoryPass : impl::PlanMemoryPassBase<PlanMemoryPass> {
  void runOnOperation() override {
    ProgramOp program = getOperation();
    program.setWeightBytes(planInOrder<WeightOp, ConstantOp>(program));
    program.setCacheBytes(planInOrder<CacheOp>(program));
    program.setArenaBytes(planBuffers(program));
    program.setScratchBytes(scratchBytes(program));
  }

  // Lays out all ops of the given kinds in program order; returns the end.
  template <typename... Ops>
  static int64_t planInOrder(ProgramOp program) {
    int64_t end = 0;
    for (Operation &op : program.getBody().front()) {
      if (!isa<Ops...>(op))
        continue;
      op.setAttr("address", Builder(op.getContext()).getI64IntegerAttr(end));
      end = cpu::roundUp(end + op.getAttrOfType<IntegerAttr>("bytes").getInt(), alignment);
    }
    return end;
  }

  static int64_t planBuffers(ProgramOp program) {
    SmallVector<Lifetime> lifetimes = lifetimesOf(program);
    llvm::sort(lifetimes, [](const Lifetime &a, const Lifetime &b) { return a.bytes != b.bytes ? a.bytes > b.bytes : a.order < b.order; });
    int64_t end = 0;
    for (size_t i = 0; i < lifetimes.size(); ++i) {
      Lifetime &life = lifetimes[i];
      life.address = lowestFree(ArrayRef(lifetimes).take_front(i), life);
      life.buffer.setAddress(life.address);
      end = std::max(end, cpu::roundUp(life.address + life.bytes, alignment));
    }
    return end;
  }

  static SmallVector<Lifetime> lifetimesOf(ProgramOp program) {
    llvm::MapVector<Operation *, Lifetime> lifetimes;
    int64_t time = 0;
    for (Operation &op : program.getBody().front()) {
      if (!isa<LaunchOp, ResultOp>(op))
        continue;
      for (Value operand : op.getOperands())
        if (BufferOp buffer = bufferOf(operand)) {
          Lifetime &life = lifetimes[buffer];
          if (!life.buffer)
            life.order = lifetimes.size();
          life.buffer = buffer;
          life.bytes = buffer.getBytes();
          life.first = std::min(life.first, time);
          life.last = time;
        }
      ++time;
    }
    return llvm::map_to_vector(lifetimes, [](auto &entry) { return entry.second; });
  }

  // Returns the lowest address where `wanted` overlaps none of `placed` that is alive with it.
  static int64_t lowestFree(ArrayRef<Lifetime> placed, const Lifetime &wanted) {
    SmallVector<std::pair<int64_t, int64_t>> taken;
    for (const Lifetime &other : placed)
      if (other.first <= wanted.last && wanted.first <= other.last)
        taken.push_back({other.address, cpu::roundUp(other.address + other.bytes, alignment)});
    llvm::sort(taken);
    int64_t address = 0;
    for (auto [begin, end] : taken) {
      if (address + wanted.bytes <= begin)
        break;
      address = std::max(address, end);
    }
    return address;
  }

  // Returns the most private scratch any launch needs.
  static int64_t scratchBytes(ProgramOp program) {
    int64_t most = 0, chunk = program.getChunk();
    program.walk([&](LaunchOp launch) {
      StringRef kernel = launch.getKernel();
      if (kernel == "linear" || kernel == "logits")
        most = std::max(most, cpu::linearScratchBytes(chunk, launch.getInt("cols")));
      else if (kernel == "experts")
        most = std::max(most, cpu::expertsScratchBytes(launch.getInt("cols")));
      else if (kernel == "route")
        most = std::max(most, cpu::routeScratchBytes(launch.getInt("experts")));
      else if (kernel == "attention")
        most = std::max(most, cpu::attentionScratchBytes(launch.getInt("head_dim")));
    });
    return cpu::roundUp(most, alignment);
  }
};

struct VerifyPlannedPass : impl::VerifyPlannedPassBase<VerifyPlannedPass> {
  void runOnOperation() override {
    ProgramOp program = getOperation();
    if (!program.getArenaBytes() || !program.getWeightBytes() || !program.getCacheBytes() || !program.getScratchBytes()) {
      program.emitOpError("has no memory sizes; run exec-plan-memory");
      return signalPassFailure();
    }
    for (Operation &op : program.getBody().front())
      if (isa<WeightOp, ConstantOp, CacheOp, BufferOp>(op) && failed(verifyMemory(program, &op)))
        return signalPassFailure();
  }

  static LogicalResult verifyMemory(ProgramOp program, Operation *op) {
    if (!op->hasAttr("address") && !op->use_empty())
      return op->emitOpError("has no address; run exec-plan-memory");
    Address address = addressOf(op->getResult(0));
    int64_t size = address.space == Space::Arena     ? *program.getArenaBytes()
                   : address.space == Space::Weights ? *program.getWeightBytes()
                                                     : *program.getCacheBytes();
    if (address.offset < 0 || address.offset % alignment || address.offset + address.bytes > size)
      return op->emitOpError() << "lies at " << address.offset << " with " << address.bytes << " bytes; its memory has " << size;
    return success();
  }
};

} // namespace
} // namespace mcc::exec
