// Ops of the `mcc` dialect, grouped as the model is read: state, input, projections, attention, element-wise, output,
// then the fused forms that passes make. Shapes are [tokens, features], f32, tokens dynamic.
#ifndef MCC_DIALECTS_MCC_IR_MCCOPS
#define MCC_DIALECTS_MCC_IR_MCCOPS

include "dialects/Mcc/IR/MccDialect.td"
include "dialects/Mcc/IR/MccInterfaces.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Mcc_Activations : Type<CPred<"::mcc::ir::isActivations($_self)">, "2-D f32 tensor [tokens, features]", "::mlir::RankedTensorType">;
def Mcc_Tokens : Type<CPred<"::mcc::ir::isTokens($_self)">, "1-D i32 tensor of token ids", "::mlir::RankedTensorType">;

// Every op carries its device: absent until placement, present after.
// Where a weight comes from: strings (whole tensors) and #mcc.source (some rows of one).
def Mcc_SourcesAttr : TypedArrayAttrBase<AnyAttrOf<[StrAttr, Mcc_SourceAttr]>, "tensors or parts of tensors">;

class Mcc_Op<string mnemonic, dag args, list<Trait> traits = []>
    : Op<Mcc_Dialect, mnemonic, traits # [DeclareOpInterfaceMethods<Mcc_PlacedOpInterface>]> {
  let arguments = !con(args, (ins OptionalAttr<Mcc_Device>:$device));
}

// State ---------------------------------------------------------------------------------------------------------

