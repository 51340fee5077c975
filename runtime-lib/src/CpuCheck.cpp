// The start-up check that turns an illegal instruction into a message. It runs before the first step, in code
// compiled for the baseline processor.
#include "runtime-lib/src/CpuCheck.h"

#include "runtime-lib/src/ModelInfo.h"
#include "runtime-lib/src/Text.h"

#include <optional>
#include <string_view>

namespace mcc::runtime {

/// Returns whether the processor has `feature`; nullopt for a name not in the table.
static std::optional<bool> processorHas(std::string_view feature) {
#if defined(__x86_64__)
  __builtin_cpu_init();
#define MCC_CPU_FEATURE(name)                                                                                          \
  if (feature == name)                                                                                                 \
    return __builtin_cpu_supports(name) != 0;
#include "mcc/CpuFeatures.def"
#endif
  return std::nullopt;
}

Status checkCpu(const MccModel &model) {
  const std::string_view features = model.cpuFeatures;
  std::string missing, unknown;
  for (size_t begin = 0; begin < features.size();) {
    const size_t end = std::min(features.find(' ', begin), features.size());
    const std::string_view feature = features.substr(begin, end - begin);
    begin = end + 1;
    if (feature.empty())
      continue;
    const std::optional<bool> present = processorHas(feature);
    if (present == true)
      continue;
    std::string &list = present ? missing : unknown;
    list += concat(list.empty() ? "" : " ", feature);
  }
  if (missing.empty() && unknown.empty())
    return {};
  const std::string target = infoText(model, "targetCpu").value_or("another processor");
  std::string fact = concat("error: this program was compiled for the CPU '", target, "'; this one ");
  fact += missing.empty() ? concat("cannot be tested for: ", unknown) : concat("lacks: ", missing);
  return Failure{fact + "; compile the model again with --target-cpu=native on this machine, or name its CPU there"};
}

} // namespace mcc::runtime
