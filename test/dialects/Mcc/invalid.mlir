// Each constraint of the mcc dialect's ops and types, named as in their descriptions.
// RUN: mcc-opt %s -split-input-file -verify-diagnostics

func.func @weight_type_format() {
  // expected-error @+1 {{unknown storage format 'q4'}}
  %w = mcc.weight ["a"] : <64x64xq4>
}

// -----

func.func @weight_type_block() {
  // expected-error @+1 {{weight has 48 columns; format 'q4_0' comes in blocks of 32}}
  %w = mcc.weight ["a"] : <64x48xq4_0>
}

// -----

func.func @weight_type_rank() {
  // expected-error @+1 {{weight has 3 dimensions; a vector or a matrix is wanted}}
  %w = mcc.weight ["a"] : <2x64x64xf32>
}

// -----

func.func @cache_type_rank() {
  // expected-error @+1 {{cache has 2 dimensions; [kv heads, context, head dim] is wanted}}
  %c = mcc.cache "k" : <2x512>
}

// -----

func.func @weight_c1() {
  // expected-error @+1 {{'mcc.weight' op has no source; name at least one tensor}}
  %w = mcc.weight [] : <64x64xf32>
  return
}

// -----

func.func @weight_c2() {
  // expected-error @+1 {{interleaves 1 sources into 64 rows; two halves of equal rows are wanted}}
  %w = mcc.weight ["a"] interleaved : <64x64xf32>
  return
}

// -----

func.func @embed_c1(%t: tensor<?xi32>) {
  %w = mcc.weight ["a"] : <192x32xf32>
  // expected-error @+1 {{weight has 32 columns; the input has 64 features}}
  %x = mcc.embed %t, %w : (tensor<?xi32>, !mcc.weight<192x32xf32>) -> tensor<?x64xf32>
  return
}

// -----

