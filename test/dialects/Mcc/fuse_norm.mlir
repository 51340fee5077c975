// RUN: mcc-opt %s -pass-pipeline='builtin.module(func.func(mcc-fuse-norm))' | FileCheck %s

// CHECK-LABEL: func.func @into_linear
// CHECK-NOT:     mcc.norm
// CHECK:         mcc.linear %{{.*}}, %{{.*}} norm layer weight %{{.*}} bias %{{.*}} eps 1.000000e-05
func.func @into_linear(%x: tensor<?x64xf32>) -> tensor<?x32xf32> {
  %g = mcc.weight ["g"] : <64xf32>
  %b = mcc.weight ["b"] : <64xf32>
  %w = mcc.weight ["w"] : <32x64xf32>
  %n = mcc.norm layer %x weight(%g : !mcc.weight<64xf32>) bias(%b : !mcc.weight<64xf32>) eps 1.0e-5 : tensor<?x64xf32>
  %y = mcc.linear %n, %w : (tensor<?x64xf32>, !mcc.weight<32x64xf32>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// A user that is no linear input keeps the norm for all.
// CHECK-LABEL: func.func @other_user
// CHECK:         mcc.norm
// CHECK:         mcc.linear %{{.*}}, %{{.*}} : 
func.func @other_user(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %w = mcc.weight ["w"] : <64x64xf32>
  %n = mcc.norm rms %x eps 1.0e-5 : tensor<?x64xf32>
  %y = mcc.linear %n, %w : (tensor<?x64xf32>, !mcc.weight<64x64xf32>) -> tensor<?x64xf32>
  return %n, %y : tensor<?x64xf32>, tensor<?x64xf32>
}

// A norm by groups is no prologue.
// CHECK-LABEL: func.func @groups
// CHECK:         mcc.norm
func.func @groups(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %w = mcc.weight ["w"] : <64x64xf32>
  %n = mcc.norm rms %x eps 1.0e-5 groups 4 : tensor<?x64xf32>
  %y = mcc.linear %n, %w : (tensor<?x64xf32>, !mcc.weight<64x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
