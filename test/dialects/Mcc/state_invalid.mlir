// RUN: mcc-opt %s -split-input-file -verify-diagnostics

func.func @conv_c1(%x: tensor<?x64xf32>, %dt: tensor<?x4xf32>, %bc: tensor<?x32xf32>, %n: tensor<?x8xf32>) {
  %w = mcc.weight ["w"] : <64x4xbf16>
  %s = mcc.state "s" : !mcc.state<3x64>
  // expected-error @+1 {{weight has type '!mcc.weight<64x4xbf16>'; an f32 matrix of 64 x 4 is wanted}}
  %y = mcc.conv %x, %w state %s : (tensor<?x64xf32>, !mcc.weight<64x4xbf16>, !mcc.state<3x64>) -> tensor<?x64xf32>
  return
}

// -----

func.func @conv_c2(%x: tensor<?x64xf32>, %dt: tensor<?x4xf32>, %bc: tensor<?x32xf32>, %n: tensor<?x8xf32>) {
  %w = mcc.weight ["w"] : <64x4xf32>
  %b = mcc.weight ["b"] : <32xf32>
  %s = mcc.state "s" : !mcc.state<3x64>
  // expected-error @+1 {{bias has type '!mcc.weight<32xf32>'; an f32 vector of 64 is wanted}}
  %y = mcc.conv %x, %w bias %b state %s : (tensor<?x64xf32>, !mcc.weight<64x4xf32>, !mcc.weight<32xf32>, !mcc.state<3x64>) -> tensor<?x64xf32>
  return
}

// -----

func.func @conv_c3(%x: tensor<?x64xf32>, %dt: tensor<?x4xf32>, %bc: tensor<?x32xf32>, %n: tensor<?x8xf32>) {
  %w = mcc.weight ["w"] : <64x4xf32>
  // expected-error @+1 {{has 4 taps and no state; 3 x 64 is wanted}}
  %y = mcc.conv %x, %w : (tensor<?x64xf32>, !mcc.weight<64x4xf32>) -> tensor<?x64xf32>
  return
}

// -----

func.func @conv_c3_shape(%x: tensor<?x64xf32>, %dt: tensor<?x4xf32>, %bc: tensor<?x32xf32>, %n: tensor<?x8xf32>) {
  %w = mcc.weight ["w"] : <64x4xf32>
  %s = mcc.state "s" : !mcc.state<4x64>
  // expected-error @+1 {{state has type '!mcc.state<4x64>'; 3 x 64 is wanted}}
  %y = mcc.conv %x, %w state %s : (tensor<?x64xf32>, !mcc.weight<64x4xf32>, !mcc.state<4x64>) -> tensor<?x64xf32>
  return
}

// -----

func.func @selective_c1(%x: tensor<?x64xf32>, %dt: tensor<?x4xf32>, %bc: tensor<?x32xf32>, %n: tensor<?x8xf32>) {
  %w = mcc.weight ["w"] : <64x8xf32>
  %d = mcc.weight ["d"] : <64xf32>
  %s = mcc.state "s" : !mcc.state<8x32>
  // expected-error @+1 {{depth x 64 is wanted}}
  %y = mcc.selective_scan %x time %x in %n out %n rates %w skip %d state %s : (tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x8xf32>, tensor<?x8xf32>, !mcc.weight<64x8xf32>, !mcc.weight<64xf32>, !mcc.state<8x32>) -> tensor<?x64xf32>
  return
}

// -----

func.func @selective_c2(%x: tensor<?x64xf32>, %dt: tensor<?x4xf32>, %bc: tensor<?x32xf32>, %n: tensor<?x8xf32>) {
  %w = mcc.weight ["w"] : <64x8xf32>
  %d = mcc.weight ["d"] : <64xf32>
  %s = mcc.state "s" : !mcc.state<8x64>
  // expected-error @+1 {{out has 4 features; 8 are wanted}}
  %y = mcc.selective_scan %x time %x in %n out %dt rates %w skip %d state %s : (tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x8xf32>, tensor<?x4xf32>, !mcc.weight<64x8xf32>, !mcc.weight<64xf32>, !mcc.state<8x64>) -> tensor<?x64xf32>
  return
}

