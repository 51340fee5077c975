// KernelTable.def and the entries agree: pointers, then integers, then floats, as many as the table says.
#include "kernels/KernelTable.h"
#include "kernels/cpu/Kernels.h"

#include <doctest/doctest.h>

#include <type_traits>

using namespace mcc;

namespace {

// One letter per argument: p a pointer, i an int64, f a float, ? anything else.
template <class... Arguments>
std::string shapeOf(void (*)(Arguments...)) {
  const auto letter = []<class Argument>(std::type_identity<Argument>) {
    if constexpr (std::is_pointer_v<Argument>)
      return 'p';
    else if constexpr (std::is_same_v<Argument, int64_t>)
      return 'i';
    else
      return std::is_same_v<Argument, float> ? 'f' : '?';
  };
  return {letter(std::type_identity<Arguments>())...};
}

std::string shapeOf(const char *name) {
  const KernelInfo &kernel = *findKernel(name);
  return "pi" + std::string(kernel.buffers.size(), 'p') + std::string(kernel.ints.size(), 'i') + std::string(kernel.floats.size(), 'f');
}

} // namespace

TEST_CASE("every entry takes the arguments that the table lists") {
#define MCC_ENTRY_0(name) mcc_cpu_##name
#define MCC_ENTRY_1(name) mcc_cpu_##name##_q6_k
#define MCC_KERNEL(name, perFormat, buffers, ints, floats) CHECK(shapeOf(MCC_ENTRY_##perFormat(name)) == shapeOf(#name));
#include "kernels/KernelTable.def"
}
