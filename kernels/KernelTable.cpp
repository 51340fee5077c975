// Parses KernelTable.def's argument lists once. See KernelTable.h.
#include "kernels/KernelTable.h"

#include <algorithm>

namespace mcc {

/// Returns the words of a list that is separated by single spaces. The runtime has this too: no iostream.
static std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0)
      result.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

static KernelInfo makeKernel(const char *name, bool perFormat, const char *buffers, const char *ints,
                             const char *floats) {
  KernelInfo kernel{name, perFormat, {}, words(ints), words(floats)};
  for (std::string word : words(buffers)) {
    KernelBuffer buffer;
    if ((buffer.written = word.front() == '='))
      word.erase(0, 1);
    if ((buffer.optional = word.back() == '?'))
      word.pop_back();
    buffer.name = word;
    kernel.buffers.push_back(buffer);
  }
  return kernel;
}

size_t KernelInfo::intIndex(std::string_view argument) const {
  return static_cast<size_t>(std::find(ints.begin(), ints.end(), argument) - ints.begin());
}

const std::vector<KernelInfo> &kernels() {
  static const std::vector<KernelInfo> table = {
#define MCC_KERNEL(name, perFormat, buffers, ints, floats) makeKernel(#name, perFormat, buffers, ints, floats),
#include "kernels/KernelTable.def"
  };
  return table;
}

const KernelInfo *findKernel(std::string_view name) {
  for (const KernelInfo &kernel : kernels())
    if (kernel.name == name)
      return &kernel;
  return nullptr;
}

bool hasCudaLauncher(std::string_view kernel) {
  static constexpr std::string_view launchers[] = {
#define MCC_CUDA_KERNEL(name) #name,
#include "kernels/CudaKernels.def"
  };
  return std::find(std::begin(launchers), std::end(launchers), kernel) != std::end(launchers);
}

} // namespace mcc
