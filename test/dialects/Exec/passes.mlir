// RUN: mcc-opt %s -pass-pipeline='builtin.module(exec.program(exec-plan-memory))' | FileCheck %s --check-prefix=PLAN
// RUN: mcc-opt %s -pass-pipeline='builtin.module(exec.program(exec-plan-memory,exec-insert-barriers))' | FileCheck %s --check-prefix=BARRIER
// RUN: mcc-opt %s -pass-pipeline='builtin.module(exec.program(exec-plan-memory,exec-insert-barriers,exec-outline-layers,exec-verify-planned))' | FileCheck %s --check-prefix=LAYERS
// RUN: not mcc-opt %s -pass-pipeline='builtin.module(exec.program(exec-verify-planned))' 2>&1 | FileCheck %s --check-prefix=UNPLANNED
// UNPLANNED: 'exec.program' op has no memory sizes; run exec-plan-memory

// Three equal layers x = activate(x) through a buffer of their own; the three buffers never live together.
// PLAN: exec.program @step context 1 chunk 1 vocabulary 16 arena 128 weights 64 cache 0 scratch 0
// PLAN-COUNT-3: exec.buffer bytes 64 at 64
// Each launch reads what the one before wrote.
// BARRIER:          exec.launch activate
// BARRIER-COUNT-6:  exec.barrier
// BARRIER-NOT:      exec.barrier
// Barrier and launch alternate with one period, so six become one body without arguments.
// LAYERS:       exec.repeat 3 addresses []
// LAYERS:         exec.launch activate
// LAYERS:         exec.launch activate
// LAYERS-NOT:   exec.launch activate
// LAYERS:       exec.launch add
exec.program @step context 1 chunk 1 vocabulary 16 {
  %c = exec.constant [1.0] bytes 64 : <weights>
  %x = exec.buffer bytes 64 : <arena>
  %a = exec.buffer bytes 64 : <arena>
  %b = exec.buffer bytes 64 : <arena>
  %d = exec.buffer bytes 64 : <arena>
  exec.launch activate(%x, %a) ints(cols = 16, x_stride = 16, y_stride = 16, activation = 1) floats() on cpu : !exec.pointer<arena>, !exec.pointer<arena>
  exec.launch activate(%a, %x) ints(cols = 16, x_stride = 16, y_stride = 16, activation = 2) floats() on cpu : !exec.pointer<arena>, !exec.pointer<arena>
  exec.launch activate(%x, %b) ints(cols = 16, x_stride = 16, y_stride = 16, activation = 1) floats() on cpu : !exec.pointer<arena>, !exec.pointer<arena>
  exec.launch activate(%b, %x) ints(cols = 16, x_stride = 16, y_stride = 16, activation = 2) floats() on cpu : !exec.pointer<arena>, !exec.pointer<arena>
  exec.launch activate(%x, %d) ints(cols = 16, x_stride = 16, y_stride = 16, activation = 1) floats() on cpu : !exec.pointer<arena>, !exec.pointer<arena>
  exec.launch activate(%d, %x) ints(cols = 16, x_stride = 16, y_stride = 16, activation = 2) floats() on cpu : !exec.pointer<arena>, !exec.pointer<arena>
  exec.launch add(%x, %c, %x) ints(cols = 16, a_stride = 16, b_stride = 16, y_stride = 16) floats() on cpu : !exec.pointer<arena>, !exec.pointer<weights>, !exec.pointer<arena>
  exec.result token %x logits %x : <arena>, <arena>
}
