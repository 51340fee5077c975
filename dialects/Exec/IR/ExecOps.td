// Ops of the `exec` dialect: the program, its memory, its launches.
#ifndef MCC_DIALECTS_EXEC_IR_EXECOPS
#define MCC_DIALECTS_EXEC_IR_EXECOPS

include "dialects/Exec/IR/ExecDialect.td"
include "dialects/Mcc/IR/MccDialect.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Exec_Op<string mnemonic, list<Trait> traits = []> : Op<Exec_Dialect, mnemonic, traits>;

// The program ---------------------------------------------------------------------------------------------------

def Exec_ProgramOp : Exec_Op<"program", [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator]> {
  let summary = "one step of a model over planned memory";
  let description = [{
    The body declares memory, then launches kernels in order. `chunk` is the most tokens of one step and sizes every
    token-wise buffer; sizes of the memories are absent until planning (exec-plan-memory) fills them in.

    ```mlir
    exec.program @step context 512 chunk 128 vocabulary 2048 { ... }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$context, I64Attr:$chunk, I64Attr:$vocabulary,
    OptionalAttr<I64Attr>:$arenaBytes, OptionalAttr<I64Attr>:$weightBytes, OptionalAttr<I64Attr>:$cacheBytes, OptionalAttr<I64Attr>:$scratchBytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{ $sym_name `context` $context `chunk` $chunk `vocabulary` $vocabulary
    (`arena` $arenaBytes^)? (`weights` $weightBytes^)? (`cache` $cacheBytes^)? (`scratch` $scratchBytes^)? attr-dict-with-keyword $body }];
}

def Exec_ResultOp : Exec_Op<"result", [HasParent<"ProgramOp">]> {
  let summary = "where the step leaves the greedy token (i32) and the last token's logits (f32)";
  let arguments = (ins Exec_PointerType:$token, Exec_PointerType:$logits);
  let assemblyFormat = "`token` $token `logits` $logits attr-dict `:` type($token) `,` type($logits)";
}

// Memory --------------------------------------------------------------------------------------------------------

class Exec_MemoryOp<string mnemonic, dag args> : Exec_Op<mnemonic, [Pure]> {
  let arguments = !con(args, (ins I64Attr:$bytes, OptionalAttr<I64Attr>:$address));
  let results = (outs Exec_PointerType:$result);
}

def Exec_WeightOp : Exec_MemoryOp<"weight", (ins ArrayAttr:$sources, UnitAttr:$interleaved, DefaultValuedAttr<F64Attr, "0.0">:$offset, UnitAttr:$negatedExp, TypeAttr:$weight)> {
  let summary = "packed weights: tensors of the checkpoint joined by rows, in kernel order (kernels/pack)";
  let description = [{
    A matrix is packed in panels of 16 rows, `interleaved` alternates panels of two sources, a vector is plain f32; `offset` and `negated_exp`
    as in mcc.weight.
    ```mlir
    %w = exec.weight ["a.weight"] !mcc.weight<64x64xbf16> bytes 8192 at 0 : !exec.pointer<weights>
    ```
  }];
  let assemblyFormat = "$sources $weight (`interleaved` $interleaved^)? (`offset` $offset^)? (`negated_exp` $negatedExp^)? `bytes` $bytes (`at` $address^)? attr-dict `:` type($result)";
}

def Exec_ConstantOp : Exec_MemoryOp<"constant", (ins DenseF32ArrayAttr:$values)> {
  let summary = "f32 numbers that the compiler computed, stored among the weights";
  let assemblyFormat = "$values `bytes` $bytes (`at` $address^)? attr-dict `:` type($result)";
}

def Exec_CacheOp : Exec_MemoryOp<"cache", (ins StrAttr:$cacheName)> {
  let summary = "a cache or recurrent state of one sequence, zero at its start";
  let assemblyFormat = "$cacheName `bytes` $bytes (`at` $address^)? attr-dict `:` type($result)";
}

def Exec_BufferOp : Exec_MemoryOp<"buffer", (ins OptionalAttr<I64Attr>:$rowBytes)> {
  let summary = "activations of one step; disjoint lifetimes may share an address";
  let description = [{
    `row` gives the bytes of one token where the buffer holds a row for each: a step of T tokens uses T of them.
    ```mlir
    %x = exec.buffer bytes 8192 at 0 row 64 : <arena>
    ```
  }];
  let assemblyFormat = "`bytes` $bytes (`at` $address^)? (`row` $rowBytes^)? attr-dict `:` type($result)";
}

def Exec_ViewOp : Exec_Op<"view", [Pure, AllTypesMatch<["base", "result"]>]> {
  let summary = "an address `offset` bytes into another";
  let arguments = (ins Exec_PointerType:$base, I64Attr:$offset);
  let results = (outs Exec_PointerType:$result);
  let assemblyFormat = "$base `at` $offset attr-dict `:` type($base)";
}

def Exec_NoneOp : Exec_Op<"none", [Pure]> {
  let summary = "an absent optional argument";
  let results = (outs Exec_PointerType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

// Work ----------------------------------------------------------------------------------------------------------

def Exec_LaunchOp : Exec_Op<"launch"> {
  let summary = "one kernel of kernels/KernelTable.def with all its numbers constant";
  let description = [{
    (C1) the kernel is in the table; (C2) it has a format exactly if it is per format; (C3) operands, ints and floats are as
    many as the table says; (C4) only optional buffers are absent; (C5) a written buffer is not among the weights.

    ```mlir
    exec.launch embed<bf16>(%table, %x) ints(rows = 192, cols = 64, y_stride = 64) floats(scale = 1.000000e+00) on cpu : !exec.pointer<weights>, !exec.pointer<arena>
    ```
  }];
  let arguments = (ins StrAttr:$kernel, OptionalAttr<StrAttr>:$format, Variadic<Exec_PointerType>:$buffers, DenseI64ArrayAttr:$ints,
    DenseF32ArrayAttr:$floats, Mcc_Device:$device);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Returns the int argument called `name`, which the kernel must have.
    int64_t getInt(::llvm::StringRef name);
  }];
}

def Exec_BarrierOp : Exec_Op<"barrier"> {
  let summary = "every worker waits for every other";
  let assemblyFormat = "attr-dict";
}

def Exec_RepeatOp : Exec_Op<"repeat", [SingleBlock, NoTerminator]> {
  let summary = "a body run `count` times with other addresses each time: identical layers";
  let description = [{
    Block argument i of iteration n is the address `addresses[n * arguments + i]` in its memory. Code size does not grow with depth.

    (C1) addresses has count times as many entries as the body has arguments.
    ```mlir
    exec.repeat 2 addresses [0, 64, 4096, 4160] { ^bb0(%w: !exec.pointer<weights>, %k: !exec.pointer<cache>): ... }
    ```
  }];
  let arguments = (ins I64Attr:$count, DenseI64ArrayAttr:$addresses);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$count `addresses` $addresses attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

#endif
