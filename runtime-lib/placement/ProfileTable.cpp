// Rows are ops in their order, so that a slow one is found by its place; totals come last.
#include "runtime-lib/placement/ProfileTable.h"

#include "runtime-lib/placement/TextTable.h"
#include "runtime-lib/src/Text.h"

namespace mcc::placement {

using runtime::concat;

/// Returns a number with `decimals` decimals, "-" for 0: nothing was predicted, or nothing measured.
static std::string fixed(double value, int decimals) {
  if (!(value > 0))
    return "-";
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", decimals, value);
  return buffer;
}

static std::string ratio(double measured, double predicted) {
  return predicted > 0 && measured > 0 ? fixed(measured / predicted, 2) : "-";
}

/// Returns a row; times in ns.
static std::vector<std::string> row(std::string name, const char *device, PhaseNs predicted, PhaseNs measured) {
  return {std::move(name),
          device,
          fixed(predicted.prefill / 1e3, 1),
          fixed(measured.prefill / 1e3, 1),
          ratio(measured.prefill, predicted.prefill),
          fixed(predicted.decode / 1e3, 1),
          fixed(measured.decode / 1e3, 1),
          ratio(measured.decode, predicted.decode)};
}

Result<std::string> profileTable(const Problem &problem, const Measured &measured) {
  const size_t count = problem.ops.size();
  if (measured.ops.size() != count || measured.devices.size() != count)
    return Failure{concat("measured ", measured.ops.size(), " ops on ", measured.devices.size(),
                          " devices; the problem has ", count)};
  TextTable table(2);
  table.add({"op", "on", "prefill us", "measured", "ratio", "decode us", "measured", "ratio"});
  PhaseNs predictedSum, measuredSum;
  for (size_t i = 0; i < count; ++i) {
    const PhaseNs predicted = problem.ops[i].cost[index(measured.devices[i])];
    const double steps = measured.decodeSteps > 0 ? measured.decodeSteps : 1;
    const PhaseNs ns{measured.ops[i].prefillNs, measured.ops[i].decodeNs / steps};
    table.add(row(problem.ops[i].name, deviceName(measured.devices[i]), predicted, ns));
    predictedSum.prefill += predicted.prefill, predictedSum.decode += predicted.decode;
    measuredSum.prefill += ns.prefill, measuredSum.decode += ns.decode;
  }
  table.add(row("total", "", predictedSum, measuredSum));
  return table.text();
}

} // namespace mcc::placement
