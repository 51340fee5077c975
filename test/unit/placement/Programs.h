// Programs for tests: tables as the compiler makes them (mcc/Program.h).
#pragma once

#include "mcc/Program.h"

#include <deque>
#include <initializer_list>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace mcc::placement::test {

/// A table that grows launch by launch and owns what it points to.
class TableProgram {
public:
  /// Adds a region and returns its index.
  uint32_t arena(uint64_t bytes, uint64_t rowBytes = 0) { return region(MCC_ARENA, bytes, rowBytes); }
  uint32_t weight(uint64_t bytes) { return region(MCC_WEIGHTS, bytes, 0); }
  uint32_t cache(uint64_t bytes) { return region(MCC_CACHE, bytes, 0); }

  using Named = std::initializer_list<std::pair<const char *, int64_t>>;
  /// Adds a launch; buffers and ints by their names in kernels/KernelTable.def, absent and 0 where not given.
  void launch(const std::string &name, const char *kernel, int format, Named buffers, Named ints);

  /// Returns the table; valid until the next change.
  const MccProgram &table();
  std::vector<MccLaunch> launches;

private:
  uint32_t region(uint32_t space, uint64_t bytes, uint64_t rowBytes);
  std::vector<MccRegion> regions;
  uint64_t ends[3] = {};
  std::deque<std::string> names;
  std::deque<std::vector<MccArgument>> buffersOf;
  std::deque<std::vector<int64_t>> intsOf;
  MccProgram program = {};
};

/// Returns a llama of `layers` layers with the launches that mcc makes of one: 4 heads of `width` / 4, bf16.
TableProgram decoder(int layers, int64_t width);

/// Returns a program of `count` element-wise launches over a few regions, written in place, in parts and anew.
TableProgram randomProgram(std::mt19937 &random, int count);

} // namespace mcc::placement::test
