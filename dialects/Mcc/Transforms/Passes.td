// Passes over the `mcc` dialect, in pipeline order. One file each, named as the pass.
#ifndef MCC_DIALECTS_MCC_TRANSFORMS_PASSES
#define MCC_DIALECTS_MCC_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

// Built ---------------------------------------------------------------------------------------------------------

def VerifyBuiltPass : Pass<"mcc-verify-built", "::mlir::func::FuncOp"> {
  let summary = "ends the mcc phase: the step is as the model defines it";
  let description = [{ Nothing is fused or placed, and the step returns the greedy token and the logits. }];
}

// Fusion --------------------------------------------------------------------------------------------------------

def JoinProjectionsPass : Pass<"mcc-join-projections", "::mlir::func::FuncOp"> {
  let summary = "joins the linears that read one value: q, k and v by rows, gate and up interleaved";
  let description = [{
    ```
    %q = linear %x, %wq       ->  %y = linear %x, %wqkv
    %k = linear %x, %wk           %q = slice %y at 0
                                  %k = slice %y at 64
    %g = linear %x, %wg       ->  %y = linear %x, %wgu gated activation silu
    %u = linear %x, %wu
    %y = gate silu %g, %u
    ```
    Only weights of one format join, since a panel has one.
  }];
  let dependentDialects = ["::mcc::ir::MccDialect"];
}

def FuseCacheWritePass : Pass<"mcc-fuse-cache-write", "::mlir::func::FuncOp"> {
  let summary = "folds per-head norms, rotation and cache writes of an attention into one op over q, k and v";
  let description = [{
    ```
    %q2 = rope(norm(%q)); append rope(norm(%k)) to %kc; append %v to %vc; attention %q2
      ->  %q2 = rope_cache %q, %k, %v into %kc, %vc ; attention %q2
    ```
  }];
  let dependentDialects = ["::mcc::ir::MccDialect"];
}

def FuseNormPass : Pass<"mcc-fuse-norm", "::mlir::func::FuncOp"> {
  let summary = "moves a norm into the linears that are its only users";
  let description = [{ `linear(norm(x))` -> `linear(x) norm rms ...`: each worker normalises for itself, a barrier less. }];
  let dependentDialects = ["::mcc::ir::MccDialect"];
}

def FuseEpiloguePass : Pass<"mcc-fuse-epilogue", "::mlir::func::FuncOp"> {
  let summary = "moves activations, scales and residual additions into the linear before them";
  let description = [{ `add(linear(x), r)` -> `linear(x) residual r`; `activate(linear(x))` -> `linear(x) activation`. }];
  let dependentDialects = ["::mcc::ir::MccDialect"];
}

def FuseLogitsPass : Pass<"mcc-fuse-logits", "::mlir::func::FuncOp"> {
  let summary = "joins last row, final norm, head, scaling and argmax into mcc.logits";
  let dependentDialects = ["::mcc::ir::MccDialect"];
  let description = [{ The greedy token leaves with the logits; only it need cross to the host. }];
}

def VerifyFusedPass : Pass<"mcc-verify-fused", "::mlir::func::FuncOp"> {
  let summary = "ends the fused phase: no op is left that only fusion lowers";
  let description = [{ Illegal after fusion: rope, cache_append, last_row, scale_logits, argmax. }];
}

// Placement -----------------------------------------------------------------------------------------------------

def PlacePass : Pass<"mcc-place", "::mlir::func::FuncOp"> {
  let summary = "gives every op, weight and cache a device";
  let description = [{ `device` places everything on one device; ops that have one keep it. }];
  let options = [Option<"device", "device", "std::string", "\"cpu\"", "cpu or gpu">];
  let dependentDialects = ["::mcc::ir::MccDialect"];
}

def VerifyPlacedPass : Pass<"mcc-verify-placed", "::mlir::func::FuncOp"> {
  let summary = "ends the placed phase: every op has a device";
  let description = [{ An op without one is an error at its location. }];
}

#endif
