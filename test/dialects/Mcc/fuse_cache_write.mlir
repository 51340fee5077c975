// RUN: mcc-opt %s -pass-pipeline='builtin.module(func.func(mcc-fuse-cache-write))' | FileCheck %s

// Slices of one joined projection: q is changed where it is.
// CHECK-LABEL: func.func @slices
// CHECK-SAME:    (%[[QKV:.*]]: tensor<?x128xf32>, %[[R:.*]]: tensor<?x16xf32>)
// CHECK:         %[[Q:.*]] = mcc.slice %[[QKV]] at 0
// CHECK:         %[[K:.*]] = mcc.slice %[[QKV]] at 64
// CHECK:         %[[V:.*]] = mcc.slice %[[QKV]] at 96
// CHECK:         %[[Q2:.*]] = mcc.rope_cache half %[[Q]], %[[K]], %[[V]] into %[[KC:.*]], %[[VC:.*]] heads 4 rotary(%[[R]] : tensor<?x16xf32>)
// CHECK:         mcc.attention %[[Q2]], %[[KC]], %[[VC]]
// CHECK-NOT:     mcc.cache_append
func.func @slices(%qkv: tensor<?x128xf32>, %r: tensor<?x16xf32>) -> tensor<?x64xf32> {
  %q = mcc.slice %qkv at 0 : tensor<?x128xf32> to tensor<?x64xf32>
  %k = mcc.slice %qkv at 64 : tensor<?x128xf32> to tensor<?x32xf32>
  %v = mcc.slice %qkv at 96 : tensor<?x128xf32> to tensor<?x32xf32>
  %q2 = mcc.rope half %q, %r heads 4 : tensor<?x64xf32>, tensor<?x16xf32>
  %k2 = mcc.rope half %k, %r heads 2 : tensor<?x32xf32>, tensor<?x16xf32>
  %kc = mcc.cache "k" : <2x512x16>
  %vc = mcc.cache "v" : <2x512x16>
  mcc.cache_append %k2 to %kc : tensor<?x32xf32>, <2x512x16>
  mcc.cache_append %v to %vc : tensor<?x32xf32>, <2x512x16>
  %a = mcc.attention %q2, %kc, %vc heads 4 scale 0.25 : (tensor<?x64xf32>, !mcc.cache<2x512x16>, !mcc.cache<2x512x16>) -> tensor<?x64xf32>
  return %a : tensor<?x64xf32>
}

// Values of their own; per-head norms go along; no rotation is fine.
// CHECK-LABEL: func.func @separate
// CHECK:         mcc.rope_cache half %{{.*}}, %{{.*}}, %{{.*}} into %{{.*}}, %{{.*}} heads 4 query_norm(%{{.*}} : !mcc.weight<16xf32>) key_norm(%{{.*}} : !mcc.weight<16xf32>) eps
// CHECK-NOT:     mcc.norm
func.func @separate(%q: tensor<?x64xf32>, %k: tensor<?x32xf32>, %v: tensor<?x32xf32>) -> tensor<?x64xf32> {
  %wq = mcc.weight ["qn"] : <16xf32>
  %wk = mcc.weight ["kn"] : <16xf32>
  %q1 = mcc.norm rms %q weight(%wq : !mcc.weight<16xf32>) eps 1.0e-6 groups 4 : tensor<?x64xf32>
  %k1 = mcc.norm rms %k weight(%wk : !mcc.weight<16xf32>) eps 1.0e-6 groups 2 : tensor<?x32xf32>
  %kc = mcc.cache "k" : <2x512x16>
  %vc = mcc.cache "v" : <2x512x16>
  mcc.cache_append %k1 to %kc : tensor<?x32xf32>, <2x512x16>
  mcc.cache_append %v to %vc : tensor<?x32xf32>, <2x512x16>
  %a = mcc.attention %q1, %kc, %vc heads 4 scale 0.25 : (tensor<?x64xf32>, !mcc.cache<2x512x16>, !mcc.cache<2x512x16>) -> tensor<?x64xf32>
  return %a : tensor<?x64xf32>
}

// A query that something else reads must stay as it is.
// CHECK-LABEL: func.func @query_read_twice
// CHECK-NOT:     mcc.rope_cache
func.func @query_read_twice(%q: tensor<?x64xf32>, %k: tensor<?x32xf32>, %r: tensor<?x16xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %q2 = mcc.rope half %q, %r heads 4 : tensor<?x64xf32>, tensor<?x16xf32>
  %k2 = mcc.rope half %k, %r heads 2 : tensor<?x32xf32>, tensor<?x16xf32>
  %kc = mcc.cache "k" : <2x512x16>
  %vc = mcc.cache "v" : <2x512x16>
  mcc.cache_append %k2 to %kc : tensor<?x32xf32>, <2x512x16>
  mcc.cache_append %k to %vc : tensor<?x32xf32>, <2x512x16>
  %a = mcc.attention %q2, %kc, %vc heads 4 scale 0.25 : (tensor<?x64xf32>, !mcc.cache<2x512x16>, !mcc.cache<2x512x16>) -> tensor<?x64xf32>
  return %a, %q : tensor<?x64xf32>, tensor<?x64xf32>
}

