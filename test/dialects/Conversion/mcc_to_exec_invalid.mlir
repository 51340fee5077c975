// RUN: mcc-opt %s -split-input-file -verify-diagnostics -convert-mcc-to-exec

// A residual that the linear also reads through its norm must not be overwritten while others still read it (no error here,
// see mcc_to_exec.mlir for places); what cannot be lowered is named.
// expected-error @+1 {{is no step; it must return the greedy token and the logits}}
func.func @no_step(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  return %x : tensor<?x64xf32>
}

// -----

func.func @unfused(%x: tensor<?xi32>) -> (tensor<1xi32>, tensor<1x64xf32>) {
  %w = mcc.weight ["w"] on cpu : <64x64xf32>
  %e = mcc.embed %x, %w on cpu : (tensor<?xi32>, !mcc.weight<64x64xf32>) -> tensor<?x64xf32>
  // expected-error @+1 {{'mcc.last_row' op has no lowering to 'exec'; run the fusion passes first}}
  %l = mcc.last_row %e on cpu : tensor<?x64xf32> to tensor<1x64xf32>
  %t = mcc.argmax %l on cpu : tensor<1x64xf32> to tensor<1xi32>
  return %t, %l : tensor<1xi32>, tensor<1x64xf32>
}

// -----

func.func @concat_of_view(%x: tensor<?xi32>) -> (tensor<1xi32>, tensor<1x64xf32>) {
  %w = mcc.weight ["w"] on cpu : <64x64xf32>
  %e = mcc.embed %x, %w on cpu : (tensor<?xi32>, !mcc.weight<64x64xf32>) -> tensor<?x64xf32>
  %s = mcc.slice %e at 0 on cpu : tensor<?x64xf32> to tensor<?x32xf32>
  // expected-error @+1 {{takes a value that is not written in place: it has other readers, or is a view}}
  %c = mcc.concat %s, %s on cpu : tensor<?x32xf32>, tensor<?x32xf32> to tensor<?x64xf32>
  %t, %l = mcc.logits %c, %w on cpu : (tensor<?x64xf32>, !mcc.weight<64x64xf32>) -> (tensor<1xi32>, tensor<1x64xf32>)
  return %t, %l : tensor<1xi32>, tensor<1x64xf32>
}
