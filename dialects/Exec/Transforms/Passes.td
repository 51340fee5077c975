// Passes over the `exec` dialect, in pipeline order.
#ifndef MCC_DIALECTS_EXEC_TRANSFORMS_PASSES
#define MCC_DIALECTS_EXEC_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def PlanMemoryPass : Pass<"exec-plan-memory", "::mcc::exec::ProgramOp"> {
  let summary = "gives every weight, cache and buffer an address, and the program its sizes";
  let description = [{
    Weights and caches follow program order, 64-byte aligned. Buffers share addresses where their lifetimes are disjoint:
    largest first, each at the lowest address free for its whole life.
  }];
}

def InsertBarriersPass : Pass<"exec-insert-barriers", "::mcc::exec::ProgramOp"> {
  let summary = "puts a barrier before each launch that depends on one since the last barrier";
  let description = [{ Dependence is overlap of planned bytes, read after write, write after read or write after write. }];
}

def OutlineLayersPass : Pass<"exec-outline-layers", "::mcc::exec::ProgramOp"> {
  let summary = "rolls identical layers into exec.repeat";
  let description = [{
    The longest run of equal launches (kernel and numbers; addresses and devices apart) becomes one body; addresses that differ
    between iterations become its arguments. Then the same left and right of it.
  }];
}

def VerifyPlannedPass : Pass<"exec-verify-planned", "::mcc::exec::ProgramOp"> {
  let summary = "ends the exec phase: every address is known and within its memory";
  let description = [{ A missing address or one past the end is an error at the op. }];
}

#endif
