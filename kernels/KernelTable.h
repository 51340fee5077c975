// The kernel table as data: what an exec.launch may name, checked by the exec dialect's verifier.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mcc {

/// One pointer argument of a kernel.
struct KernelBuffer {
  std::string name;
  bool optional = false; ///< may be null
  bool written = false;
};

/// One kernel of KernelTable.def.
struct KernelInfo {
  std::string name;
  bool perFormat = false; ///< one entry per storage format of its weight
  std::vector<KernelBuffer> buffers;
  std::vector<std::string> ints, floats;
  /// Returns the argument's index in `ints`, which must hold it.
  size_t intIndex(std::string_view argument) const;
};

/// Returns the kernel called `name`, or null; the pointer is to static storage.
const KernelInfo *findKernel(std::string_view name);

/// Returns all kernels in the table's order; references stay valid.
const std::vector<KernelInfo> &kernels();

/// Returns whether a kernel has a launcher in kernels/cuda (CudaKernels.def).
bool hasCudaLauncher(std::string_view kernel);

/// Returns the index of a kernel of kernels().
inline size_t kernelIndex(const KernelInfo &kernel) { return static_cast<size_t>(&kernel - kernels().data()); }

} // namespace mcc
