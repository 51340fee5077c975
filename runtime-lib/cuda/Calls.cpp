// Names of errors, and the fault that a test asks for. See Calls.h.
#include "runtime-lib/cuda/Calls.h"

#include "runtime-lib/src/Text.h"

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace mcc::runtime {

Status statusOf(const char *name, cudaError_t error) {
  if (error == cudaSuccess)
    return {};
  return Failure{concat(name, ": ", cudaGetErrorName(error), " (", cudaGetErrorString(error), ")")};
}

namespace {

/// What MCC_GPU_FAULT says.
struct Fault {
  std::string call;
  int64_t number = 1;
  int64_t error = cudaErrorUnknown;
  std::atomic<int64_t> seen{0};

  Fault() {
    const char *text = std::getenv("MCC_GPU_FAULT");
    std::string_view rest = text == nullptr ? "" : text;
    call = field(rest);
    readNumber(field(rest), number);
    readNumber(field(rest), error);
  }

private:
  static std::string_view field(std::string_view &rest) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::string_view result = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return result;
  }
  static void readNumber(std::string_view text, int64_t &value) {
    std::from_chars(text.data(), text.data() + text.size(), value);
  }
};

} // namespace

cudaError_t injectedFault(const char *name) {
  static Fault fault;
  if (fault.call.empty() || fault.call != name || ++fault.seen != fault.number)
    return cudaSuccess;
  return static_cast<cudaError_t>(fault.error);
}

} // namespace mcc::runtime
