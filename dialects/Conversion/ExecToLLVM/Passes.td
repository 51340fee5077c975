#ifndef MCC_DIALECTS_CONVERSION_EXECTOLLVM_PASSES
#define MCC_DIALECTS_CONVERSION_EXECTOLLVM_PASSES

include "mlir/Pass/PassBase.td"

def ConvertExecToLLVMPass : Pass<"convert-exec-to-llvm", "::mlir::ModuleOp"> {
  let summary = "turns a planned program into `mcc_step` in the LLVM dialect";
  let description = [{
    `mcc_step(MccStep *)` picks one of two variants of the program by token count: decode (one token, a constant) and
    prefill. Equal launches share one internal function that calls the kernel with constant numbers, so that linking the
    kernels' bitcode specialises them once. exec.repeat becomes a loop over a constant table of addresses.
  }];
  let options = [Option<"entries", "entries", "bool", "false", "emit mcc_launch_N_* that run one launch each">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def VerifyLoweredPass : Pass<"mcc-verify-lowered", "::mlir::ModuleOp"> {
  let summary = "ends the llvm phase: the LLVM dialect alone, with the step's symbol";
  let description = [{ An op of another dialect, or no `mcc_step`, is an error. }];
}

#endif