func.func @rotary_c1(%t: tensor<?xi32>) {
  // expected-error @+1 {{result has 8 features; 2 frequencies give 4}}
  %r = mcc.rotary %t frequencies [1.0, 0.1] : (tensor<?xi32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @norm_c1(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{has 5 groups; the input has 64 features}}
  %y = mcc.norm rms %x eps 1.0e-5 groups 5 : tensor<?x64xf32>
  return
}

// -----

func.func @norm_c2(%x: tensor<?x64xf32>) {
  %w = mcc.weight ["a"] : <64xf32>
  // expected-error @+1 {{weight has type '!mcc.weight<64xf32>'; an f32 vector of 16 is wanted}}
  %y = mcc.norm rms %x weight(%w : !mcc.weight<64xf32>) eps 1.0e-5 groups 4 : tensor<?x64xf32>
  return
}

// -----

func.func @linear_c1(%x: tensor<?x32xf32>) {
  %w = mcc.weight ["a"] : <96x64xf32>
  // expected-error @+1 {{weight has 64 columns; the input has 32 features}}
  %y = mcc.linear %x, %w : (tensor<?x32xf32>, !mcc.weight<96x64xf32>) -> tensor<?x96xf32>
  return
}

// -----

func.func @linear_matrix(%x: tensor<?x64xf32>) {
  %w = mcc.weight ["a"] : <64xf32>
  // expected-error @+1 {{weight has type '!mcc.weight<64xf32>'; a matrix is wanted}}
  %y = mcc.linear %x, %w : (tensor<?x64xf32>, !mcc.weight<64xf32>) -> tensor<?x96xf32>
  return
}

// -----

func.func @linear_c2(%x: tensor<?x64xf32>) {
  %w = mcc.weight ["a", "b"] interleaved : <96x64xf32>
  // expected-error @+1 {{result has 96 features; the weight has 96 gate and up rows}}
  %y = mcc.linear %x, %w gated : (tensor<?x64xf32>, !mcc.weight<96x64xf32>) -> tensor<?x96xf32>
  return
}

// -----

func.func @linear_c3(%x: tensor<?x64xf32>) {
  %w = mcc.weight ["a"] : <96x64xf32>
  %b = mcc.weight ["b"] : <64xf32>
  // expected-error @+1 {{bias has type '!mcc.weight<64xf32>'; an f32 vector of 96 is wanted}}
  %y = mcc.linear %x, %w bias %b : (tensor<?x64xf32>, !mcc.weight<96x64xf32>, !mcc.weight<64xf32>) -> tensor<?x96xf32>
  return
}

// -----

func.func @linear_c4(%x: tensor<?x64xf32>) {
  %w = mcc.weight ["a"] : <96x64xf32>
  // expected-error @+1 {{residual has 64 features; the result has 96}}
  %y = mcc.linear %x, %w residual %x : (tensor<?x64xf32>, !mcc.weight<96x64xf32>, tensor<?x64xf32>) -> tensor<?x96xf32>
  return
}

// -----

func.func @rope_c1(%x: tensor<?x64xf32>, %r: tensor<?x4xf32>) {
  // expected-error @+1 {{has 5 heads; the input has 64 features}}
  %y = mcc.rope half %x, %r heads 5 : tensor<?x64xf32>, tensor<?x4xf32>
  return
}

// -----

func.func @rope_c2(%x: tensor<?x64xf32>, %r: tensor<?x32xf32>) {
  // expected-error @+1 {{rotates 32 dimensions; a head has 16}}
  %y = mcc.rope half %x, %r heads 4 : tensor<?x64xf32>, tensor<?x32xf32>
  return
}

// -----

func.func @cache_append_c1(%k: tensor<?x64xf32>) {
  %c = mcc.cache "k" : <2x512x16>
  // expected-error @+1 {{input has 64 features; the cache takes 32}}
  mcc.cache_append %k to %c : tensor<?x64xf32>, <2x512x16>
  return
}

// -----

func.func @attention_c1(%q: tensor<?x48xf32>) {
  %c = mcc.cache "k" : <2x512x16>
  // expected-error @+1 {{has 3 heads; the caches have 2}}
  %a = mcc.attention %q, %c, %c heads 3 scale 1.0 : (tensor<?x48xf32>, !mcc.cache<2x512x16>, !mcc.cache<2x512x16>) -> tensor<?x48xf32>
  return
}

// -----

func.func @attention_c2(%q: tensor<?x32xf32>) {
  %c = mcc.cache "k" : <2x512x16>
  // expected-error @+1 {{query has 32 features; 4 heads of 16 are wanted}}
  %a = mcc.attention %q, %c, %c heads 4 scale 1.0 : (tensor<?x32xf32>, !mcc.cache<2x512x16>, !mcc.cache<2x512x16>) -> tensor<?x64xf32>
  return
}

// -----

func.func @attention_c3(%q: tensor<?x64xf32>) {
  %k = mcc.cache "k" : <2x512x16>
  %v = mcc.cache "v" : <2x256x16>
  // expected-error @+1 {{differ in heads or context}}
  %a = mcc.attention %q, %k, %v heads 4 scale 1.0 : (tensor<?x64xf32>, !mcc.cache<2x512x16>, !mcc.cache<2x256x16>) -> tensor<?x64xf32>
  return
}

// -----

func.func @attention_c4(%q: tensor<?x64xf32>) {
  %c = mcc.cache "k" : <2x512x16>
  // expected-error @+1 {{result has 32 features; 4 heads of 16 are wanted}}
  %a = mcc.attention %q, %c, %c heads 4 scale 1.0 : (tensor<?x64xf32>, !mcc.cache<2x512x16>, !mcc.cache<2x512x16>) -> tensor<?x32xf32>
  return
}

// -----

func.func @slice_c1(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{takes features 48 to 80; the input has 64}}
  %y = mcc.slice %x at 48 : tensor<?x64xf32> to tensor<?x32xf32>
  return
}

// -----

func.func @rope_cache_c1(%q: tensor<?x32xf32>, %k: tensor<?x32xf32>) {
  %c = mcc.cache "k" : <2x512x16>
  // expected-error @+1 {{query has 32 features; 4 heads of 16 are wanted}}
  %y = mcc.rope_cache half %q, %k, %k into %c, %c heads 4 : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>, <2x512x16>, <2x512x16>
  return
}

// -----

