// Resolves a CPU name to LLVM's name and features, and to the names the executable checks at start.
#include "codegen/CPU/EmitObject.h"

#include "compiler/Support/Error.h"
#include "compiler/Support/Suggest.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

namespace mcc {

// Extensions that generated code may use and an executable can test for; LLVM and __builtin_cpu_supports spell them alike.
static constexpr const char *checkedFeatures[] = {
#define MCC_CPU_FEATURE(name) name,
#include "mcc/CpuFeatures.def"
};

static const llvm::Target *lookupTarget(std::string &error) {
  static const bool initialised = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialised;
  return llvm::TargetRegistry::lookupTarget(llvm::Triple(llvm::sys::getDefaultTargetTriple()), error);
}

llvm::Expected<CpuTarget> resolveCpuTarget(llvm::StringRef name) {
  std::string problem;
  const llvm::Target *target = lookupTarget(problem);
  if (!target)
    return diagnose("", "no code generator for this machine: {0}", problem);
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  CpuTarget result;
  result.cpu = name == "native" ? llvm::sys::getHostCPUName().str() : name.str();
  if (name == "native")
    for (auto &feature : llvm::sys::getHostCPUFeatures())
      result.features.push_back((feature.second ? "+" : "-") + feature.first().str());
  llvm::sort(result.features);
  std::unique_ptr<llvm::MCSubtargetInfo> plain(target->createMCSubtargetInfo(triple, "", ""));
  if (!plain->isCPUStringValid(result.cpu)) {
    std::vector<llvm::StringRef> known{"native"};
    for (const llvm::SubtargetSubTypeKV &entry : plain->getAllProcessorDescriptions())
      known.push_back(entry.Key);
    return diagnose("", "unknown target CPU '{0}'{1}", name, suggestName(name, known));
  }
  std::string joined = llvm::join(result.features, ",");
  std::unique_ptr<llvm::MCSubtargetInfo> info(target->createMCSubtargetInfo(triple, result.cpu, joined));
  for (const char *feature : checkedFeatures)
    if (info->checkFeatures(std::string("+") + feature))
      result.requiredNames.push_back(feature);
  return result;
}

} // namespace mcc
