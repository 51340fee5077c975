// Streams a program's weights from the checkpoint into the blob, packed for the kernels.
#pragma once

#include "compiler/Artifact/BlobWriter.h"
#include "compiler/Import/Checkpoint.h"
#include "dialects/Exec/IR/ExecOps.h"

namespace mcc {

/// Appends every weight and constant of `program` to the writer's current segment at its planned address. Holds a few
/// megabytes at a time, packs on all processors, shows progress on a terminal.
llvm::Error packWeights(exec::ProgramOp program, const Checkpoint &checkpoint, BlobWriter &writer);

/// Returns what the writer says went wrong, as an error of the compiler's.
llvm::Error blobError(const BlobWriter &writer);

} // namespace mcc