def Mcc_WeightOp : Mcc_Op<"weight", (ins Mcc_SourcesAttr:$sources, UnitAttr:$interleaved, DefaultValuedAttr<F64Attr, "0.0">:$offset,
    UnitAttr:$negatedExp), [Pure]> {
  let summary = "a weight of the checkpoint, by tensor name";
  let description = [{
    Several sources are joined by rows, in order; `interleaved` alternates panels of 16 rows of two equal sources
    (gate and up), as kernels/pack lays them out. `offset` is added to every element (Gemma's norm weights);
    `negated_exp` makes -exp(e) of every element e (the rates of a scan, which checkpoints keep as logarithms). A vector, and a matrix in f32,
    may come from a tensor of any format and of more dimensions.

    (C1) there is at least one source. (C2) `interleaved` has two sources and rows divisible by two. (C3) `negated_exp` is in f32.

    ```mlir
    %w = mcc.weight ["model.layers.0.self_attn.q_proj.weight"] : !mcc.weight<64x64xf32>
    ```
  }];
  let results = (outs Mcc_WeightType:$result);
  let assemblyFormat = "$sources (`interleaved` $interleaved^)? (`offset` $offset^)? (`negated_exp` $negatedExp^)? (`on` $device^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Mcc_CacheOp : Mcc_Op<"cache", (ins StrAttr:$cacheName), [MemoryEffects<[MemAlloc]>]> {
  let summary = "keys or values, which live as long as a sequence";
  let description = [{
    ```mlir
    %k = mcc.cache "layers.0.k" : !mcc.cache<2x512x32>
    ```
  }];
  let results = (outs Mcc_CacheType:$result);
  let assemblyFormat = "$cacheName (`on` $device^)? attr-dict `:` type($result)";
}

def Mcc_StateOp : Mcc_Op<"state", (ins StrAttr:$stateName), [MemoryEffects<[MemAlloc]>]> {
  let summary = "a recurrent state, which lives as long as a sequence and is zero at its start";
  let description = [{
    The op that reads a state also moves it on past the step's tokens, so a state has one user.
    ```mlir
    %s = mcc.state "layers.0.conv" : !mcc.state<3x96>
    ```
  }];
  let results = (outs Mcc_StateType:$result);
  let assemblyFormat = "$stateName (`on` $device^)? attr-dict `:` type($result)";
}

// Input ---------------------------------------------------------------------------------------------------------

def Mcc_EmbedOp : Mcc_Op<"embed", (ins Mcc_Tokens:$tokens, Mcc_WeightType:$table, DefaultValuedAttr<F64Attr, "1.0">:$scale), [Pure]> {
  let summary = "rows of the embedding table, scaled";
  let description = [{
    (C1) the result's features are the table's columns.
    ```mlir
    %x = mcc.embed %tokens, %table : (tensor<?xi32>, !mcc.weight<192x64xf32>) -> tensor<?x64xf32>
    ```
  }];
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = "$tokens `,` $table (`scale` $scale^)? (`on` $device^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Mcc_PositionsOp : Mcc_Op<"positions", (ins Mcc_Activations:$input, Mcc_WeightType:$table, DefaultValuedAttr<I64Attr, "0">:$offset),
    [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "adds the learned embedding of each token's position";
  let description = [{
    Position p reads row p + offset.

    (C1) the table's columns are the input's features.
    ```mlir
    %y = mcc.positions %x, %table offset 2 : tensor<?x64xf32>, !mcc.weight<514x64xf32>
    ```
  }];
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = "$input `,` $table (`offset` $offset^)? (`on` $device^)? attr-dict `:` type($input) `,` type($table)";
  let hasVerifier = 1;
}

def Mcc_RotaryOp : Mcc_Op<"rotary", (ins Mcc_Tokens:$tokens, DenseF32ArrayAttr:$frequencies, DefaultValuedAttr<F64Attr, "1.0">:$factor,
    DefaultValuedAttr<I64Attr, "0">:$original), [Pure]> {
  let summary = "cosines and sines of the step's positions";
  let description = [{
    For token t at position p: `result[t, i] = factor * cos(p * f_i)`, `result[t, n + i] = factor * sin(p * f_i)`.
    Made once a step and used by every layer with these frequencies.

    With `original`, a second half of the frequencies takes the place of the first for sequences of more than so many tokens, prompt included.

    (C1) the result has twice as many features as there are frequencies (in a half, with original).
    ```mlir
    %r = mcc.rotary %tokens frequencies [1.0, 0.1] : (tensor<?xi32>) -> tensor<?x4xf32>
    ```
  }];
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = "$tokens `frequencies` $frequencies (`factor` $factor^)? (`original` $original^)? (`on` $device^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

// Projections ---------------------------------------------------------------------------------------------------

def Mcc_NormOp : Mcc_Op<"norm", (ins Mcc_NormKind:$kind, Mcc_Activations:$input, Optional<Mcc_WeightType>:$weight, Optional<Mcc_WeightType>:$bias,
    F64Attr:$eps, DefaultValuedAttr<I64Attr, "1">:$groups, UnitAttr:$ownWeights), [Pure, AllTypesMatch<["input", "result"]>, AttrSizedOperandSegments]> {
  let summary = "RMS or layer norm over the features, or over each of `groups` equal parts of them";
  let description = [{
    Sums of squares are taken in f32. With `groups` (per-head norms) the weight is shared by the groups, or each has its own.

    (C1) features divide by groups. (C2) weight and bias are f32 vectors of features/groups, of features with `own_weights`.
    ```mlir
    %y = mcc.norm rms %x weight(%w : !mcc.weight<64xf32>) eps 1.0e-5 : tensor<?x64xf32>
    ```
  }];
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = [{ $kind $input (`weight` `(` $weight^ `:` type($weight) `)`)? (`bias` `(` $bias^ `:` type($bias) `)`)? `eps` $eps
    (`groups` $groups^)? (`own_weights` $ownWeights^)? (`on` $device^)? attr-dict `:` type($input) }];
  let hasVerifier = 1;
}

def Mcc_LinearOp : Mcc_Op<"linear", (ins Mcc_Activations:$input, Mcc_WeightType:$weight, Optional<Mcc_WeightType>:$bias,
    Optional<Mcc_Activations>:$residual, Optional<Mcc_WeightType>:$normWeight, Optional<Mcc_WeightType>:$normBias,
    OptionalAttr<Mcc_NormKind>:$normKind, DefaultValuedAttr<F64Attr, "0.0">:$eps,
    DefaultValuedAttr<Mcc_Activation, "::mcc::ir::ActivationKind::None">:$activation, UnitAttr:$gated, DefaultValuedAttr<F64Attr, "1.0">:$scale), [Pure, AttrSizedOperandSegments]> {
  let summary = "y = scale * activation(norm(x) W^T + bias) + residual";
  let description = [{
    The unfused form has input, weight and bias only; fusion adds a norm before and an epilogue after.
    `gated`: the weight holds gate and up rows interleaved (see mcc.weight), y = scale * activation(gate) * up + residual.

    (C1) input features are the weight's columns. (C2) result features are the weight's rows, half of them when gated.
    (C3) bias is an f32 vector of the weight's rows. (C4) residual has the result's type.
    (C5) a norm weight or bias needs a norm kind and is an f32 vector of the input's features.
    ```mlir
    %y = mcc.linear %x, %w : (tensor<?x64xf32>, !mcc.weight<96x64xbf16>) -> tensor<?x96xf32>
    ```
  }];
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = [{ $input `,` $weight (`bias` $bias^)? (`residual` $residual^)?
    (`norm` $normKind^ (`weight` $normWeight^)? (`bias` $normBias^)? `eps` $eps)?
    (`gated` $gated^)? (`activation` $activation^)? (`scale` $scale^)? (`on` $device^)? attr-dict `:` functional-type(operands, results) }];
  let hasVerifier = 1;
  // The unfused form; `bias` may be null.
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$input, "::mlir::Value":$weight, "::mlir::Value":$bias), [{
    build($_builder, $_state, type, input, weight, bias, {}, {}, {}, ::mcc::ir::NormKindAttr(), ::llvm::APFloat(0.0), ActivationKind::None, false, ::llvm::APFloat(1.0), DeviceAttr());
  }]>];
}

// Attention -----------------------------------------------------------------------------------------------------

def Mcc_RopeOp : Mcc_Op<"rope", (ins Mcc_Activations:$input, Mcc_Activations:$cosSin, I64Attr:$heads, Mcc_RopePairing:$pairing),
    [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "rotates the first dimensions of every head";
  let description = [{
    (C1) features divide by heads. (C2) the rotated dimensions (cos_sin's features) fit in a head.
    ```mlir
    %q2 = mcc.rope half %q, %r heads 4 : tensor<?x64xf32>, tensor<?x16xf32>
    ```
  }];
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = "$pairing $input `,` $cosSin `heads` $heads (`on` $device^)? attr-dict `:` type($input) `,` type($cosSin)";
  let hasVerifier = 1;
}

def Mcc_CacheAppendOp : Mcc_Op<"cache_append", (ins Mcc_Activations:$input, Arg<Mcc_CacheType, "", [MemWrite]>:$cache)> {
  let summary = "writes keys or values at the step's positions";
  let description = [{
    (C1) input features are the cache's heads times its head dimension.
    ```mlir
    mcc.cache_append %k to %kc : tensor<?x32xf32>, !mcc.cache<2x512x16>
    ```
  }];
  let assemblyFormat = "$input `to` $cache (`on` $device^)? attr-dict `:` type($input) `,` type($cache)";
  let hasVerifier = 1;
}

def Mcc_AttentionOp : Mcc_Op<"attention", (ins Mcc_Activations:$query, Arg<Mcc_CacheType, "", [MemRead]>:$keys, Arg<Mcc_CacheType, "", [MemRead]>:$values,
    Optional<Mcc_WeightType>:$sinks, I64Attr:$heads, F64Attr:$scale, DefaultValuedAttr<I64Attr, "0">:$window, DefaultValuedAttr<I64Attr, "0">:$chunk,
    DefaultValuedAttr<F64Attr, "0.0">:$softcap, OptionalAttr<DenseF32ArrayAttr>:$slopes, UnitAttr:$roundedSlopes), []> {
  let summary = "causal grouped-query attention over the caches";
  let description = [{
    `softmax(scale * q k^T) v` over the positions up to the token's own, the last `window` of them where window > 0;
    scores pass through `softcap * tanh(s / softcap)` where softcap > 0. Head h reads kv head h / (heads / kv_heads).
    `chunk`: a token sees its own chunk of positions only. `slopes` (ALiBi, one per head) times the key's position are added to
    the scores, each factor and the product rounded to bfloat16 with `rounded`. `sinks` (f32 [heads]) are one more logit per softmax.

    (C1) heads divide by the caches' heads. (C2) query features are heads times the keys' head dimension.
    (C3) keys and values agree in heads and context. (C4) result features are heads times the values' head dimension.
    (C5) there are as many slopes, and sinks, as heads.
    ```mlir
    %a = mcc.attention %q, %kc, %vc heads 4 scale 0.25 : (tensor<?x64xf32>, !mcc.cache<2x512x16>, !mcc.cache<2x512x16>) -> tensor<?x64xf32>
    ```
  }];
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = [{ $query `,` $keys `,` $values `heads` $heads `scale` $scale (`sinks` $sinks^)? (`window` $window^)? (`chunk` $chunk^)? (`softcap` $softcap^)?
    (`slopes` $slopes^)? (`rounded` $roundedSlopes^)? (`on` $device^)? attr-dict `:` functional-type(operands, results) }];
  let hasVerifier = 1;
}

// Recurrence ----------------------------------------------------------------------------------------------------

def Mcc_Recurrent : Arg<Mcc_StateType, "", [MemRead, MemWrite]>;

def Mcc_ConvOp : Mcc_Op<"conv", (ins Mcc_Activations:$input, Mcc_WeightType:$weight, Optional<Mcc_WeightType>:$bias,
    Arg<Optional<Mcc_StateType>, "", [MemRead, MemWrite]>:$state, DefaultValuedAttr<Mcc_Activation, "::mcc::ir::ActivationKind::None">:$activation),
    [AttrSizedOperandSegments, AllTypesMatch<["input", "result"]>]> {
  let summary = "y = activation(conv(x) + bias): a causal convolution of every feature by itself";
  let description = [{
    `conv(x)[t, c]` is the sum over k of `weight[c, k] x[t - taps + 1 + k, c]`. The state holds the taps - 1 inputs before the step.

    (C1) weight is an f32 matrix [features, taps]. (C2) bias is an f32 vector of features.
    (C3) state is [taps - 1, features], and absent for one tap.
    ```mlir
    %y = mcc.conv %x, %w state %s activation silu : (tensor<?x96xf32>, !mcc.weight<96x4xf32>, !mcc.state<3x96>) -> tensor<?x96xf32>
    ```
  }];
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = "$input `,` $weight (`bias` $bias^)? (`state` $state^)? (`activation` $activation^)? (`on` $device^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Mcc_SelectiveScanOp : Mcc_Op<"selective_scan", (ins Mcc_Activations:$input, Mcc_Activations:$time, Mcc_Activations:$b, Mcc_Activations:$c,
    Mcc_WeightType:$rates, Mcc_WeightType:$skip, Mcc_Recurrent:$state), [AllTypesMatch<["input", "time", "result"]>]> {
  let summary = "Mamba's selective scan";
  let description = [{
    Token by token, for every feature c and row n of the state, with d = softplus(time[t, c]):
    `h[n, c] = exp(d rates[c, n]) h[n, c] + d b[t, n] x[t, c]`; `y[t, c]` is the sum over n of `c[t, n] h[n, c]`, plus `skip[c] x[t, c]`.

    (C1) state is [depth, features]. (C2) b and c have depth features. (C3) rates are an f32 matrix [features, depth], skip an f32 vector.
    ```mlir
    %y = mcc.selective_scan %x time %dt in %b out %c rates %a skip %d state %s : (tensor<?x96xf32>, tensor<?x96xf32>, tensor<?x8xf32>, tensor<?x8xf32>, !mcc.weight<96x8xf32>, !mcc.weight<96xf32>, !mcc.state<8x96>) -> tensor<?x96xf32>
    ```
  }];
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = "$input `time` $time `in` $b `out` $c `rates` $rates `skip` $skip `state` $state (`on` $device^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Mcc_StateScanOp : Mcc_Op<"state_scan", (ins Mcc_Activations:$input, Mcc_Activations:$time, Mcc_Activations:$b, Mcc_Activations:$c,
    Mcc_WeightType:$rates, Mcc_WeightType:$timeBias, Mcc_WeightType:$skip, Mcc_Recurrent:$state, DefaultValuedAttr<I64Attr, "1">:$groups,
    DefaultValuedAttr<F64Attr, "0.0">:$timeMin, OptionalAttr<F64Attr>:$timeMax), [AllTypesMatch<["input", "result"]>]> {
  let summary = "Mamba 2's scan: one rate a head, b and c shared by the heads of a group";
  let description = [{
    Token by token, for every head h, with d = softplus(time[t, h] + time_bias[h]), at least time_min and at most time_max:
    `s[h, n, i] = exp(d rates[h]) s[h, n, i] + d b[t, g, n] x[t, h, i]`; `y[t, h, i]` is the sum over n of `c[t, g, n] s[h, n, i]`, plus
    `skip[h] x[t, h, i]`. Head h is of group g = h / (heads / groups).

    (C1) state is [heads, depth, features / heads], and heads divide by groups. (C2) time has heads features, b and c groups * depth.
    (C3) rates, time_bias and skip are f32 vectors of heads.
    ```mlir
    %y = mcc.state_scan %x time %dt in %b out %c rates %a time_bias %e skip %d state %s groups 2 : (tensor<?x64xf32>, tensor<?x4xf32>, tensor<?x32xf32>, tensor<?x32xf32>, !mcc.weight<4xf32>, !mcc.weight<4xf32>, !mcc.weight<4xf32>, !mcc.state<4x16x16>) -> tensor<?x64xf32>
    ```
  }];
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = [{ $input `time` $time `in` $b `out` $c `rates` $rates `time_bias` $timeBias `skip` $skip `state` $state (`groups` $groups^)?
    (`time_min` $timeMin^)? (`time_max` $timeMax^)? (`on` $device^)? attr-dict `:` functional-type(operands, results) }];
  let hasVerifier = 1;
}

def Mcc_DeltaScanOp : Mcc_Op<"delta_scan", (ins Mcc_Activations:$query, Mcc_Activations:$key, Mcc_Activations:$value, Mcc_Activations:$beta,
    Mcc_Activations:$decay, Mcc_WeightType:$rates, Mcc_WeightType:$decayBias, Mcc_Recurrent:$state, I64Attr:$keyHeads), [AllTypesMatch<["value", "result"]>]> {
  let summary = "the gated delta rule";
  let description = [{
    Token by token, for every value head h, whose query q and key k are those of key head h / (value heads / key heads), divided by their
    lengths, q also by sqrt(key dim): the state is multiplied by `exp(rates[h] softplus(decay[t, h] + decay_bias[h]))`; then
    `s[h] += k (sigmoid(beta[t, h]) (value - k s[h]))` and `y[t, h] = q s[h]`.

    (C1) state is [value heads, key dim, value dim], and value heads divide by key heads. (C2) query and key have key heads * key dim features,
    value has value heads * value dim, beta and decay value heads. (C3) rates and decay_bias are f32 vectors of value heads.
    ```mlir
    %y = mcc.delta_scan %q, %k, %v beta %b decay %g rates %a decay_bias %e state %s key_heads 2 : (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x64xf32>, tensor<?x4xf32>, tensor<?x4xf32>, !mcc.weight<4xf32>, !mcc.weight<4xf32>, !mcc.state<4x16x16>) -> tensor<?x64xf32>
    ```
  }];
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = [{ $query `,` $key `,` $value `beta` $beta `decay` $decay `rates` $rates `decay_bias` $decayBias `state` $state `key_heads` $keyHeads
    (`on` $device^)? attr-dict `:` functional-type(operands, results) }];
  let hasVerifier = 1;
}

// Experts -------------------------------------------------------------------------------------------------------

def Mcc_RouteOp : Mcc_Op<"route", (ins Mcc_Scoring:$scoring, Mcc_Activations:$input, Optional<Mcc_WeightType>:$bias, I64Attr:$chosen, UnitAttr:$normalize,
    DefaultValuedAttr<I64Attr, "1">:$groups, DefaultValuedAttr<I64Attr, "1">:$groupsChosen, DefaultValuedAttr<Mcc_GroupScore, "::mcc::ir::GroupScore::Max">:$groupScore,
    DefaultValuedAttr<F64Attr, "1.0">:$scale), [Pure]> {
  let summary = "chooses the experts of every token by a router's logits";
  let description = [{
    The result holds, per token, the weights of the chosen experts and then their numbers, by falling rank; see the kernel `route`. `bias` counts for
    the choice only.

    (C1) there are at least as many experts (input features) as chosen, and at least one. (C2) the result has 2 * chosen features.
    (C3) bias is an f32 vector of experts. (C4) experts divide by groups, and those of the chosen groups suffice.
    ```mlir
    %p = mcc.route softmax %l choose 2 normalize : tensor<?x8xf32> to tensor<?x4xf32>
    ```
  }];
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = [{ $scoring $input (`bias` `(` $bias^ `:` type($bias) `)`)? `choose` $chosen (`normalize` $normalize^)? (`groups` $groups^ `choose` $groupsChosen `by` $groupScore)?
    (`scale` $scale^)? (`on` $device^)? attr-dict `:` type($input) `to` type($result) }];
  let hasVerifier = 1;
}

def Mcc_ExpertsOp : Mcc_Op<"experts", (ins Mcc_Activations:$input, Mcc_Activations:$picks, Mcc_WeightType:$weight, Optional<Mcc_WeightType>:$bias, I64Attr:$experts,
    DefaultValuedAttr<Mcc_Activation, "::mcc::ir::ActivationKind::None">:$activation, UnitAttr:$gated, DefaultValuedAttr<F64Attr, "0.0">:$limit,
    DefaultValuedAttr<F64Attr, "0.0">:$upOffset), [Pure]> {
  let summary = "a linear of every chosen expert";
  let description = [{
    The weight holds the experts' rows one expert after the other; `gated`: gate and up rows interleaved. The input is one row for all experts of a token, or one
    for each; the result has one for each. `limit` and `up_offset`: see the kernel `experts`.

    (C1) the weight is a matrix whose rows divide by experts into multiples of 16 (of 32 when gated). (C2) the result's features are those rows (half when
    gated) for each pick, half of the features of picks. (C3) input features are the weight's columns, once or for each pick.
    (C4) bias is an f32 vector of the weight's rows.
    ```mlir
    %h = mcc.experts %x, %p, %w of 8 gated activation silu : (tensor<?x64xf32>, tensor<?x4xf32>, !mcc.weight<512x64xf32>) -> tensor<?x64xf32>
    ```
  }];
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = [{ $input `,` $picks `,` $weight (`bias` $bias^)? `of` $experts (`gated` $gated^)? (`activation` $activation^)? (`limit` $limit^)? (`up_offset` $upOffset^)?
    (`on` $device^)? attr-dict `:` functional-type(operands, results) }];
  let hasVerifier = 1;
}

def Mcc_CombineOp : Mcc_Op<"combine", (ins Mcc_Activations:$weights, Mcc_Activations:$input, I64Attr:$slots), [Pure]> {
  let summary = "the weighted sum of the rows that a token has, in order";
  let description = [{
    (C1) input features divide by slots; the result has that part of them. (C2) weights have at least slots features: the first ones weigh.
    ```mlir
    %y = mcc.combine %p, %h slots 2 : tensor<?x4xf32>, tensor<?x128xf32> to tensor<?x64xf32>
    ```
  }];
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = "$weights `,` $input `slots` $slots (`on` $device^)? attr-dict `:` type($weights) `,` type($input) `to` type($result)";
  let hasVerifier = 1;
}

// Element-wise and shape ----------------------------------------------------------------------------------------

def Mcc_AssembleOp : Mcc_Op<"assemble", (ins Mcc_Activations:$a, I64Attr:$aHead, I64Attr:$first, Optional<Mcc_Activations>:$b, DefaultValuedAttr<I64Attr, "0">:$bHead,
    DefaultValuedAttr<I64Attr, "0">:$second, I64Attr:$heads), [Pure]> {
  let summary = "heads put together from parts of others, zeros at their ends";
  let description = [{
    Head h of the result is `first` features of a from h * a_head on, then `second` of b from h * b_head on, then zeros. With a head distance of 0 all heads share
    the part.

    (C1) result features divide by heads into at least first + second. (C2) the last head's part ends within a, and within b. (C3) second needs b.
    ```mlir
    %k = mcc.assemble %r every 0 take 8, %n every 32 take 16 heads 4 : (tensor<?x8xf32>, tensor<?x128xf32>) -> tensor<?x96xf32>
    ```
  }];
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = "$a `every` $aHead `take` $first (`,` $b^ `every` $bHead `take` $second)? `heads` $heads (`on` $device^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Mcc_ActivateOp : Mcc_Op<"activate", (ins Mcc_Activation:$activation, Mcc_Activations:$input), [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "y = activation(x)";
  let description = [{ `mcc.activate none` folds away. }];
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = "$activation $input (`on` $device^)? attr-dict `:` type($input)";
  let hasFolder = 1;
}

def Mcc_GateOp : Mcc_Op<"gate", (ins Mcc_Activation:$activation, Mcc_Activations:$gate, Mcc_Activations:$up), [Pure, AllTypesMatch<["gate", "up", "result"]>]> {
  let summary = "y = activation(gate) * up";
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = "$activation $gate `,` $up (`on` $device^)? attr-dict `:` type($gate)";
}

def Mcc_AddOp : Mcc_Op<"add", (ins Mcc_Activations:$lhs, Mcc_Activations:$rhs), [Pure, Commutative, AllTypesMatch<["lhs", "rhs", "result"]>]> {
  let summary = "y = a + b (the residual stream)";
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = "$lhs `,` $rhs (`on` $device^)? attr-dict `:` type($lhs)";
}

def Mcc_XieluOp : Mcc_Op<"xielu", (ins Mcc_Activations:$input, Mcc_WeightType:$parameters), [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "xIELU, an activation with four weights of the layer";
  let description = [{
    With p, m, b, e the parameters, a = softplus(p) and n = b + softplus(m): `y = a x^2 + b x` where x > 0, else
    `n (expm1(min(x, e)) - x) + b x`.

    (C1) the parameters are an f32 vector of four.
    ```mlir
    %y = mcc.xielu %x, %p : tensor<?x64xf32>, !mcc.weight<4xf32>
    ```
  }];
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = "$input `,` $parameters (`on` $device^)? attr-dict `:` type($input) `,` type($parameters)";
  let hasVerifier = 1;
}

def Mcc_ScaleOp : Mcc_Op<"scale", (ins Mcc_Activations:$input, F64Attr:$factor), [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "y = factor * x";
  let description = [{ A factor of one folds away. }];
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = "$input `by` $factor (`on` $device^)? attr-dict `:` type($input)";
  let hasFolder = 1;
}

def Mcc_ClampOp : Mcc_Op<"clamp", (ins Mcc_Activations:$input, F64Attr:$limit), [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "y = x within [-limit, limit]";
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = "$input `to` $limit (`on` $device^)? attr-dict `:` type($input)";
}

def Mcc_SliceOp : Mcc_Op<"slice", (ins Mcc_Activations:$input, I64Attr:$column), [Pure]> {
  let summary = "the features [column, column + n) of every token; a view, no copy";
  let description = [{
    (C1) the slice lies within the input's features. A slice of everything folds away.
    ```mlir
    %k = mcc.slice %qkv at 64 : tensor<?x128xf32> to tensor<?x32xf32>
    ```
  }];
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = "$input `at` $column (`on` $device^)? attr-dict `:` type($input) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

// Output --------------------------------------------------------------------------------------------------------

def Mcc_LastRowOp : Mcc_Op<"last_row", (ins Mcc_Activations:$input), [Pure]> {
  let summary = "the last token's features, [1, features]";
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = "$input (`on` $device^)? attr-dict `:` type($input) `to` type($result)";
}

def Mcc_ScaleLogitsOp : Mcc_Op<"scale_logits", (ins Mcc_Activations:$input, F64Attr:$scale, DefaultValuedAttr<F64Attr, "0.0">:$softcap),
    [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "y = cap(scale * x), cap(s) = softcap * tanh(s / softcap) where softcap > 0";
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = "$input `scale` $scale (`softcap` $softcap^)? (`on` $device^)? attr-dict `:` type($input)";
}

def Mcc_ArgmaxOp : Mcc_Op<"argmax", (ins Mcc_Activations:$input), [Pure]> {
  let summary = "index of the greatest feature, the lowest on ties, -1 where one is NaN";
  let results = (outs Mcc_Tokens:$result);
  let assemblyFormat = "$input (`on` $device^)? attr-dict `:` type($input) `to` type($result)";
}

// Fused forms ---------------------------------------------------------------------------------------------------

def Mcc_RopeCacheOp : Mcc_Op<"rope_cache", (ins Mcc_Activations:$query, Mcc_Activations:$key, Mcc_Activations:$value, Optional<Mcc_Activations>:$cosSin,
    Optional<Mcc_WeightType>:$queryNorm, Optional<Mcc_WeightType>:$keyNorm, Arg<Mcc_CacheType, "", [MemWrite]>:$keys, Arg<Mcc_CacheType, "", [MemWrite]>:$values,
    I64Attr:$heads, Mcc_RopePairing:$pairing, UnitAttr:$normAfter, DefaultValuedAttr<F64Attr, "0.0">:$eps), [AttrSizedOperandSegments, AllTypesMatch<["query", "result"]>]> {
  let summary = "per-head norms and rotation of q and k, and the cache writes; gives q";
  let description = [{
    Equivalent to mcc.norm (groups) and mcc.rope on q and k (with `norm_after` the rope comes first), then two mcc.cache_append. q is changed in place: it has no other reader.

    (C1) query features are heads times the keys' head dimension. (C2) key and value features are those of their caches.
    (C3) norms are f32 vectors of the keys' head dimension. (C4) `norm_after` needs a norm.
    ```mlir
    %q2 = mcc.rope_cache half %q, %k, %v into %kc, %vc heads 4 rotary(%r : tensor<?x16xf32>) : tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>, <2x512x16>, <2x512x16>
    ```
  }];
  let results = (outs Mcc_Activations:$result);
  let assemblyFormat = [{ $pairing $query `,` $key `,` $value `into` $keys `,` $values `heads` $heads (`rotary` `(` $cosSin^ `:` type($cosSin) `)`)?
    (`query_norm` `(` $queryNorm^ `:` type($queryNorm) `)`)? (`key_norm` `(` $keyNorm^ `:` type($keyNorm) `)`)? (`norm_after` $normAfter^)? (`eps` $eps^)? (`on` $device^)?
    attr-dict `:` type($query) `,` type($key) `,` type($value) `,` type($keys) `,` type($values) }];
  let hasVerifier = 1;
}

def Mcc_LogitsOp : Mcc_Op<"logits", (ins Mcc_Activations:$input, Mcc_WeightType:$weight, Optional<Mcc_WeightType>:$bias,
    Optional<Mcc_WeightType>:$normWeight, Optional<Mcc_WeightType>:$normBias, OptionalAttr<Mcc_NormKind>:$normKind,
    DefaultValuedAttr<F64Attr, "0.0">:$eps, DefaultValuedAttr<F64Attr, "1.0">:$scale, DefaultValuedAttr<F64Attr, "0.0">:$softcap), [Pure, AttrSizedOperandSegments]> {
  let summary = "the last token's logits and the greedy token: last_row, norm, linear, scale_logits and argmax in one";
  let description = [{
    (C1) input features are the weight's columns; logits have its rows. (C2) bias and norm operands as in mcc.linear.
    ```mlir
    %token, %l = mcc.logits %x, %w norm rms weight %n eps 1.0e-5 : (tensor<?x64xf32>, !mcc.weight<192x64xf32>, !mcc.weight<64xf32>) -> (tensor<1xi32>, tensor<1x192xf32>)
    ```
  }];
  let results = (outs Mcc_Tokens:$token, Mcc_Activations:$logits);
  let assemblyFormat = [{ $input `,` $weight (`bias` $bias^)? (`norm` $normKind^ (`weight` $normWeight^)? (`bias` $normBias^)? `eps` $eps)?
    (`scale` $scale^)? (`softcap` $softcap^)? (`on` $device^)? attr-dict `:` functional-type(operands, results) }];
  let hasVerifier = 1;
}

#endif
