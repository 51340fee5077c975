// Lays out `mcc_model` field by field. The order is MccModel's; the assertion at the end compares sizes.
#include "codegen/CPU/Descriptor.h"

#include "codegen/CPU/Calibration.h"
#include "kernels/KernelTable.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace mcc {

// Returns a private NUL-terminated string.
static Constant *text(Module &module, StringRef value) {
  Constant *data = ConstantDataArray::getString(module.getContext(), value);
  auto *global = new GlobalVariable(module, data->getType(), true, GlobalValue::PrivateLinkage, data);
  global->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
  return global;
}

namespace {

// Lays out the step's table (mcc/Program.h).
class TableLayout {
public:
  explicit TableLayout(Module &module) : module(module), context(module.getContext()) {}

  Constant *define(const exec::ProgramTable &table) {
    std::vector<Constant *> regions, launches;
    for (const exec::TableRegion &region : table.regions)
      regions.push_back(record({u32(static_cast<uint32_t>(region.space)), u32(0), u64(region.offset), u64(region.bytes), u64(region.rowBytes)}, sizeof(MccRegion)));
    for (const exec::TableLaunch &launch : table.launches)
      launches.push_back(define(launch));
    GlobalVariable *calibration = defineCalibration(module, formatsOf(table), /*gpu=*/true);
    Constant *program = record({u32(regions.size()), u32(launches.size()), array(regions), array(launches), calibration}, sizeof(MccProgram));
    return global(program);
  }

private:
  // Returns the formats of the products' weights, f32 where there are none.
  static SmallVector<Format> formatsOf(const exec::ProgramTable &table) {
    SmallVector<Format> formats;
    for (const exec::TableLaunch &launch : table.launches)
      if (StringRef name = kernels()[launch.kernel].name; launch.format && (name == "linear" || name == "logits" || name == "experts"))
        if (!is_contained(formats, *launch.format))
          formats.push_back(*launch.format);
    if (formats.empty())
      formats.push_back(Format::F32);
    return formats;
  }

  Constant *define(const exec::TableLaunch &launch) {
    std::vector<Constant *> buffers;
    for (const exec::TableArgument &argument : launch.buffers)
      buffers.push_back(record({u32(argument.region < 0 ? MCC_NO_REGION : argument.region), u32(argument.written), u64(argument.offset)}, sizeof(MccArgument)));
    auto function = [&](bool decode) { return module.getFunction(exec::LaunchCodes::functionName(launch.code, decode)); };
    Constant *fields[] = {text(module, launch.name),
                          u32(launch.kernel),
                          u32(launch.format ? static_cast<uint32_t>(*launch.format) : static_cast<uint32_t>(-1)),
                          u32(static_cast<uint32_t>(launch.device)),
                          u32(launch.barrier),
                          array(buffers),
                          global(ConstantDataArray::get(context, ArrayRef(reinterpret_cast<const uint64_t *>(launch.ints.data()), launch.ints.size()))),
                          global(ConstantDataArray::get(context, ArrayRef(launch.floats))),
                          function(true),
                          function(false)};
    return record(fields, sizeof(MccLaunch));
  }

  Constant *u32(uint32_t value) { return ConstantInt::get(Type::getInt32Ty(context), value); }
  Constant *u64(uint64_t value) { return ConstantInt::get(Type::getInt64Ty(context), value); }
  Constant *record(ArrayRef<Constant *> fields, [[maybe_unused]] size_t bytes) {
    Constant *value = ConstantStruct::getAnon(context, fields);
    assert(module.getDataLayout().getTypeAllocSize(value->getType()) == bytes && "mcc/Program.h and this layout differ");
    return value;
  }
  Constant *array(ArrayRef<Constant *> elements) {
    return global(ConstantArray::get(ArrayType::get(elements.empty() ? Type::getInt8Ty(context) : elements.front()->getType(), elements.size()), elements));
  }
  Constant *global(Constant *value) {
    auto *variable = new GlobalVariable(module, value->getType(), true, GlobalValue::PrivateLinkage, value);
    variable->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
    return variable;
  }

  Module &module;
  LLVMContext &context;
};

} // namespace

void defineModel(Module &module, const ModelDescriptor &descriptor, const CpuTarget &target) {
  LLVMContext &context = module.getContext();
  auto u32 = [&](uint32_t value) { return ConstantInt::get(Type::getInt32Ty(context), value); };
  auto u64 = [&](uint64_t value) { return ConstantInt::get(Type::getInt64Ty(context), value); };
  Constant *eosData = ConstantDataArray::get(context, ArrayRef<uint32_t>(reinterpret_cast<const uint32_t *>(descriptor.eosTokens.data()), descriptor.eosTokens.size()));
  auto *eos = new GlobalVariable(module, eosData->getType(), true, GlobalValue::PrivateLinkage, eosData);
  Constant *null = ConstantPointerNull::get(PointerType::get(context, 0));
  // Of libmccrt-cuda.a: what runs the table's launches on a GPU.
  auto gpuRuntime = [&] { return new GlobalVariable(module, Type::getInt8Ty(context), true, GlobalValue::ExternalLinkage, nullptr, "mccrt_gpu_runtime"); };
  Constant *fields[] = {
      u32(MCC_ABI_VERSION),
      u32(0),
      text(module, descriptor.info),
      text(module, join(target.requiredNames, " ")),
      ConstantDataArray::get(context, ArrayRef<uint8_t>(descriptor.blobId)),
      u64(descriptor.blobBytes),
      u64(descriptor.arenaBytes),
      u64(descriptor.scratchBytes),
      u64(descriptor.cacheBytes),
      u64(descriptor.context),
      u64(descriptor.chunk),
      u64(descriptor.vocabulary),
      u64(descriptor.logitsOffset),
      u64(descriptor.tokenOffset),
      u32(static_cast<uint32_t>(descriptor.bosToken)),
      u32(static_cast<uint32_t>(descriptor.eosTokens.size())),
      eos,
      module.getFunction("mcc_step"),
      descriptor.program ? TableLayout(module).define(*descriptor.program) : null,
      descriptor.program ? gpuRuntime() : null,
  };
  Constant *value = ConstantStruct::getAnon(context, fields);
  assert(module.getDataLayout().getTypeAllocSize(value->getType()) == sizeof(MccModel) && "MccModel and this layout differ");
  new GlobalVariable(module, value->getType(), true, GlobalValue::ExternalLinkage, value, "mcc_model");
}

} // namespace mcc
