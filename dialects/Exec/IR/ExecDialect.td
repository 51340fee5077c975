// The `exec` dialect and its types. Rationale: dialects/Exec/README.md.
#ifndef MCC_DIALECTS_EXEC_IR_EXECDIALECT
#define MCC_DIALECTS_EXEC_IR_EXECDIALECT

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/DialectBase.td"
include "mlir/IR/EnumAttr.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::mcc::exec";
  let summary = "launches of named kernels over planned memory: the program every back end runs";
  let useDefaultTypePrinterParser = 1;
}

def Exec_Space : I32EnumAttr<"Space", "a memory that has one base address at run time", [
    I32EnumAttrCase<"Arena", 0, "arena">, I32EnumAttrCase<"Weights", 1, "weights">,
    I32EnumAttrCase<"Cache", 2, "cache">, I32EnumAttrCase<"None", 3, "none">]> {
  let cppNamespace = "::mcc::exec";
}

def Exec_PointerType : TypeDef<Exec_Dialect, "Pointer"> {
  let mnemonic = "pointer";
  let summary = "an address in one of the program's memories";
  let description = [{ `!exec.pointer<arena>`: activations; `weights`: the packed blob, read-only; `cache`: state of a sequence; `none`: an absent optional argument. }];
  let parameters = (ins EnumParameter<Exec_Space>:$space);
  let assemblyFormat = "`<` $space `>`";
}

#endif
