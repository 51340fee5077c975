#ifndef MCC_DIALECTS_CONVERSION_MCCTOEXEC_PASSES
#define MCC_DIALECTS_CONVERSION_MCCTOEXEC_PASSES

include "mlir/Pass/PassBase.td"

def ConvertMccToExecPass : Pass<"convert-mcc-to-exec", "::mlir::ModuleOp"> {
  let summary = "turns the placed step into launches of named kernels over buffers";
  let description = [{
    Every value becomes a buffer of `chunk` rows, a view of one, or an address among weights and caches; every op becomes
    one or two launches. A residual addition whose operand dies is done in place.
  }];
  let options = [Option<"chunk", "chunk", "int64_t", "128", "most tokens in one step">,
                 Option<"threads", "threads", "int64_t", "256", "most workers in one step">];
  let dependentDialects = ["::mcc::exec::ExecDialect"];
}

#endif
