// Problems for the solver's tests, and the slow certain answer to small ones.
#pragma once

#include "runtime-lib/placement/Graph.h"

#include <optional>
#include <random>
#include <vector>

namespace mcc::placement::test {

/// What brute force finds.
struct Optimum {
  double costNs = 0;
  std::vector<Device> devices;
};

/// Tries every placement that obeys states, rules, kernels and memory; nullopt where none does. At most 20 ops.
/// Shares no code with the library: it counts from the meaning of the fields.
std::optional<Optimum> bruteForce(const Problem &problem);

/// Makes a problem of `ops` ops with chains, branches, weights shared and not, states, rules and one-device ops.
/// `memory`: with a cap that is often short.
Problem randomProblem(std::mt19937 &random, uint32_t ops, bool memory);

/// Makes a decoder of `layers` layers with 13 ops each, an embedding and a head, with the times of a two-core CPU
/// and a large GPU and bf16 weights of `width` columns.
Problem llama(uint32_t layers, double width, double decodeSteps);

} // namespace mcc::placement::test
