// The compiler's phases as pass pipelines. See Pipelines.h.
#include "compiler/Pipelines/Pipelines.h"

#include "dialects/Conversion/ExecToLLVM/ExecToLLVM.h"
#include "dialects/Conversion/MccToExec/MccToExec.h"
#include "dialects/Exec/Transforms/Passes.h"
#include "dialects/Mcc/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace mcc {

static constexpr PhaseInfo phaseTable[] = {
    {Phase::Spec, "spec", "the normalised model spec, as JSON"},
    {Phase::Mcc, "mcc", "the step as the model defines it"},
    {Phase::Fused, "fused", "after fusion"},
    {Phase::Placed, "placed", "with a device for every op"},
    {Phase::Exec, "exec", "kernel launches over planned memory"},
    {Phase::Llvm, "llvm", "the step in the LLVM dialect"},
    {Phase::Obj, "obj", "the native object"},
    {Phase::Exe, "exe", "executable, weights and manifest (the default)"},
};

llvm::ArrayRef<PhaseInfo> phases() { return phaseTable; }

std::optional<Phase> parsePhase(llvm::StringRef name) {
  for (const PhaseInfo &info : phaseTable)
    if (info.name == name)
      return info.phase;
  return std::nullopt;
}

// Mcc: as the model defines it --------------------------------------------------------------------------------------

static void buildBuilt(OpPassManager &pm) { pm.nest<func::FuncOp>().addPass(ir::createVerifyBuiltPass()); }

// Fused: fewer, larger ops ------------------------------------------------------------------------------------------

static void buildFusion(OpPassManager &pm) {
  OpPassManager &step = pm.nest<func::FuncOp>();
  // Joining first: it leaves one reader of each norm, and slices that the cache write recognises.
  step.addPass(ir::createJoinProjectionsPass());
  step.addPass(ir::createFuseCacheWritePass());
  step.addPass(ir::createFuseNormPass());
  step.addPass(ir::createFuseEpiloguePass());
  // After the norms: the head's is folded into its linear by then, and logits takes both.
  step.addPass(ir::createFuseLogitsPass());
  step.addPass(createCanonicalizerPass());
  step.addPass(ir::createVerifyFusedPass());
}

// Placed: a device for every op -------------------------------------------------------------------------------------

static void buildPlacement(OpPassManager &pm, const PipelineOptions &options) {
  OpPassManager &step = pm.nest<func::FuncOp>();
  ir::PlacePassOptions place;
  place.device = options.device;
  step.addPass(ir::createPlacePass(place));
  step.addPass(ir::createVerifyPlacedPass());
}

// Exec: launches over planned memory --------------------------------------------------------------------------------

static void buildExec(OpPassManager &pm, const PipelineOptions &options) {
  ConvertMccToExecPassOptions convert;
  convert.chunk = options.chunk;
  pm.addPass(createConvertMccToExecPass(convert));
  OpPassManager &program = pm.nest<exec::ProgramOp>();
  program.addPass(exec::createPlanMemoryPass());
  program.addPass(exec::createInsertBarriersPass());
  program.addPass(exec::createVerifyPlannedPass());
}

// Llvm: the step as code --------------------------------------------------------------------------------------------

static void buildLlvm(OpPassManager &pm, const PipelineOptions &options) {
  // Rolled here and not before, so that in the exec phase every launch has its own name and device.
  pm.nest<exec::ProgramOp>().addPass(exec::createOutlineLayersPass());
  ConvertExecToLLVMPassOptions convert;
  convert.entries = options.launchEntries;
  pm.addPass(createConvertExecToLLVMPass(convert));
  pm.addPass(createVerifyLoweredPass());
}

LogicalResult runPhases(ModuleOp module, Phase from, Phase to, const PipelineOptions &options) {
  PassManager pm(module.getContext());
  auto within = [&](Phase phase) { return from < phase && phase <= to; };
  if (from == Phase::Mcc)
    buildBuilt(pm);
  if (within(Phase::Fused))
    buildFusion(pm);
  if (within(Phase::Placed))
    buildPlacement(pm, options);
  if (within(Phase::Exec))
    buildExec(pm, options);
  if (within(Phase::Llvm))
    buildLlvm(pm, options);
  return pm.run(module);
}

void registerDialects(DialectRegistry &registry) {
  registry.insert<ir::MccDialect, exec::ExecDialect, func::FuncDialect, LLVM::LLVMDialect>();
}

void registerPasses() {
  ir::registerMccPasses();
  exec::registerExecPasses();
  registerMccToExecPasses();
  registerExecToLLVMPasses();
  registerTransformsPasses();
  PassPipelineRegistration<>("mcc-phase-fused", "from phase mcc to phase fused", buildFusion);
  PassPipelineRegistration<>("mcc-phase-placed", "from phase fused to phase placed", [](OpPassManager &pm) { buildPlacement(pm, {}); });
  PassPipelineRegistration<>("mcc-phase-exec", "from phase placed to phase exec", [](OpPassManager &pm) { buildExec(pm, {}); });
  PassPipelineRegistration<>("mcc-phase-llvm", "from phase exec to phase llvm", [](OpPassManager &pm) { buildLlvm(pm, {}); });
}

} // namespace mcc
