// RUN: mcc-opt %s -convert-mcc-to-exec=chunk=16 | FileCheck %s

// A residual that dies is overwritten in place; slices are views; q stays where it was projected.
// CHECK:         exec.program @step context 512 chunk 16 vocabulary 192
// CHECK:           %[[NONE:.*]] = exec.none
// CHECK:           %[[X:.*]] = exec.buffer bytes 4096
// CHECK:           exec.launch embed<bf16>(%{{.*}}, %[[X]])
// CHECK:           %[[QK:.*]] = exec.buffer bytes 6144
// CHECK:           exec.launch linear<f32>(%[[X]], %{{.*}}, %[[NONE]], %[[NONE]], %[[NONE]], %[[NONE]], %[[NONE]], %[[QK]]) ints(rows = 96, cols = 64, x_stride = 64, y_stride = 96
// CHECK:           %[[V:.*]] = exec.buffer bytes 2048
// CHECK:           exec.launch linear<q8_0>(%[[X]], {{.*}}%[[V]]) ints(rows = 32
// CHECK:           %[[K:.*]] = exec.view %[[QK]] at 256
// CHECK:           exec.launch rope_cache(%[[QK]], %[[K]], %[[V]], {{.*}} q_stride = 96, k_stride = 96, v_stride = 32, context = 512, norm_after = 0
// CHECK:           exec.launch attention(%[[QK]], %{{.*}}, %{{.*}}, %[[NONE]], %[[NONE]], %[[A:.*]]) ints(heads = 4, kv_heads = 2, head_dim = 16, q_stride = 96, y_stride = 64
// CHECK:           exec.launch linear<f32>(%[[A]], %{{.*}}, %[[NONE]], %[[X]], %[[NONE]], %[[NONE]], %[[NONE]], %[[X]])
// CHECK:           exec.launch logits<bf16>(%[[X]]
// CHECK:           exec.launch argmax
// CHECK:           exec.result
func.func @step(%tokens: tensor<?xi32>) -> (tensor<1xi32>, tensor<1x192xf32>) {
  %table = mcc.weight ["embed"] on cpu : <192x64xbf16>
  %wqk = mcc.weight ["q", "k"] on cpu : <96x64xf32>
  %wv = mcc.weight ["v"] on cpu : <32x64xq8_0>
  %wo = mcc.weight ["o"] on cpu : <64x64xf32>
  %kc = mcc.cache "k" on cpu : <2x512x16>
  %vc = mcc.cache "v" on cpu : <2x512x16>
  %x = mcc.embed %tokens, %table on cpu : (tensor<?xi32>, !mcc.weight<192x64xbf16>) -> tensor<?x64xf32>
  %qk = mcc.linear %x, %wqk on cpu : (tensor<?x64xf32>, !mcc.weight<96x64xf32>) -> tensor<?x96xf32>
  %v = mcc.linear %x, %wv on cpu : (tensor<?x64xf32>, !mcc.weight<32x64xq8_0>) -> tensor<?x32xf32>
  %q = mcc.slice %qk at 0 on cpu : tensor<?x96xf32> to tensor<?x64xf32>
  %k = mcc.slice %qk at 64 on cpu : tensor<?x96xf32> to tensor<?x32xf32>
  %q2 = mcc.rope_cache half %q, %k, %v into %kc, %vc heads 4 on cpu : tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>, <2x512x16>, <2x512x16>
  %a = mcc.attention %q2, %kc, %vc heads 4 scale 0.25 on cpu : (tensor<?x64xf32>, !mcc.cache<2x512x16>, !mcc.cache<2x512x16>) -> tensor<?x64xf32>
  %y = mcc.linear %a, %wo residual %x on cpu : (tensor<?x64xf32>, !mcc.weight<64x64xf32>, tensor<?x64xf32>) -> tensor<?x64xf32>
  %token, %logits = mcc.logits %y, %table on cpu : (tensor<?x64xf32>, !mcc.weight<192x64xbf16>) -> (tensor<1xi32>, tensor<1x192xf32>)
  return %token, %logits : tensor<1xi32>, tensor<1x192xf32>
}