// One op cannot rotate q and k by different tables.
// CHECK-LABEL: func.func @tables_differ
// CHECK-NOT:     mcc.rope_cache
func.func @tables_differ(%q: tensor<?x64xf32>, %k: tensor<?x32xf32>, %r: tensor<?x16xf32>, %s: tensor<?x16xf32>) -> tensor<?x64xf32> {
  %q2 = mcc.rope half %q, %r heads 4 : tensor<?x64xf32>, tensor<?x16xf32>
  %k2 = mcc.rope half %k, %s heads 2 : tensor<?x32xf32>, tensor<?x16xf32>
  %kc = mcc.cache "k" : <2x512x16>
  %vc = mcc.cache "v" : <2x512x16>
  mcc.cache_append %k2 to %kc : tensor<?x32xf32>, <2x512x16>
  mcc.cache_append %k to %vc : tensor<?x32xf32>, <2x512x16>
  %a = mcc.attention %q2, %kc, %vc heads 4 scale 0.25 : (tensor<?x64xf32>, !mcc.cache<2x512x16>, !mcc.cache<2x512x16>) -> tensor<?x64xf32>
  return %a : tensor<?x64xf32>
}

// Norms of rotated heads go along too, q and k alike.
// CHECK-LABEL: func.func @norm_after
// CHECK:         mcc.rope_cache half %arg0, %arg1, %arg1 into %{{.*}}, %{{.*}} heads 4 rotary(%arg2 : tensor<?x16xf32>) query_norm(%{{.*}} : !mcc.weight<16xf32>) key_norm(%{{.*}} : !mcc.weight<16xf32>) norm_after eps
// CHECK-NOT:     mcc.norm
// CHECK-NOT:     mcc.rope %
func.func @norm_after(%q: tensor<?x64xf32>, %k: tensor<?x32xf32>, %r: tensor<?x16xf32>) -> tensor<?x64xf32> {
  %w = mcc.weight ["n"] : <16xf32>
  %q1 = mcc.rope half %q, %r heads 4 : tensor<?x64xf32>, tensor<?x16xf32>
  %k1 = mcc.rope half %k, %r heads 2 : tensor<?x32xf32>, tensor<?x16xf32>
  %q2 = mcc.norm rms %q1 weight(%w : !mcc.weight<16xf32>) eps 1.0e-6 groups 4 : tensor<?x64xf32>
  %k2 = mcc.norm rms %k1 weight(%w : !mcc.weight<16xf32>) eps 1.0e-6 groups 2 : tensor<?x32xf32>
  %kc = mcc.cache "k" : <2x512x16>
  %vc = mcc.cache "v" : <2x512x16>
  mcc.cache_append %k2 to %kc : tensor<?x32xf32>, <2x512x16>
  mcc.cache_append %k to %vc : tensor<?x32xf32>, <2x512x16>
  %a = mcc.attention %q2, %kc, %vc heads 4 scale 0.25 : (tensor<?x64xf32>, !mcc.cache<2x512x16>, !mcc.cache<2x512x16>) -> tensor<?x64xf32>
  return %a : tensor<?x64xf32>
}

// A norm before one rotation and after the other is more than one op can say.
// CHECK-LABEL: func.func @orders_differ
// CHECK-NOT:     mcc.rope_cache
func.func @orders_differ(%q: tensor<?x64xf32>, %k: tensor<?x32xf32>, %r: tensor<?x16xf32>) -> tensor<?x64xf32> {
  %w = mcc.weight ["n"] : <16xf32>
  %q1 = mcc.rope half %q, %r heads 4 : tensor<?x64xf32>, tensor<?x16xf32>
  %k1 = mcc.norm rms %k weight(%w : !mcc.weight<16xf32>) eps 1.0e-6 groups 2 : tensor<?x32xf32>
  %q2 = mcc.norm rms %q1 weight(%w : !mcc.weight<16xf32>) eps 1.0e-6 groups 4 : tensor<?x64xf32>
  %k2 = mcc.rope half %k1, %r heads 2 : tensor<?x32xf32>, tensor<?x16xf32>
  %kc = mcc.cache "k" : <2x512x16>
  %vc = mcc.cache "v" : <2x512x16>
  mcc.cache_append %k2 to %kc : tensor<?x32xf32>, <2x512x16>
  mcc.cache_append %k to %vc : tensor<?x32xf32>, <2x512x16>
  %a = mcc.attention %q2, %kc, %vc heads 4 scale 0.25 : (tensor<?x64xf32>, !mcc.cache<2x512x16>, !mcc.cache<2x512x16>) -> tensor<?x64xf32>
  return %a : tensor<?x64xf32>
}
