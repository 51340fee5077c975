// RUN: mcc-opt %s -convert-exec-to-llvm | FileCheck %s

// Equal launches share a function; layers are a loop over a table; decode passes the constant 1.
// CHECK-DAG:   llvm.mlir.global internal constant @addresses.1(dense<[0, 64]> : tensor<2xi64>)
// CHECK-DAG:   llvm.func @mcc_cpu_add(!llvm.ptr, i64, !llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64)
// CHECK-LABEL: llvm.func internal @step.decode
// CHECK:         llvm.mlir.addressof @addresses.1
// CHECK:       ^bb1(%{{.*}}: i64):
// CHECK:         llvm.call @launch.1.add
// CHECK:         llvm.call @mccrt_barrier
// CHECK:         llvm.cond_br
// CHECK:         llvm.call @launch.1.add
// CHECK-LABEL: llvm.func internal @launch.1.add
// CHECK:         %[[ONE:.*]] = llvm.mlir.constant(1 : i64)
// CHECK:         llvm.call @mcc_cpu_add(%{{.*}}, %[[ONE]],
// CHECK-NOT:   @launch.2.add{{.*}}decode
// CHECK-LABEL: llvm.func internal @step.prefill
// CHECK-LABEL: llvm.func @mcc_step
exec.program @step context 1 chunk 16 vocabulary 16 arena 128 weights 0 cache 0 scratch 0 {
  %x = exec.buffer bytes 64 at 0 : <arena>
  exec.repeat 2 addresses [0, 64] {
  ^bb0(%a: !exec.pointer<arena>):
    exec.launch add(%a, %x, %x) ints(cols = 16, a_stride = 16, b_stride = 16, y_stride = 16) floats() on cpu : !exec.pointer<arena>, !exec.pointer<arena>, !exec.pointer<arena>
    exec.barrier
  }
  exec.launch add(%x, %x, %x) ints(cols = 16, a_stride = 16, b_stride = 16, y_stride = 16) floats() on cpu : !exec.pointer<arena>, !exec.pointer<arena>, !exec.pointer<arena>
  exec.result token %x logits %x : <arena>, <arena>
}
