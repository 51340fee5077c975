// The verifiers that close the fused and placed phases; that of the mcc phase is in verify_built.mlir.
// RUN: mcc-opt %s -split-input-file -verify-diagnostics -pass-pipeline='builtin.module(func.func(mcc-verify-fused,mcc-verify-placed))'

func.func @left_over(%x: tensor<?x64xf32>, %r: tensor<?x16xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{'mcc.rope' op is left over after fusion; the kernels run it only as part of rope_cache or logits}}
  %y = mcc.rope half %x, %r heads 4 : tensor<?x64xf32>, tensor<?x16xf32>
  return %y : tensor<?x64xf32>
}

// -----

func.func @no_device(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %a = mcc.activate silu %x on cpu : tensor<?x64xf32>
  // expected-error @+1 {{'mcc.activate' op has no device after placement; run mcc-place}}
  %y = mcc.activate silu %a : tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
