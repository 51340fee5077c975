// RUN: mcc-opt %s -pass-pipeline='builtin.module(func.func(mcc-join-projections))' | FileCheck %s

// Linears of one input and one format become one, with slices in its place.
// CHECK-LABEL: func.func @qkv
// CHECK:         %[[W:.*]] = mcc.weight ["q", "k"] : <96x64xf32>
// CHECK:         %[[B:.*]] = mcc.weight ["qb", "kb"] : <96xf32>
// CHECK:         %[[Y:.*]] = mcc.linear %{{.*}}, %[[W]] bias %[[B]]
// CHECK:         mcc.slice %[[Y]] at 0 : tensor<?x96xf32> to tensor<?x64xf32>
// CHECK:         mcc.slice %[[Y]] at 64 : tensor<?x96xf32> to tensor<?x32xf32>
func.func @qkv(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x32xf32>) {
  %wq = mcc.weight ["q"] : <64x64xf32>
  %wk = mcc.weight ["k"] : <32x64xf32>
  %bq = mcc.weight ["qb"] : <64xf32>
  %bk = mcc.weight ["kb"] : <32xf32>
  %q = mcc.linear %x, %wq bias %bq : (tensor<?x64xf32>, !mcc.weight<64x64xf32>, !mcc.weight<64xf32>) -> tensor<?x64xf32>
  %k = mcc.linear %x, %wk bias %bk : (tensor<?x64xf32>, !mcc.weight<32x64xf32>, !mcc.weight<32xf32>) -> tensor<?x32xf32>
  return %q, %k : tensor<?x64xf32>, tensor<?x32xf32>
}

// A panel has one format, so others stay apart.
// CHECK-LABEL: func.func @formats_differ
// CHECK-COUNT-2: mcc.linear
// CHECK-NOT:     mcc.slice
func.func @formats_differ(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x32xf32>) {
  %wq = mcc.weight ["q"] : <64x64xq4_0>
  %wk = mcc.weight ["k"] : <32x64xq8_0>
  %q = mcc.linear %x, %wq : (tensor<?x64xf32>, !mcc.weight<64x64xq4_0>) -> tensor<?x64xf32>
  %k = mcc.linear %x, %wk : (tensor<?x64xf32>, !mcc.weight<32x64xq8_0>) -> tensor<?x32xf32>
  return %q, %k : tensor<?x64xf32>, tensor<?x32xf32>
}

// What has another format stays apart; the others join over it.
// CHECK-LABEL: func.func @not_neighbours
// CHECK:         mcc.weight ["q", "v"] : <96x64xq4_0>
// CHECK-COUNT-2: mcc.linear
// CHECK-NOT:     mcc.linear
func.func @not_neighbours(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>) {
  %wq = mcc.weight ["q"] : <64x64xq4_0>
  %wk = mcc.weight ["k"] : <32x64xq8_0>
  %wv = mcc.weight ["v"] : <32x64xq4_0>
  %q = mcc.linear %x, %wq : (tensor<?x64xf32>, !mcc.weight<64x64xq4_0>) -> tensor<?x64xf32>
  %k = mcc.linear %x, %wk : (tensor<?x64xf32>, !mcc.weight<32x64xq8_0>) -> tensor<?x32xf32>
  %v = mcc.linear %x, %wv : (tensor<?x64xf32>, !mcc.weight<32x64xq4_0>) -> tensor<?x32xf32>
  return %q, %k, %v : tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>
}

// An activation of its own is worth more as an epilogue than a wider launch.
// CHECK-LABEL: func.func @activated
// CHECK-NOT:     mcc.slice
func.func @activated(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x32xf32>) {
  %wq = mcc.weight ["q"] : <64x64xf32>
  %wk = mcc.weight ["up"] : <32x64xf32>
  %q = mcc.linear %x, %wq : (tensor<?x64xf32>, !mcc.weight<64x64xf32>) -> tensor<?x64xf32>
  %u = mcc.linear %x, %wk : (tensor<?x64xf32>, !mcc.weight<32x64xf32>) -> tensor<?x32xf32>
  %a = mcc.activate relu %u : tensor<?x32xf32>
  return %q, %a : tensor<?x64xf32>, tensor<?x32xf32>
}

// A weight that two ops read is stored once, in its own order.
// CHECK-LABEL: func.func @shared_weight
// CHECK-COUNT-3: mcc.linear
func.func @shared_weight(%x: tensor<?x64xf32>, %z: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x64xf32>) {
  %wq = mcc.weight ["q"] : <64x64xf32>
  %wk = mcc.weight ["k"] : <32x64xf32>
  %q = mcc.linear %x, %wq : (tensor<?x64xf32>, !mcc.weight<64x64xf32>) -> tensor<?x64xf32>
  %k = mcc.linear %x, %wk : (tensor<?x64xf32>, !mcc.weight<32x64xf32>) -> tensor<?x32xf32>
  %o = mcc.linear %z, %wq : (tensor<?x64xf32>, !mcc.weight<64x64xf32>) -> tensor<?x64xf32>
  return %q, %k, %o : tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x64xf32>
}

// Gate and up alternate by panels and the gate becomes the epilogue.
// CHECK-LABEL: func.func @gate
// CHECK:         %[[W:.*]] = mcc.weight ["gate", "up"] interleaved : <192x64xf32>
// CHECK:         mcc.linear %{{.*}}, %[[W]] gated activation silu
// CHECK-NOT:     mcc.gate
func.func @gate(%x: tensor<?x64xf32>) -> tensor<?x96xf32> {
  %wg = mcc.weight ["gate"] : <96x64xf32>
  %wu = mcc.weight ["up"] : <96x64xf32>
  %g = mcc.linear %x, %wg : (tensor<?x64xf32>, !mcc.weight<96x64xf32>) -> tensor<?x96xf32>
  %u = mcc.linear %x, %wu : (tensor<?x64xf32>, !mcc.weight<96x64xf32>) -> tensor<?x96xf32>
  %y = mcc.gate silu %g, %u : tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// CHECK-LABEL: func.func @gate_formats_differ
// CHECK:         mcc.gate silu
func.func @gate_formats_differ(%x: tensor<?x64xf32>) -> tensor<?x96xf32> {
  %wg = mcc.weight ["gate"] : <96x64xq4_0>
  %wu = mcc.weight ["up"] : <96x64xf32>
  %g = mcc.linear %x, %wg : (tensor<?x64xf32>, !mcc.weight<96x64xq4_0>) -> tensor<?x96xf32>
  %u = mcc.linear %x, %wu : (tensor<?x64xf32>, !mcc.weight<96x64xf32>) -> tensor<?x96xf32>
  %y = mcc.gate silu %g, %u : tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}