// -----

func.func @state_scan_c1(%x: tensor<?x64xf32>, %dt: tensor<?x4xf32>, %bc: tensor<?x32xf32>, %n: tensor<?x8xf32>) {
  %w = mcc.weight ["w"] : <4xf32>
  %s = mcc.state "s" : !mcc.state<4x16x8>
  // expected-error @+1 {{heads x depth x head dim is wanted, for 64 features}}
  %y = mcc.state_scan %x time %dt in %bc out %bc rates %w time_bias %w skip %w state %s groups 2 : (tensor<?x64xf32>, tensor<?x4xf32>, tensor<?x32xf32>, tensor<?x32xf32>, !mcc.weight<4xf32>, !mcc.weight<4xf32>, !mcc.weight<4xf32>, !mcc.state<4x16x8>) -> tensor<?x64xf32>
  return
}

// -----

func.func @state_scan_groups(%x: tensor<?x64xf32>, %dt: tensor<?x4xf32>, %bc: tensor<?x32xf32>, %n: tensor<?x8xf32>) {
  %w = mcc.weight ["w"] : <4xf32>
  %s = mcc.state "s" : !mcc.state<4x16x16>
  // expected-error @+1 {{has 3 groups; there are 4 heads}}
  %y = mcc.state_scan %x time %dt in %bc out %bc rates %w time_bias %w skip %w state %s groups 3 : (tensor<?x64xf32>, tensor<?x4xf32>, tensor<?x32xf32>, tensor<?x32xf32>, !mcc.weight<4xf32>, !mcc.weight<4xf32>, !mcc.weight<4xf32>, !mcc.state<4x16x16>) -> tensor<?x64xf32>
  return
}

// -----

func.func @delta_c1(%x: tensor<?x64xf32>, %dt: tensor<?x4xf32>, %bc: tensor<?x32xf32>, %n: tensor<?x8xf32>) {
  %w = mcc.weight ["w"] : <4xf32>
  %s = mcc.state "s" : !mcc.state<4x16x8>
  // expected-error @+1 {{value heads x key dim x value dim is wanted, for 64 features}}
  %y = mcc.delta_scan %bc, %bc, %x beta %dt decay %dt rates %w decay_bias %w state %s key_heads 2 : (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x64xf32>, tensor<?x4xf32>, tensor<?x4xf32>, !mcc.weight<4xf32>, !mcc.weight<4xf32>, !mcc.state<4x16x8>) -> tensor<?x64xf32>
  return
}

// -----

func.func @delta_heads(%x: tensor<?x64xf32>, %dt: tensor<?x4xf32>, %bc: tensor<?x32xf32>, %n: tensor<?x8xf32>) {
  %w = mcc.weight ["w"] : <4xf32>
  %s = mcc.state "s" : !mcc.state<4x16x16>
  // expected-error @+1 {{has 3 key heads; there are 4 value heads}}
  %y = mcc.delta_scan %bc, %bc, %x beta %dt decay %dt rates %w decay_bias %w state %s key_heads 3 : (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x64xf32>, tensor<?x4xf32>, tensor<?x4xf32>, !mcc.weight<4xf32>, !mcc.weight<4xf32>, !mcc.state<4x16x16>) -> tensor<?x64xf32>
  return
}

// -----

func.func @exponentials() {
  // expected-error @+1 {{takes exponentials into '!mcc.weight<64x8xbf16>'; only f32 holds them}}
  %w = mcc.weight ["w"] negated_exp : <64x8xbf16>
  return
}

// -----

// expected-error @+1 {{state has a dimension of size 0}}
func.func @empty_state(%x: !mcc.state<3x0>) {
  return
}

// -----

// expected-error @+1 {{has context -1 : i64; a positive i64 is wanted}}
func.func @context() attributes {mcc.context = -1} {
  return
}

// -----

// expected-error @+1 {{has attribute 'mcc.text'; the only one of the dialect is 'mcc.context'}}
func.func @attribute() attributes {mcc.text = 1} {
  return
}
