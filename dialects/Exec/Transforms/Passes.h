// Passes over the `exec` dialect; see Passes.td for what each does.
#pragma once

#include "dialects/Exec/IR/ExecOps.h"

#include "mlir/Pass/Pass.h"

namespace mcc::exec {

/// Where a pointer points once memory is planned: a memory, an offset in it, and the bytes of what is there.
struct Address {
  Space space = Space::None;
  int64_t offset = 0; ///< from the memory's base
  int64_t bytes = 0;  ///< to the end of the buffer, weight or cache
};

/// Returns where `pointer` points; it must not be a block argument.
Address addressOf(mlir::Value pointer);

#define GEN_PASS_DECL
#include "dialects/Exec/Transforms/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "dialects/Exec/Transforms/Passes.h.inc"

} // namespace mcc::exec
