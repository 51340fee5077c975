// RUN: mcc-opt %s -split-input-file -verify-diagnostics

exec.program @launch_c1 context 1 chunk 1 vocabulary 1 {
  // expected-error @+1 {{no kernel 'conv9d' in the kernel table}}
  exec.launch conv9d() ints() floats() on cpu
}

// -----

exec.program @launch_argument_name context 1 chunk 1 vocabulary 1 {
  %x = exec.buffer bytes 64 : <arena>
  // expected-error @+1 {{argument 'rows' stands where the kernel table has 'cols'}}
  exec.launch add(%x, %x, %x) ints(rows = 1, a_stride = 1, b_stride = 1, y_stride = 1) floats() on cpu : !exec.pointer<arena>, !exec.pointer<arena>, !exec.pointer<arena>
}

// -----

exec.program @launch_device context 1 chunk 1 vocabulary 1 {
  %x = exec.buffer bytes 64 : <arena>
  // expected-error @+1 {{unknown device 'npu'}}
  exec.launch add(%x, %x, %x) ints(cols = 1, a_stride = 1, b_stride = 1, y_stride = 1) floats() on npu : !exec.pointer<arena>, !exec.pointer<arena>, !exec.pointer<arena>
}

// -----

exec.program @launch_c2 context 1 chunk 1 vocabulary 1 {
  %x = exec.buffer bytes 64 : <arena>
  // expected-error @+1 {{kernel 'add' takes no format}}
  exec.launch add<f32>(%x, %x, %x) ints(cols = 1, a_stride = 1, b_stride = 1, y_stride = 1) floats() on cpu : !exec.pointer<arena>, !exec.pointer<arena>, !exec.pointer<arena>
}

// -----

exec.program @launch_c3 context 1 chunk 1 vocabulary 1 {
  %x = exec.buffer bytes 64 : <arena>
  // expected-error @+1 {{passes 2 buffers, 4 ints and 0 floats; kernel 'add' takes 3, 4 and 0}}
  exec.launch add(%x, %x) ints(cols = 1, a_stride = 1, b_stride = 1, y_stride = 1) floats() on cpu : !exec.pointer<arena>, !exec.pointer<arena>
}

// -----

exec.program @launch_c4 context 1 chunk 1 vocabulary 1 {
  %x = exec.buffer bytes 64 : <arena>
  %none = exec.none : <none>
  // expected-error @+1 {{leaves out buffer 'b'; kernel 'add' needs it}}
  exec.launch add(%x, %none, %x) ints(cols = 1, a_stride = 1, b_stride = 1, y_stride = 1) floats() on cpu : !exec.pointer<arena>, !exec.pointer<none>, !exec.pointer<arena>
}

// -----

exec.program @launch_c5 context 1 chunk 1 vocabulary 1 {
  %x = exec.buffer bytes 64 : <arena>
  %w = exec.constant [1.0] bytes 64 : <weights>
  // expected-error @+1 {{writes buffer 'y', which lies among the weights}}
  exec.launch add(%x, %x, %w) ints(cols = 1, a_stride = 1, b_stride = 1, y_stride = 1) floats() on cpu : !exec.pointer<arena>, !exec.pointer<arena>, !exec.pointer<weights>
}

// -----

exec.program @repeat_c1 context 1 chunk 1 vocabulary 1 {
  // expected-error @+1 {{has 3 addresses; 2 iterations need 2}}
  exec.repeat 2 addresses [0, 64, 128] {
  ^bb0(%a: !exec.pointer<arena>):
    exec.barrier
  }
}
