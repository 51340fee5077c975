// RUN: mcc-opt %s | mcc-opt | FileCheck %s

// CHECK: exec.program @step context 512 chunk 16 vocabulary 192 {
exec.program @step context 512 chunk 16 vocabulary 192 {
  // CHECK: exec.weight ["embed"] !mcc.weight<192x64xbf16> bytes 24576 : <weights>
  %table = exec.weight ["embed"] !mcc.weight<192x64xbf16> bytes 24576 : <weights>
  // CHECK: exec.constant [1.000000e+00, 5.000000e-01] bytes 64 at 128 : <weights>
  %c = exec.constant [1.0, 0.5] bytes 64 at 128 : <weights>
  // CHECK: exec.cache "k" bytes 1024 : <cache>
  %k = exec.cache "k" bytes 1024 : <cache>
  // CHECK: exec.buffer bytes 4096 : <arena>
  %x = exec.buffer bytes 4096 : <arena>
  // CHECK: exec.view %{{.*}} at 64 : <arena>
  %v = exec.view %x at 64 : <arena>
  // CHECK: exec.launch embed<bf16>(%{{.*}}, %{{.*}}) ints(rows = 192, cols = 64, y_stride = 64) floats(scale = 1.000000e+00) on cpu : !exec.pointer<weights>, !exec.pointer<arena>
  exec.launch embed<bf16>(%table, %x) ints(rows = 192, cols = 64, y_stride = 64) floats(scale = 1.0) on cpu : !exec.pointer<weights>, !exec.pointer<arena>
  // CHECK: exec.barrier
  exec.barrier
  // CHECK: exec.repeat 2 addresses [0, 64] {
  // CHECK: ^bb0(%{{.*}}: !exec.pointer<arena>):
  exec.repeat 2 addresses [0, 64] {
  ^bb0(%a: !exec.pointer<arena>):
    exec.launch add(%a, %x, %x) ints(cols = 16, a_stride = 16, b_stride = 16, y_stride = 16) floats() on gpu : !exec.pointer<arena>, !exec.pointer<arena>, !exec.pointer<arena>
  }
  // CHECK: exec.result token %{{.*}} logits %{{.*}} : <arena>, <arena>
  exec.result token %x logits %v : <arena>, <arena>
}
