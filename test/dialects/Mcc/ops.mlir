// Every op of the mcc dialect parses, verifies and prints as it was written.
// RUN: mcc-opt %s | mcc-opt | FileCheck %s

// CHECK-LABEL: func.func @step
func.func @step(%tokens: tensor<?xi32>) -> (tensor<1xi32>, tensor<1x192xf32>) {
  // CHECK: mcc.weight ["embed"] on gpu : <192x64xbf16>
  %table = mcc.weight ["embed"] on gpu : <192x64xbf16>
  // CHECK: mcc.weight ["norm"] offset 1.000000e+00 : <64xf32>
  %gain = mcc.weight ["norm"] offset 1.0 : <64xf32>
  %wq = mcc.weight ["q"] : <64x64xq4_0>
  %wk = mcc.weight ["k"] : <32x64xq8_0>
  // CHECK: mcc.weight ["gate", "up"] interleaved : <192x64xf32>
  %wgu = mcc.weight ["gate", "up"] interleaved : <192x64xf32>
  %wd = mcc.weight ["down"] : <64x96xf32>
  %bias = mcc.weight ["bias"] : <64xf32>
  // CHECK: mcc.embed %{{.*}}, %{{.*}} scale 8.000000e+00
  %x = mcc.embed %tokens, %table scale 8.0 : (tensor<?xi32>, !mcc.weight<192x64xbf16>) -> tensor<?x64xf32>
  // CHECK: mcc.rotary %{{.*}} frequencies [1.000000e+00, 1.000000e-01] factor 2.000000e+00
  %r = mcc.rotary %tokens frequencies [1.0, 0.1] factor 2.0 : (tensor<?xi32>) -> tensor<?x4xf32>
  // CHECK: mcc.norm rms %{{.*}} weight(%{{.*}} : !mcc.weight<64xf32>) eps
  %n = mcc.norm rms %x weight(%gain : !mcc.weight<64xf32>) eps 1.0e-5 : tensor<?x64xf32>
  // CHECK: mcc.norm layer %{{.*}} eps 1.000000e-05 groups 4
  %m = mcc.norm layer %n eps 1.0e-5 groups 4 : tensor<?x64xf32>
  %q = mcc.linear %m, %wq bias %bias : (tensor<?x64xf32>, !mcc.weight<64x64xq4_0>, !mcc.weight<64xf32>) -> tensor<?x64xf32>
  %k = mcc.linear %m, %wk : (tensor<?x64xf32>, !mcc.weight<32x64xq8_0>) -> tensor<?x32xf32>
  // CHECK: mcc.rope adjacent %{{.*}}, %{{.*}} heads 4
  %qr = mcc.rope adjacent %q, %r heads 4 : tensor<?x64xf32>, tensor<?x4xf32>
  // CHECK: mcc.cache "layers.0.k" on gpu : <2x512x16>
  %kc = mcc.cache "layers.0.k" on gpu : <2x512x16>
  %vc = mcc.cache "layers.0.v" : <2x512x16>
  // CHECK: mcc.cache_append
  mcc.cache_append %k to %kc : tensor<?x32xf32>, <2x512x16>
  // CHECK: mcc.rotary %{{.*}} frequencies [1.000000e+00, 5.000000e-01, 1.000000e-01, 5.000000e-02] original 4096
  %rl = mcc.rotary %tokens frequencies [1.0, 0.5, 0.1, 0.05] original 4096 : (tensor<?xi32>) -> tensor<?x4xf32>
  // CHECK: mcc.rope_cache half %{{.*}}, %{{.*}}, %{{.*}} into %{{.*}}, %{{.*}} heads 4 rotary(%{{.*}} : tensor<?x4xf32>)
  %q2 = mcc.rope_cache half %qr, %k, %k into %kc, %vc heads 4 rotary(%r : tensor<?x4xf32>) : tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>, <2x512x16>, <2x512x16>
  // CHECK: mcc.rope_cache half {{.*}} query_norm(%{{.*}} : !mcc.weight<16xf32>) norm_after eps 1.000000e-05
  %qn = mcc.weight ["qn"] : <16xf32>
  %q3 = mcc.rope_cache half %q2, %k, %k into %kc, %vc heads 4 rotary(%r : tensor<?x4xf32>) query_norm(%qn : !mcc.weight<16xf32>) norm_after eps 1.0e-5 : tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>, <2x512x16>, <2x512x16>
  // CHECK: mcc.attention %{{.*}} heads 4 scale 2.500000e-01 window 16 softcap 3.000000e+01
  %a = mcc.attention %q2, %kc, %vc heads 4 scale 0.25 window 16 softcap 30.0 : (tensor<?x64xf32>, !mcc.cache<2x512x16>, !mcc.cache<2x512x16>) -> tensor<?x64xf32>
  %sink = mcc.weight ["sinks"] : <4xf32>
  // CHECK: mcc.attention %{{.*}} heads 4 scale 2.500000e-01 sinks %{{.*}} chunk 64 slopes [5.000000e-01, 2.500000e-01, 1.250000e-01, 6.250000e-02] rounded
  %b = mcc.attention %q2, %kc, %vc heads 4 scale 0.25 sinks %sink chunk 64 slopes [0.5, 0.25, 0.125, 0.0625] rounded : (tensor<?x64xf32>, !mcc.cache<2x512x16>, !mcc.cache<2x512x16>, !mcc.weight<4xf32>) -> tensor<?x64xf32>
  // CHECK: mcc.weight [#mcc.source<"c_attn", first 64, rows 32, stride 0, groups 1, transposed true, slab -1>] : <32x64xf32>
  %part = mcc.weight [#mcc.source<"c_attn", first 64, rows 32, stride 0, groups 1, transposed true, slab -1>] : <32x64xf32>
  // CHECK: mcc.positions %{{.*}}, %{{.*}} offset 2
  %pos = mcc.positions %b, %table offset 2 : tensor<?x64xf32>, <192x64xbf16>
  // CHECK: mcc.scale %{{.*}} by 2.000000e+00
  %doubled = mcc.scale %pos by 2.0 : tensor<?x64xf32>
  %four = mcc.weight ["alpha_p", "alpha_n", "beta", "eps"] : <4xf32>
  // CHECK: mcc.xielu %{{.*}}, %{{.*}} : tensor<?x64xf32>, <4xf32>
  %bent = mcc.xielu %doubled, %four : tensor<?x64xf32>, <4xf32>
  // CHECK: mcc.clamp %{{.*}} to 8.000000e+00
  %clamped = mcc.clamp %doubled to 8.0 : tensor<?x64xf32>
  // CHECK: mcc.norm rms %{{.*}} weight(%{{.*}} : !mcc.weight<64xf32>) eps 1.000000e-05 groups 4 own_weights
  %own = mcc.norm rms %clamped weight(%gain : !mcc.weight<64xf32>) eps 1.0e-5 groups 4 own_weights : tensor<?x64xf32>
  // CHECK: mcc.linear %{{.*}}, %{{.*}} scale 5.000000e-01
  %half = mcc.linear %own, %wq scale 0.5 : (tensor<?x64xf32>, !mcc.weight<64x64xq4_0>) -> tensor<?x64xf32>
  // CHECK: mcc.linear %{{.*}}, %{{.*}} norm rms weight %{{.*}} eps 1.000000e-05 gated activation silu
  %g = mcc.linear %a, %wgu norm rms weight %gain eps 1.0e-5 gated activation silu : (tensor<?x64xf32>, !mcc.weight<192x64xf32>, !mcc.weight<64xf32>) -> tensor<?x96xf32>
  // CHECK: mcc.linear %{{.*}}, %{{.*}} residual %{{.*}}
  %d = mcc.linear %g, %wd residual %x : (tensor<?x96xf32>, !mcc.weight<64x96xf32>, tensor<?x64xf32>) -> tensor<?x64xf32>
  // CHECK: mcc.activate gelu_tanh
  %e = mcc.activate gelu_tanh %d : tensor<?x64xf32>
  // CHECK: mcc.gate silu
  %f = mcc.gate silu %e, %d : tensor<?x64xf32>
  // CHECK: mcc.add
  %s = mcc.add %f, %x on cpu : tensor<?x64xf32>
  // CHECK: mcc.slice %{{.*}} at 32
  %h = mcc.slice %s at 32 : tensor<?x64xf32> to tensor<?x32xf32>
  %l = mcc.last_row %s : tensor<?x64xf32> to tensor<1x64xf32>
  %lin = mcc.linear %l, %table : (tensor<1x64xf32>, !mcc.weight<192x64xbf16>) -> tensor<1x192xf32>
  // CHECK: mcc.scale_logits %{{.*}} scale 5.000000e-01 softcap 3.000000e+01
  %sc = mcc.scale_logits %lin scale 0.5 softcap 30.0 : tensor<1x192xf32>
  %t = mcc.argmax %sc : tensor<1x192xf32> to tensor<1xi32>
  // CHECK: mcc.logits %{{.*}}, %{{.*}} norm rms weight %{{.*}} eps 1.000000e-05
  %token, %logits = mcc.logits %s, %table norm rms weight %gain eps 1.0e-5 : (tensor<?x64xf32>, !mcc.weight<192x64xbf16>, !mcc.weight<64xf32>) -> (tensor<1xi32>, tensor<1x192xf32>)
  return %token, %logits : tensor<1xi32>, tensor<1x192xf32>
}
