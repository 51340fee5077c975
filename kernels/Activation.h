// The activations a kernel epilogue can apply. One table for the dialects, the importers and the kernels.
#pragma once

#include <cstdint>

namespace mcc {

/// Values are part of the kernels' ABI (KernelTable.def, `activation`).
enum class Activation : int64_t {
  None = 0,
  Silu = 1,     ///< x / (1 + exp(-x))
  GeluErf = 2,  ///< x/2 (1 + erf(x / sqrt 2))
  GeluTanh = 3, ///< x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  Relu = 4,
  Relu2 = 5,    ///< max(x, 0)^2
  GeluQuick = 6, ///< x / (1 + exp(-1.702 x))
  Xielu = 7,    ///< with four weights of the layer, so no epilogue: the kernel `xielu`
  Sigmoid = 8,  ///< 1 / (1 + exp(-x))
};

} // namespace mcc
