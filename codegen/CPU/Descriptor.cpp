// Lays out `mcc_model` field by field. The order is MccModel's; the assertion at the end compares sizes.
#include "codegen/CPU/Descriptor.h"

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

void defineModel(Module &module, const ModelDescriptor &descriptor, const CpuTarget &target) {
  LLVMContext &context = module.getContext();
  auto u32 = [&](uint32_t value) { return ConstantInt::get(Type::getInt32Ty(context), value); };
  auto u64 = [&](uint64_t value) { return ConstantInt::get(Type::getInt64Ty(context), value); };
  Constant *eosData = ConstantDataArray::get(context, ArrayRef<uint32_t>(reinterpret_cast<const uint32_t *>(descriptor.eosTokens.data()), descriptor.eosTokens.size()));
  auto *eos = new GlobalVariable(module, eosData->getType(), true, GlobalValue::PrivateLinkage, eosData);
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
  };
  Constant *value = ConstantStruct::getAnon(context, fields);
  assert(module.getDataLayout().getTypeAllocSize(value->getType()) == sizeof(MccModel) && "MccModel and this layout differ");
  new GlobalVariable(module, value->getType(), true, GlobalValue::ExternalLinkage, value, "mcc_model");
}

} // namespace mcc
