// RUN: mcc-opt %s -pass-pipeline='builtin.module(func.func(mcc-place{device=gpu}))' | FileCheck %s
// RUN: not mcc-opt %s -pass-pipeline='builtin.module(func.func(mcc-place{device=tpu}))' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: unknown device 'tpu'; known are cpu and gpu

// What has a device keeps it.
// CHECK-LABEL: func.func @step
// CHECK:         mcc.activate silu %{{.*}} on gpu
// CHECK:         mcc.activate relu %{{.*}} on cpu
func.func @step(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %a = mcc.activate silu %x : tensor<?x64xf32>
  %b = mcc.activate relu %a on cpu : tensor<?x64xf32>
  return %b : tensor<?x64xf32>
}
