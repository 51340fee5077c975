// The verifier that closes the llvm phase.
// RUN: mcc-opt %s -split-input-file -verify-diagnostics -pass-pipeline='builtin.module(mcc-verify-lowered)'

// expected-error @+1 {{defines no 'mcc_step'; run convert-exec-to-llvm}}
module {
}

// -----

llvm.func @mcc_step(!llvm.ptr)
func.func @other() {
  // expected-error @+1 {{'func.return' op is left over in the llvm phase}}
  return
}
