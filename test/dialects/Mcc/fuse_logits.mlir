// RUN: mcc-opt %s -pass-pipeline='builtin.module(func.func(mcc-fuse-norm,mcc-fuse-logits))' | FileCheck %s

// CHECK-LABEL: func.func @head
// CHECK:         %[[T:.*]], %[[L:.*]] = mcc.logits %{{.*}}, %{{.*}} norm rms weight %{{.*}} eps 1.000000e-05 scale 5.000000e-01 softcap 3.000000e+01
// CHECK-NEXT:    return %[[T]], %[[L]]
func.func @head(%x: tensor<?x64xf32>) -> (tensor<1xi32>, tensor<1x192xf32>) {
  %g = mcc.weight ["g"] : <64xf32>
  %w = mcc.weight ["w"] : <192x64xf32>
  %r = mcc.last_row %x : tensor<?x64xf32> to tensor<1x64xf32>
  %n = mcc.norm rms %r weight(%g : !mcc.weight<64xf32>) eps 1.0e-5 : tensor<1x64xf32>
  %l = mcc.linear %n, %w : (tensor<1x64xf32>, !mcc.weight<192x64xf32>) -> tensor<1x192xf32>
  %s = mcc.scale_logits %l scale 0.5 softcap 30.0 : tensor<1x192xf32>
  %t = mcc.argmax %s : tensor<1x192xf32> to tensor<1xi32>
  return %t, %s : tensor<1xi32>, tensor<1x192xf32>
}
