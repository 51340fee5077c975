// Reads a planned program off its ops. See ProgramTable.h.
#include "dialects/Exec/IR/ProgramTable.h"

#include "dialects/Exec/IR/Address.h"
#include "kernels/KernelTable.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace mcc::exec {

Attribute LaunchCodes::key(LaunchOp launch) {
  Builder builder(launch.getContext());
  NamedAttrList attributes(launch->getAttrDictionary());
  attributes.erase(launch.getDeviceAttrName());
  SmallVector<Attribute> parts{attributes.getDictionary(launch.getContext())};
  for (Type type : launch.getBuffers().getTypes())
    parts.push_back(builder.getBoolAttr(cast<PointerType>(type).getSpace() == Space::None));
  return builder.getArrayAttr(parts);
}

LaunchCodes::LaunchCodes(ProgramOp program) {
  program.walk([&](LaunchOp launch) { numbers.insert({key(launch), static_cast<unsigned>(numbers.size())}); });
}

std::string LaunchCodes::functionName(unsigned number, bool decode) { return "mcc_launch_" + llvm::utostr(number) + (decode ? "_decode" : "_prefill"); }

std::string placeName(Location location) {
  std::string name;
  location->walk([&](Location part) {
    if (auto named = dyn_cast<NameLoc>(part))
      name += (name.empty() ? "" : " + ") + named.getName().str();
    return WalkResult::advance();
  });
  return name;
}

namespace {

class Reader {
public:
  explicit Reader(ProgramOp program) : program(program), codes(program) {}

  ProgramTable run() {
    bool barrier = false;
    for (Operation &op : program.getBody().front()) {
      barrier |= isa<BarrierOp>(op);
      if (auto launch = dyn_cast<LaunchOp>(op)) {
        table.launches.push_back(read(launch, barrier));
        barrier = false;
      }
    }
    return std::move(table);
  }

private:
  TableLaunch read(LaunchOp launch, bool barrier) {
    const KernelInfo *kernel = findKernel(launch.getKernel());
    TableLaunch result{placeName(launch.getLoc()), static_cast<uint32_t>(kernelIndex(*kernel)), std::nullopt, launch.getDevice(), codes.of(launch), barrier,
                       {},  launch.getInts().vec(), launch.getFloats().vec()};
    if (launch.getFormat())
      result.format = parseFormat(*launch.getFormat());
    for (auto [pointer, buffer] : llvm::zip(launch.getBuffers(), kernel->buffers)) {
      int region = regionOf(pointer);
      result.buffers.push_back({region, buffer.written, region < 0 ? 0 : addressOf(pointer).offset - table.regions[region].offset});
    }
    return result;
  }

  // Returns the number of the region that `pointer` points into, -1 where it is absent.
  int regionOf(Value pointer) {
    while (auto view = pointer.getDefiningOp<ViewOp>())
      pointer = view.getBase();
    Operation *op = pointer.getDefiningOp();
    if (isa<NoneOp>(op))
      return -1;
    auto [entry, added] = regions.try_emplace(op, static_cast<int>(table.regions.size()));
    if (added) {
      Address address = addressOf(pointer);
      auto buffer = dyn_cast<BufferOp>(op);
      table.regions.push_back({address.space, address.offset, address.bytes, buffer ? static_cast<int64_t>(buffer.getRowBytes().value_or(0)) : 0});
    }
    return entry->second;
  }

  ProgramOp program;
  LaunchCodes codes;
  ProgramTable table;
  llvm::DenseMap<Operation *, int> regions;
};

} // namespace

ProgramTable programTable(ProgramOp program) { return Reader(program).run(); }

} // namespace mcc::exec
