// Where a pointer of a planned program points.
#pragma once

#include "dialects/Exec/IR/ExecOps.h"

namespace mcc::exec {

/// A memory, an offset in it, and the bytes of what is there.
struct Address {
  Space space = Space::None;
  int64_t offset = 0; ///< from the memory's base; 0 before planning
  int64_t bytes = 0;  ///< to the end of the buffer, weight or cache
};

/// Returns where `pointer` points; it must not be a block argument.
Address addressOf(mlir::Value pointer);

} // namespace mcc::exec
