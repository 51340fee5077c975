// RUN: mcc-opt %s | mcc-opt | FileCheck %s

// CHECK-LABEL: func.func @mixers
func.func @mixers(%x: tensor<?x64xf32>, %dt: tensor<?x4xf32>, %bc: tensor<?x32xf32>, %time: tensor<?x64xf32>, %n: tensor<?x8xf32>) -> tensor<?x64xf32> {
  %taps = mcc.weight ["taps"] : <64x4xf32>
  %rates = mcc.weight ["rates"] : <64x8xf32>
  %skip = mcc.weight ["skip"] : <64xf32>
  %four = mcc.weight ["four"] : <4xf32>
  %c = mcc.state "conv" : !mcc.state<3x64>
  %h = mcc.state "h" : !mcc.state<8x64>
  %s = mcc.state "s" : !mcc.state<4x16x16>
  %d = mcc.state "d" : !mcc.state<4x16x16>
  // CHECK: mcc.conv %{{.*}}, %{{.*}} state %{{.*}} activation silu
  %v = mcc.conv %x, %taps state %c activation silu : (tensor<?x64xf32>, !mcc.weight<64x4xf32>, !mcc.state<3x64>) -> tensor<?x64xf32>
  // CHECK: mcc.selective_scan %{{.*}} time %{{.*}} in %{{.*}} out %{{.*}} rates %{{.*}} skip %{{.*}} state
  %a = mcc.selective_scan %v time %time in %n out %n rates %rates skip %skip state %h : (tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x8xf32>, tensor<?x8xf32>, !mcc.weight<64x8xf32>, !mcc.weight<64xf32>, !mcc.state<8x64>) -> tensor<?x64xf32>
  // CHECK: mcc.state_scan {{.*}} groups 2 time_min 1.000000e-03 time_max 1.000000e-01
  %b = mcc.state_scan %a time %dt in %bc out %bc rates %four time_bias %four skip %four state %s groups 2 time_min 0.001 time_max 0.1 : (tensor<?x64xf32>, tensor<?x4xf32>, tensor<?x32xf32>, tensor<?x32xf32>, !mcc.weight<4xf32>, !mcc.weight<4xf32>, !mcc.weight<4xf32>, !mcc.state<4x16x16>) -> tensor<?x64xf32>
  // CHECK: mcc.delta_scan {{.*}} key_heads 2
  %e = mcc.delta_scan %bc, %bc, %b beta %dt decay %dt rates %four decay_bias %four state %d key_heads 2 : (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x64xf32>, tensor<?x4xf32>, tensor<?x4xf32>, !mcc.weight<4xf32>, !mcc.weight<4xf32>, !mcc.state<4x16x16>) -> tensor<?x64xf32>
  return %e : tensor<?x64xf32>
}
