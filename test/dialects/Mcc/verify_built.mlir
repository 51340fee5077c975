// The verifier that closes the mcc phase.
// RUN: mcc-opt %s -split-input-file -verify-diagnostics -pass-pipeline='builtin.module(func.func(mcc-verify-built))'

// expected-error @+1 {{'func.func' op is no step; it must return the greedy token and the logits}}
func.func @no_step(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  return %x : tensor<?x64xf32>
}

// -----

func.func @placed(%t: tensor<1xi32>, %x: tensor<1x64xf32>) -> (tensor<1xi32>, tensor<1x64xf32>) {
  // expected-error @+1 {{'mcc.activate' op has a device before placement}}
  %y = mcc.activate silu %x on cpu : tensor<1x64xf32>
  return %t, %y : tensor<1xi32>, tensor<1x64xf32>
}

// -----

func.func @fused(%x: tensor<?x64xf32>) -> (tensor<1xi32>, tensor<1x192xf32>) {
  %w = mcc.weight ["w"] : <192x64xf32>
  // expected-error @+1 {{'mcc.logits' op is a fused form before fusion}}
  %t, %l = mcc.logits %x, %w : (tensor<?x64xf32>, !mcc.weight<192x64xf32>) -> (tensor<1xi32>, tensor<1x192xf32>)
  return %t, %l : tensor<1xi32>, tensor<1x192xf32>
}
