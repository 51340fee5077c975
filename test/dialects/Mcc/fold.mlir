// RUN: mcc-opt %s -canonicalize | FileCheck %s

// An activation of none, a slice of everything and a scale of one are the value itself.
// CHECK-LABEL: func.func @identities
// CHECK-SAME:    (%[[X:.*]]: tensor<?x64xf32>
// CHECK-NEXT:    return %[[X]], %[[X]]
func.func @identities(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %a = mcc.activate none %x : tensor<?x64xf32>
  %s = mcc.slice %x at 0 : tensor<?x64xf32> to tensor<?x64xf32>
  %f = mcc.scale %s by 1.0 : tensor<?x64xf32>
  return %a, %f : tensor<?x64xf32>, tensor<?x64xf32>
}

// CHECK-LABEL: func.func @kept
// CHECK:         mcc.activate silu
// CHECK:         mcc.slice
func.func @kept(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x32xf32>) {
  %a = mcc.activate silu %x : tensor<?x64xf32>
  %s = mcc.slice %x at 32 : tensor<?x64xf32> to tensor<?x32xf32>
  return %a, %s : tensor<?x64xf32>, tensor<?x32xf32>
}
