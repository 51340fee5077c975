// A plan as work in order: stretches of launches on one device, and what has to be copied before each.
#pragma once

#include "mcc/Program.h"

#include <cstdint>
#include <vector>

namespace mcc::runtime {

/// Launches in a row on one device.
struct Segment {
  bool onGpu = false;
  std::vector<uint32_t> launches;
  std::vector<uint32_t> copies; ///< regions of the arena that it needs from the other device first
};

/// Cuts the program into segments. A region that crosses is copied once, however many launches read it; a launch that
/// writes part of what is there already needs the rest too.
std::vector<Segment> scheduleOf(const MccProgram &program, const std::vector<bool> &onGpu);

/// Returns whether the plan keeps together what must be: launches that share a cache, and logits with argmax.
bool keepsStatesTogether(const MccProgram &program, const std::vector<bool> &onGpu);

/// Moves launches so that keepsStatesTogether holds: each goes where the first of its group is.
void joinStates(const MccProgram &program, std::vector<bool> &onGpu);

} // namespace mcc::runtime
