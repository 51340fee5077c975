// Kernels' bitcode into native code.
//
// The module's functions call kernel entries (mcc_cpu_*) with constant numbers. Linking the kernels' bitcode, marking
// the entries always-inline and optimising specialises each kernel once per distinct caller: loops get constant bounds, and
// paths for other formats, activations or token counts vanish. The bitcode names no CPU; the target's name and features
// are put on every function here, so one bitcode serves all.
#include "codegen/CPU/NativeObject.h"

#include "compiler/Support/Error.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/IPO/Internalize.h"

using namespace llvm;

namespace mcc {
namespace {

std::unique_ptr<TargetMachine> makeMachine(const CpuTarget &target) {
  Triple triple(sys::getDefaultTargetTriple());
  std::string error;
  const Target *backEnd = TargetRegistry::lookupTarget(triple, error);
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Standard; // only what the kernels mark `contract`
  options.FunctionSections = true;
  return std::unique_ptr<TargetMachine>(
      backEnd->createTargetMachine(triple, target.cpu, join(target.features, ","), options, Reloc::PIC_, CodeModel::Small, CodeGenOptLevel::Aggressive));
}

// Links in the kernels that `module` calls.
Error linkKernels(Module &module, StringRef path) {
  auto buffer = MemoryBuffer::getFile(path);
  if (!buffer)
    return diagnose(path.str(), "cannot read the kernels: {0}; mcc's installation is incomplete", buffer.getError().message());
  auto kernels = parseBitcodeFile((*buffer)->getMemBufferRef(), module.getContext());
  if (!kernels)
    return diagnose(path.str(), "is no LLVM bitcode: {0}", toString(kernels.takeError()));
  (*kernels)->setDataLayout(module.getDataLayout());
  (*kernels)->setTargetTriple(module.getTargetTriple());
  if (Linker::linkModules(module, std::move(*kernels), Linker::LinkOnlyNeeded))
    return diagnose(path.str(), "cannot be linked into the step; mcc and its kernels are of different versions");
  return Error::success();
}

// Makes `mcc_cpu_wide_registers` say what the target has.
void setWideRegisters(Module &module, const CpuTarget &target) {
  Function *function = module.getFunction("mcc_cpu_wide_registers");
  if (!function)
    return;
  function->deleteBody();
  function->setLinkage(GlobalValue::InternalLinkage);
  function->removeFnAttr(Attribute::NoInline);
  function->removeFnAttr(Attribute::OptimizeNone);
  IRBuilder<> builder(BasicBlock::Create(module.getContext(), "", function));
  builder.CreateRet(builder.getInt64(is_contained(target.requiredNames, "avx512f")));
}

// Puts the target on every function, inlines kernels into what calls them and hides all symbols but `kept`.
void specialise(Module &module, const CpuTarget &target, const TargetMachine &machine, StringRef kept) {
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.removeFnAttr("target-cpu");
    function.removeFnAttr("tune-cpu");
    function.removeFnAttr("target-features");
    function.addFnAttr("target-cpu", target.cpu);
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    if (is_contained(target.requiredNames, "avx512f"))
      function.addFnAttr("prefer-vector-width", "512");
    function.addFnAttr(Attribute::NoUnwind);
    if (function.getName().starts_with("mcc_cpu_") && !function.hasFnAttribute(Attribute::NoInline))
      function.addFnAttr(Attribute::AlwaysInline);
  }
  internalizeModule(module, [&](const GlobalValue &value) { return value.getName() == kept; });
}

void optimise(Module &module, TargetMachine &machine) {
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(OptimizationLevel::O3).run(module, modules);
}

} // namespace

Expected<SmallVector<char>> emitNativeObject(Module &module, const CpuTarget &target, StringRef kernels, StringRef kept, function_ref<void(Module &)> define) {
  std::unique_ptr<TargetMachine> machine = makeMachine(target);
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(machine->getTargetTriple());
  define(module);
  if (Error error = linkKernels(module, kernels))
    return std::move(error);
  setWideRegisters(module, target);
  specialise(module, target, *machine, kept);
  if (verifyModule(module, &errs()))
    return diagnose("", "internal: the step's LLVM IR does not verify; please report this");
  optimise(module, *machine);

  SmallVector<char> object;
  raw_svector_ostream stream(object);
  legacy::PassManager emission;
  if (machine->addPassesToEmitFile(emission, stream, nullptr, CodeGenFileType::ObjectFile))
    return diagnose("", "internal: no object emission for this target");
  emission.run(module);
  return object;
}

} // namespace mcc
