// From the LLVM dialect to a native object: translation, kernel bitcode linked in and specialised, optimisation, emission.
#pragma once

#include "dialects/Exec/IR/ProgramTable.h"
#include "mcc/Model.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace mcc {

/// What the code is made for.
struct CpuTarget {
  std::string cpu;                        ///< an LLVM CPU name, never "native"
  std::vector<std::string> features;      ///< "+avx2", "-amx-tile", ...
  std::vector<std::string> requiredNames; ///< features the code may use, as __builtin_cpu_supports names them
};

/// Resolves `name` ("native", or any -mcpu name LLVM knows). An unknown name is an error that lists near ones.
llvm::Expected<CpuTarget> resolveCpuTarget(llvm::StringRef name);

/// The values of the object's `mcc_model` (MccModel but for pointers, which become constants of the object).
struct ModelDescriptor {
  std::string info;
  std::array<uint8_t, 16> blobId{};
  uint64_t blobBytes = 0, arenaBytes = 0, scratchBytes = 0, cacheBytes = 0;
  int64_t context = 0, chunk = 0, vocabulary = 0;
  uint64_t logitsOffset = 0, tokenOffset = 0;
  int32_t bosToken = -1;
  std::vector<int32_t> eosTokens;
  /// The step as a table, for an executable that may use a GPU; the module must have been lowered with launch entries.
  std::optional<exec::ProgramTable> program;
};

/// Emits a relocatable object that defines `mcc_model` and needs only mccrt_* and libm. `module` is in phase llvm;
/// `kernels` is the path of mcc-kernels.bc. The same input gives the same bytes.
llvm::Expected<llvm::SmallVector<char>> emitObject(mlir::ModuleOp module, const ModelDescriptor &descriptor, const CpuTarget &target,
                                                   llvm::StringRef kernels);

} // namespace mcc
