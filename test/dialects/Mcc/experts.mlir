// RUN: mcc-opt %s | mcc-opt | FileCheck %s

// CHECK-LABEL: func.func @mixture
func.func @mixture(%x: tensor<?x64xf32>, %l: tensor<?x8xf32>) -> tensor<?x64xf32> {
  %b = mcc.weight ["bias"] : <8xf32>
  %gu = mcc.weight ["g0", "g1", "u0", "u1"] interleaved : <64x64xbf16>
  %gub = mcc.weight ["gb0", "gb1", "ub0", "ub1"] interleaved : <64xf32>
  %d = mcc.weight ["d0", "d1"] : <128x16xbf16>
  // CHECK: mcc.route sigmoid %{{.*}} bias(%{{.*}} : !mcc.weight<8xf32>) choose 2 normalize groups 4 choose 2 by top_two_sum scale 2.500000e+00
  %p = mcc.route sigmoid %l bias(%b : !mcc.weight<8xf32>) choose 2 normalize groups 4 choose 2 by top_two_sum scale 2.5 : tensor<?x8xf32> to tensor<?x4xf32>
  // CHECK: mcc.route softmax %{{.*}} choose 2 :
  %q = mcc.route softmax %l choose 2 : tensor<?x8xf32> to tensor<?x4xf32>
  // CHECK: mcc.experts %{{.*}}, %{{.*}}, %{{.*}} bias %{{.*}} of 2 gated activation gelu_quick limit 7.000000e+00 up_offset 1.000000e+00
  %h = mcc.experts %x, %p, %gu bias %gub of 2 gated activation gelu_quick limit 7.0 up_offset 1.0 : (tensor<?x64xf32>, tensor<?x4xf32>, !mcc.weight<64x64xbf16>, !mcc.weight<64xf32>) -> tensor<?x32xf32>
  // CHECK: mcc.experts %{{.*}}, %{{.*}}, %{{.*}} of 2 :
  %o = mcc.experts %h, %q, %d of 2 : (tensor<?x32xf32>, tensor<?x4xf32>, !mcc.weight<128x16xbf16>) -> tensor<?x128xf32>
  // CHECK: mcc.combine %{{.*}}, %{{.*}} slots 2
  %y = mcc.combine %p, %o slots 2 : tensor<?x4xf32>, tensor<?x128xf32> to tensor<?x64xf32>
  // CHECK: mcc.assemble %{{.*}} every 0 take 8, %{{.*}} every 32 take 16 heads 2
  %k = mcc.assemble %l every 0 take 8, %x every 32 take 16 heads 2 : (tensor<?x8xf32>, tensor<?x64xf32>) -> tensor<?x48xf32>
  // CHECK: mcc.assemble %{{.*}} every 24 take 16 heads 2
  %v = mcc.assemble %k every 24 take 16 heads 2 : (tensor<?x48xf32>) -> tensor<?x32xf32>
  return %y : tensor<?x64xf32>
}