func.func @rope_cache_c2(%q: tensor<?x64xf32>, %k: tensor<?x32xf32>, %v: tensor<?x48xf32>) {
  %c = mcc.cache "k" : <2x512x16>
  // expected-error @+1 {{value has 48 features; the cache takes 32}}
  %y = mcc.rope_cache half %q, %k, %v into %c, %c heads 4 : tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x48xf32>, <2x512x16>, <2x512x16>
  return
}

// -----

func.func @rope_cache_c3(%q: tensor<?x64xf32>, %k: tensor<?x32xf32>) {
  %c = mcc.cache "k" : <2x512x16>
  %w = mcc.weight ["n"] : <64xf32>
  // expected-error @+1 {{query norm has type '!mcc.weight<64xf32>'; an f32 vector of 16 is wanted}}
  %y = mcc.rope_cache half %q, %k, %k into %c, %c heads 4 query_norm(%w : !mcc.weight<64xf32>) : tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>, <2x512x16>, <2x512x16>
  return
}

// -----

func.func @rope_cache_c4(%q: tensor<?x64xf32>, %k: tensor<?x32xf32>) {
  %c = mcc.cache "k" : <2x512x16>
  // expected-error @+1 {{has no norm to take after the rotation}}
  %y = mcc.rope_cache half %q, %k, %k into %c, %c heads 4 norm_after : tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>, <2x512x16>, <2x512x16>
  return
}

// -----

func.func @xielu_c1(%x: tensor<?x64xf32>) {
  %w = mcc.weight ["p"] : <3xf32>
  // expected-error @+1 {{parameters has type '!mcc.weight<3xf32>'; an f32 vector of 4 is wanted}}
  %y = mcc.xielu %x, %w : tensor<?x64xf32>, <3xf32>
  return
}

// -----

func.func @attention_c5(%q: tensor<?x64xf32>) {
  %c = mcc.cache "k" : <2x512x16>
  // expected-error @+1 {{has 2 slopes; there are 4 heads}}
  %a = mcc.attention %q, %c, %c heads 4 scale 1.0 slopes [0.5, 0.25] : (tensor<?x64xf32>, !mcc.cache<2x512x16>, !mcc.cache<2x512x16>) -> tensor<?x64xf32>
  return
}

// -----

func.func @positions_c1(%x: tensor<?x64xf32>) {
  %w = mcc.weight ["p"] : <512x32xf32>
  // expected-error @+1 {{weight has 32 columns; the input has 64 features}}
  %y = mcc.positions %x, %w : tensor<?x64xf32>, <512x32xf32>
  return
}

// -----

func.func @logits_c1(%x: tensor<?x64xf32>) {
  %w = mcc.weight ["a"] : <192x64xf32>
  // expected-error @+1 {{gives 96 logits; the weight has 192 rows}}
  %t, %l = mcc.logits %x, %w : (tensor<?x64xf32>, !mcc.weight<192x64xf32>) -> (tensor<1xi32>, tensor<1x96xf32>)
  return
}

// -----

func.func @logits_c2(%x: tensor<?x64xf32>) {
  %w = mcc.weight ["a"] : <192x64xf32>
  %b = mcc.weight ["b"] : <64xf32>
  // expected-error @+1 {{bias has type '!mcc.weight<64xf32>'; an f32 vector of 192 is wanted}}
  %t, %l = mcc.logits %x, %w bias %b : (tensor<?x64xf32>, !mcc.weight<192x64xf32>, !mcc.weight<64xf32>) -> (tensor<1xi32>, tensor<1x192xf32>)
  return
}

// -----

func.func @linear_c5(%x: tensor<?x64xf32>) {
  %w = mcc.weight ["a"] : <64x64xf32>
  %n = mcc.weight ["n"] : <64xf32>
  // expected-error @+1 {{has norm operands but no norm kind}}
  %y = "mcc.linear"(%x, %w, %n) {eps = 1.0e-5 : f64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 1, 0>} : (tensor<?x64xf32>, !mcc.weight<64x64xf32>, !mcc.weight<64xf32>) -> tensor<?x64xf32>
  return
}