// An activation with weights overwrites what dies with it.
// CHECK:         exec.program @bent
// CHECK:           exec.launch linear<f32>({{.*}}%[[UP:[^ ,]*]])
// CHECK:           exec.launch xielu(%[[UP]], %{{.*}}, %[[UP]]) ints(cols = 96, x_stride = 96, y_stride = 96)
func.func @bent(%tokens: tensor<?xi32>) -> (tensor<1xi32>, tensor<1x192xf32>) attributes {mcc.context = 512} {
  %table = mcc.weight ["embed"] on cpu : <192x64xbf16>
  %wup = mcc.weight ["up"] on cpu : <96x64xf32>
  %wdown = mcc.weight ["down"] on cpu : <64x96xf32>
  %p = mcc.weight ["alpha_p", "alpha_n", "beta", "eps"] on cpu : <4xf32>
  %x = mcc.embed %tokens, %table on cpu : (tensor<?xi32>, !mcc.weight<192x64xbf16>) -> tensor<?x64xf32>
  %u = mcc.linear %x, %wup on cpu : (tensor<?x64xf32>, !mcc.weight<96x64xf32>) -> tensor<?x96xf32>
  %b = mcc.xielu %u, %p on cpu : tensor<?x96xf32>, <4xf32>
  %y = mcc.linear %b, %wdown residual %x on cpu : (tensor<?x96xf32>, !mcc.weight<64x96xf32>, tensor<?x64xf32>) -> tensor<?x64xf32>
  %token, %logits = mcc.logits %y, %table on cpu : (tensor<?x64xf32>, !mcc.weight<192x64xbf16>) -> (tensor<1xi32>, tensor<1x192xf32>)
  return %token, %logits : tensor<1xi32>, tensor<1x192xf32>
}

// States lie in the cache, in panels of 16 lanes.
// CHECK:         exec.program @recurrent
// CHECK:           exec.cache "conv" bytes 1152
// CHECK:           exec.cache "h" bytes 3072
// CHECK:           exec.launch conv({{.*}}) ints(channels = 90, taps = 4, x_stride = 90, y_stride = 90, activation = 1)
// CHECK:           exec.launch selective_scan({{.*}}) ints(channels = 90, depth = 8, x_stride = 90, dt_stride = 90, b_stride = 8, c_stride = 8, y_stride = 90)
func.func @recurrent(%tokens: tensor<?xi32>) -> (tensor<1xi32>, tensor<1x192xf32>) attributes {mcc.context = 512} {
  %table = mcc.weight ["embed"] on cpu : <192x90xf32>
  %in = mcc.weight ["b"] on cpu : <8x90xf32>
  %taps = mcc.weight ["taps"] on cpu : <90x4xf32>
  %rates = mcc.weight ["rates"] on cpu : <90x8xf32>
  %skip = mcc.weight ["skip"] on cpu : <90xf32>
  %c = mcc.state "conv" on cpu : !mcc.state<3x90>
  %h = mcc.state "h" on cpu : !mcc.state<8x90>
  %x = mcc.embed %tokens, %table on cpu : (tensor<?xi32>, !mcc.weight<192x90xf32>) -> tensor<?x90xf32>
  %b = mcc.linear %x, %in on cpu : (tensor<?x90xf32>, !mcc.weight<8x90xf32>) -> tensor<?x8xf32>
  %v = mcc.conv %x, %taps state %c activation silu on cpu : (tensor<?x90xf32>, !mcc.weight<90x4xf32>, !mcc.state<3x90>) -> tensor<?x90xf32>
  %y = mcc.selective_scan %v time %x in %b out %b rates %rates skip %skip state %h on cpu : (tensor<?x90xf32>, tensor<?x90xf32>, tensor<?x8xf32>, tensor<?x8xf32>, !mcc.weight<90x8xf32>, !mcc.weight<90xf32>, !mcc.state<8x90>) -> tensor<?x90xf32>
  %token, %logits = mcc.logits %y, %table on cpu : (tensor<?x90xf32>, !mcc.weight<192x90xf32>) -> (tensor<1xi32>, tensor<1x192xf32>)
  return %token, %logits : tensor<1xi32>, tensor<1x192xf32>
}
