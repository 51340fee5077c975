// RUN: mcc-opt %s -pass-pipeline='builtin.module(func.func(mcc-fuse-epilogue))' | FileCheck %s

// Activation first, then scale, residual last.
// CHECK-LABEL: func.func @chain
// CHECK-SAME:    (%[[X:.*]]: tensor<?x64xf32>
// CHECK:         mcc.linear %[[X]], %{{.*}} residual %[[X]] activation gelu_erf scale 5.000000e-01
// CHECK-NOT:     mcc.add
func.func @chain(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %w = mcc.weight ["w"] : <64x64xf32>
  %y = mcc.linear %x, %w : (tensor<?x64xf32>, !mcc.weight<64x64xf32>) -> tensor<?x64xf32>
  %a = mcc.activate gelu_erf %y : tensor<?x64xf32>
  %h = mcc.scale %a by 0.5 : tensor<?x64xf32>
  %s = mcc.add %x, %h : tensor<?x64xf32>
  return %s : tensor<?x64xf32>
}

// A result that others read stays.
// CHECK-LABEL: func.func @two_users
// CHECK:         mcc.add
func.func @two_users(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %w = mcc.weight ["w"] : <64x64xf32>
  %y = mcc.linear %x, %w : (tensor<?x64xf32>, !mcc.weight<64x64xf32>) -> tensor<?x64xf32>
  %s = mcc.add %x, %y : tensor<?x64xf32>
  return %s, %y : tensor<?x64xf32>, tensor<?x64xf32>
}

// The kernel adds the residual after the activation, so an activation of the sum cannot go in.
// CHECK-LABEL: func.func @activation_of_sum
// CHECK:         mcc.linear %{{.*}} residual
// CHECK:         mcc.activate
func.func @activation_of_sum(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %w = mcc.weight ["w"] : <64x64xf32>
  %y = mcc.linear %x, %w : (tensor<?x64xf32>, !mcc.weight<64x64xf32>) -> tensor<?x64xf32>
  %s = mcc.add %x, %y : tensor<?x64xf32>
  %a = mcc.activate relu %s : tensor<?x64xf32>
  return %a : tensor<?x64xf32>
}
