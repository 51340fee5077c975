// Whether this machine has a GPU that CUDA programs can use.
#pragma once

#include <optional>
#include <string>

namespace mcc {

/// Returns why no CUDA device can be used, "no CUDA device on this machine (cuInit: no driver)"; nothing where one can.
/// Asks the driver's library, opened for the question.
std::optional<std::string> missingCudaDevice();

} // namespace mcc
