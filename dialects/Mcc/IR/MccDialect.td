// The `mcc` dialect and the enumerations and types its ops use. Rationale: dialects/Mcc/README.md.
#ifndef MCC_DIALECTS_MCC_IR_MCCDIALECT
#define MCC_DIALECTS_MCC_IR_MCCDIALECT

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/DialectBase.td"
include "mlir/IR/EnumAttr.td"

def Mcc_Dialect : Dialect {
  let name = "mcc";
  let cppNamespace = "::mcc::ir";
  let summary = "a decoder's step at the level of the model";
  let description = [{
    One function, the *step*, takes `T` tokens (T dynamic) through the whole model: prefill and decode are
    the same program. Values are tensors `[T, features]` in f32; weights and caches have types of their own.
    A step says with the attribute `mcc.context` how many positions it is made for; without it, its caches say so.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1; // mcc.context
}

// Enumerations --------------------------------------------------------------------------------------------------

def Mcc_Device : I32EnumAttr<"Device", "where an op runs and a weight or cache lives", [
    I32EnumAttrCase<"Cpu", 0, "cpu">, I32EnumAttrCase<"Gpu", 1, "gpu">]> {
  let cppNamespace = "::mcc::ir";
}

// Values are those of kernels/Activation.h (checked by static_assert in MccDialect.cpp).
def Mcc_Activation : I32EnumAttr<"ActivationKind", "an element-wise activation", [
    I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"Silu", 1, "silu">,
    I32EnumAttrCase<"GeluErf", 2, "gelu_erf">, I32EnumAttrCase<"GeluTanh", 3, "gelu_tanh">,
    I32EnumAttrCase<"Relu", 4, "relu">, I32EnumAttrCase<"Relu2", 5, "relu2">, I32EnumAttrCase<"GeluQuick", 6, "gelu_quick">,
    I32EnumAttrCase<"Sigmoid", 8, "sigmoid">]> {
  let cppNamespace = "::mcc::ir";
}

def Mcc_NormKind : I32EnumAttr<"NormKind", "a normalisation over the last axis", [
    I32EnumAttrCase<"Rms", 0, "rms">, I32EnumAttrCase<"Layer", 1, "layer">]> {
  let cppNamespace = "::mcc::ir";
}

def Mcc_RopePairing : I32EnumAttr<"RopePairing", "which dimensions rotate together", [
    I32EnumAttrCase<"Half", 0, "half">, I32EnumAttrCase<"Adjacent", 1, "adjacent">]> {
  let cppNamespace = "::mcc::ir";
}

// Values are those of kernels/KernelTable.def, `route`.
def Mcc_Scoring : I32EnumAttr<"Scoring", "what a router makes of its logits", [
    I32EnumAttrCase<"Softmax", 0, "softmax">, I32EnumAttrCase<"SelectedSoftmax", 1, "selected_softmax">,
    I32EnumAttrCase<"Sigmoid", 2, "sigmoid">]> {
  let cppNamespace = "::mcc::ir";
}

def Mcc_GroupScore : I32EnumAttr<"GroupScore", "how groups of experts are ranked", [
    I32EnumAttrCase<"Max", 0, "max">, I32EnumAttrCase<"TopTwoSum", 1, "top_two_sum">]> {
  let cppNamespace = "::mcc::ir";
}

// Attributes ----------------------------------------------------------------------------------------------------

def Mcc_SourceAttr : AttrDef<Mcc_Dialect, "Source"> {
  let mnemonic = "source";
  let summary = "some rows of a tensor of the checkpoint";
  let description = [{
    `groups` runs of `rows` rows, the first at row `first`, each `stride` rows after the one before. `transposed`: the tensor is
    stored `[in, out]`, so rows are its columns. `slab`: an index into the first axis of a stacked tensor, -1 where it is not stacked.
    A whole tensor is a plain string instead.

    `#mcc.source<"h.0.attn.c_attn.weight", first 64, rows 64, stride 0, groups 1, transposed true, slab -1>`
  }];
  let parameters = (ins "::mlir::StringAttr":$tensor, "int64_t":$first, "int64_t":$rows, "int64_t":$stride, "int64_t":$groups, "bool":$transposed,
    "int64_t":$slab);
  let assemblyFormat = "`<` $tensor `,` `first` $first `,` `rows` $rows `,` `stride` $stride `,` `groups` $groups `,` `transposed` $transposed `,` `slab` $slab `>`";
}

// Types ---------------------------------------------------------------------------------------------------------

class Mcc_Type<string cppName, string typeMnemonic> : TypeDef<Mcc_Dialect, cppName> {
  let mnemonic = typeMnemonic;
  let hasCustomAssemblyFormat = 1;
}

def Mcc_WeightType : Mcc_Type<"Weight", "weight"> {
  let summary = "a constant of the checkpoint, in its storage format";
  let description = [{
    `!mcc.weight<192x64xbf16>` is a matrix `[rows, cols]`, a linear's `[out, in]`; `!mcc.weight<64xf32>` a vector.
    The format is one of kernels/FormatTable.def; block formats need `cols` to be whole blocks.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mcc::Format":$format);
  let genVerifyDecl = 1;
}

def Mcc_CacheType : Mcc_Type<"Cache", "cache"> {
  let summary = "keys or values of the positions so far";
  let description = [{
    `!mcc.cache<2x512x32>` holds `[kv_heads, context, head_dim]` f32, written at the step's positions.
  }];
  let parameters = (ins "int64_t":$heads, "int64_t":$positions, "int64_t":$headDim);
}

def Mcc_StateType : Mcc_Type<"State", "state"> {
  let summary = "what a recurrent op keeps of the positions so far";
  let description = [{
    `!mcc.state<8x16x64>` holds f32 of that shape, zero at the start of a sequence; the last axis is the one that kernels run in lanes.
    Its size does not grow with the positions.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape);
  let genVerifyDecl = 1;
}

#endif
