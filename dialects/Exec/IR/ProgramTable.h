// A planned program as plain data: its regions, and its launches in order. What the generated object carries for an
// executable that places and runs launches one by one (mcc/Program.h).
#pragma once

#include "dialects/Exec/IR/ExecOps.h"

#include "llvm/ADT/MapVector.h"

#include <string>
#include <vector>

namespace mcc::exec {

/// Numbers launches by their code: two have one number where they differ in addresses and device only. Numbers follow the
/// order of first appearance, which rolling layers does not change.
class LaunchCodes {
public:
  explicit LaunchCodes(ProgramOp program);
  /// Returns the number of `launch`, which must be of the program.
  unsigned of(LaunchOp launch) const { return numbers.lookup(key(launch)); }
  /// Returns the name of the function that runs the launches of a number through an array of pointers.
  static std::string functionName(unsigned number, bool decode);

private:
  static mlir::Attribute key(LaunchOp launch);
  llvm::MapVector<mlir::Attribute, unsigned> numbers;
};

/// A buffer, weight, constant or cache.
struct TableRegion {
  Space space;
  int64_t offset, bytes;
  int64_t rowBytes; ///< of one token, 0 where it has no row per token
};

/// One pointer argument.
struct TableArgument {
  int region; ///< index into regions, -1: absent
  bool written;
  int64_t offset; ///< bytes into the region
};

struct TableLaunch {
  std::string name;             ///< the names in its location, joined by " + "
  uint32_t kernel;              ///< index into kernels/KernelTable.def
  std::optional<Format> format; ///< of its weight
  ir::Device device;
  unsigned code; ///< LaunchCodes
  bool barrier;  ///< one stands before it
  std::vector<TableArgument> buffers;
  std::vector<int64_t> ints;
  std::vector<float> floats;
};

struct ProgramTable {
  std::vector<TableRegion> regions;
  std::vector<TableLaunch> launches;
};

/// Returns the table of a planned program whose layers are not rolled yet.
ProgramTable programTable(ProgramOp program);

/// Returns the names in `location`: "layers.0.attention.q + layers.0.attention.k".
std::string placeName(mlir::Location location);

} // namespace mcc::exec
