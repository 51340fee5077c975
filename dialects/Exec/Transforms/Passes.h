// Passes over the `exec` dialect; see Passes.td for what each does.
#pragma once

#include "dialects/Exec/IR/ExecOps.h"

#include "mlir/Pass/Pass.h"

namespace mcc::exec {

#define GEN_PASS_DECL
#include "dialects/Exec/Transforms/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "dialects/Exec/Transforms/Passes.h.inc"

} // namespace mcc::exec
