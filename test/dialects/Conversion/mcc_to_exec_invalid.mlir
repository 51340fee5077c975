// RUN: mcc-opt %s -split-input-file -verify-diagnostics -convert-mcc-to-exec

// What cannot be lowered is named.
// expected-error @+1 {{is no step; it must return the greedy token and the logits}}
func.func @no_step(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  return %x : tensor<?x64xf32>
}

// -----

func.func @unfused(%x: tensor<?xi32>) -> (tensor<1xi32>, tensor<1x64xf32>) attributes {mcc.context = 64} {
  %w = mcc.weight ["w"] on cpu : <64x64xf32>
  %e = mcc.embed %x, %w on cpu : (tensor<?xi32>, !mcc.weight<64x64xf32>) -> tensor<?x64xf32>
  // expected-error @+1 {{'mcc.last_row' op has no lowering to 'exec'; run the fusion passes first}}
  %l = mcc.last_row %e on cpu : tensor<?x64xf32> to tensor<1x64xf32>
  %t = mcc.argmax %l on cpu : tensor<1x64xf32> to tensor<1xi32>
  return %t, %l : tensor<1xi32>, tensor<1x64xf32>
}

// -----

func.func @query_read_twice(%x: tensor<?xi32>) -> (tensor<1xi32>, tensor<1x64xf32>) {
  %w = mcc.weight ["w"] on cpu : <64x64xf32>
  %c = mcc.cache "k" on cpu : <4x512x16>
  %e = mcc.embed %x, %w on cpu : (tensor<?xi32>, !mcc.weight<64x64xf32>) -> tensor<?x64xf32>
  // expected-error @+1 {{would overwrite a query that others read}}
  %q = mcc.rope_cache half %e, %e, %e into %c, %c heads 4 on cpu : tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>, <4x512x16>, <4x512x16>
  %t, %l = mcc.logits %q, %w on cpu : (tensor<?x64xf32>, !mcc.weight<64x64xf32>) -> (tensor<1xi32>, tensor<1x64xf32>)
  return %t, %l : tensor<1xi32>, tensor<1x64xf32>
}

// -----

// expected-error @+1 {{has no cache that says its context; give it the attribute 'mcc.context'}}
func.func @no_context(%x: tensor<?xi32>) -> (tensor<1xi32>, tensor<1x64xf32>) {
  %w = mcc.weight ["w"] on cpu : <64x64xf32>
  %e = mcc.embed %x, %w on cpu : (tensor<?xi32>, !mcc.weight<64x64xf32>) -> tensor<?x64xf32>
  %t, %l = mcc.logits %e, %w on cpu : (tensor<?x64xf32>, !mcc.weight<64x64xf32>) -> (tensor<1xi32>, tensor<1x64xf32>)
  return %t, %l : tensor<1xi32>, tensor<1x64xf32>
}
