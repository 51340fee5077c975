// RUN: mcc-opt %s -split-input-file -verify-diagnostics

func.func @route_c1(%x: tensor<?x64xf32>, %l: tensor<?x8xf32>, %p: tensor<?x4xf32>) {
  // expected-error @+1 {{chooses 9 of 8 experts}}
  %y = mcc.route softmax %l choose 9 : tensor<?x8xf32> to tensor<?x18xf32>
  return
}

// -----

func.func @route_c2(%x: tensor<?x64xf32>, %l: tensor<?x8xf32>, %p: tensor<?x4xf32>) {
  // expected-error @+1 {{result has 6 features; 2 weights and numbers are wanted}}
  %y = mcc.route softmax %l choose 2 : tensor<?x8xf32> to tensor<?x6xf32>
  return
}

// -----

func.func @route_c3(%x: tensor<?x64xf32>, %l: tensor<?x8xf32>, %p: tensor<?x4xf32>) {
  %b = mcc.weight ["b"] : <4xf32>
  // expected-error @+1 {{bias has type '!mcc.weight<4xf32>'; an f32 vector of 8 is wanted}}
  %y = mcc.route softmax %l bias(%b : !mcc.weight<4xf32>) choose 2 : tensor<?x8xf32> to tensor<?x4xf32>
  return
}

// -----

func.func @route_c4(%x: tensor<?x64xf32>, %l: tensor<?x8xf32>, %p: tensor<?x4xf32>) {
  // expected-error @+1 {{chooses 5 experts from 2 of 4 groups of 8 experts in all}}
  %y = mcc.route softmax %l choose 5 groups 4 choose 2 by max : tensor<?x8xf32> to tensor<?x10xf32>
  return
}

// -----

func.func @route_groups(%x: tensor<?x64xf32>, %l: tensor<?x8xf32>, %p: tensor<?x4xf32>) {
  // expected-error @+1 {{ranks groups by their two best; a group has 1}}
  %y = mcc.route softmax %l choose 2 groups 8 choose 4 by top_two_sum : tensor<?x8xf32> to tensor<?x4xf32>
  return
}

// -----

func.func @experts_c1(%x: tensor<?x64xf32>, %l: tensor<?x8xf32>, %p: tensor<?x4xf32>) {
  %w = mcc.weight ["w"] : <72x64xf32>
  // expected-error @+1 {{weight has type '!mcc.weight<72x64xf32>'; 3 experts of whole panels of 16 rows are wanted}}
  %y = mcc.experts %x, %p, %w of 3 : (tensor<?x64xf32>, tensor<?x4xf32>, !mcc.weight<72x64xf32>) -> tensor<?x48xf32>
  return
}

// -----

func.func @experts_c2(%x: tensor<?x64xf32>, %l: tensor<?x8xf32>, %p: tensor<?x4xf32>) {
  %w = mcc.weight ["w"] : <64x64xf32>
  // expected-error @+1 {{result has 48 features; 2 picks of 32 rows are wanted}}
  %y = mcc.experts %x, %p, %w of 2 : (tensor<?x64xf32>, tensor<?x4xf32>, !mcc.weight<64x64xf32>) -> tensor<?x48xf32>
  return
}

// -----

func.func @experts_c3(%x: tensor<?x64xf32>, %l: tensor<?x8xf32>, %p: tensor<?x4xf32>) {
  %w = mcc.weight ["w"] : <64x48xf32>
  // expected-error @+1 {{input has 64 features; 48 columns once or for each of 2 picks are wanted}}
  %y = mcc.experts %x, %p, %w of 2 : (tensor<?x64xf32>, tensor<?x4xf32>, !mcc.weight<64x48xf32>) -> tensor<?x64xf32>
  return
}

// -----

func.func @experts_c4(%x: tensor<?x64xf32>, %l: tensor<?x8xf32>, %p: tensor<?x4xf32>) {
  %w = mcc.weight ["w"] : <64x64xf32>
  %b = mcc.weight ["b"] : <32xf32>
  // expected-error @+1 {{bias has type '!mcc.weight<32xf32>'; an f32 vector of 64 is wanted}}
  %y = mcc.experts %x, %p, %w bias %b of 2 : (tensor<?x64xf32>, tensor<?x4xf32>, !mcc.weight<64x64xf32>, !mcc.weight<32xf32>) -> tensor<?x64xf32>
  return
}

// -----

func.func @combine_c1(%x: tensor<?x64xf32>, %l: tensor<?x8xf32>, %p: tensor<?x4xf32>) {
  // expected-error @+1 {{input has 64 features; 2 slots of 48 are wanted}}
  %y = mcc.combine %p, %x slots 2 : tensor<?x4xf32>, tensor<?x64xf32> to tensor<?x48xf32>
  return
}

// -----

func.func @combine_c2(%x: tensor<?x64xf32>, %l: tensor<?x8xf32>, %p: tensor<?x4xf32>) {
  // expected-error @+1 {{has 4 weights for 8 slots}}
  %y = mcc.combine %p, %x slots 8 : tensor<?x4xf32>, tensor<?x64xf32> to tensor<?x8xf32>
  return
}

// -----

func.func @assemble_c1(%x: tensor<?x64xf32>, %l: tensor<?x8xf32>, %p: tensor<?x4xf32>) {
  // expected-error @+1 {{result has 40 features; 2 heads of at least 24 are wanted}}
  %y = mcc.assemble %l every 0 take 8, %x every 32 take 16 heads 2 : (tensor<?x8xf32>, tensor<?x64xf32>) -> tensor<?x40xf32>
  return
}

// -----

func.func @assemble_c2(%x: tensor<?x64xf32>, %l: tensor<?x8xf32>, %p: tensor<?x4xf32>) {
  // expected-error @+1 {{takes 8 features every 4 for 2 heads; the first part has 8}}
  %y = mcc.assemble %l every 4 take 8 heads 2 : (tensor<?x8xf32>) -> tensor<?x16xf32>
  return
}

// -----

func.func @assemble_c2_second(%x: tensor<?x64xf32>, %l: tensor<?x8xf32>, %p: tensor<?x4xf32>) {
  // expected-error @+1 {{takes 40 features every 32 for 2 heads; the second part has 64}}
  %y = mcc.assemble %l every 0 take 8, %x every 32 take 40 heads 2 : (tensor<?x8xf32>, tensor<?x64xf32>) -> tensor<?x96xf32>
  return
}

// -----

func.func @assemble_c3(%x: tensor<?x64xf32>, %l: tensor<?x8xf32>, %p: tensor<?x4xf32>) {
  // expected-error @+1 {{takes 4 features of a second part that is not there}}
  %y = "mcc.assemble"(%l) {aHead = 0 : i64, first = 8 : i64, second = 4 : i64, heads = 2 : i64} : (tensor<?x8xf32>) -> tensor<?x32xf32>
  return
}
