// What a profile says beyond its own samples: formats that were not measured, and rows between one and the table.
#include "runtime-lib/placement/Profile.h"

#include "runtime-lib/src/Text.h"

#include <algorithm>
#include <cmath>

namespace mcc::placement {

using runtime::concat;

std::string difference(const Fingerprint &calibrated, const Fingerprint &found) {
  std::string text;
  const auto compare = [&](const char *name, const std::string &before, const std::string &now) {
    if (before != now)
      text += concat(text.empty() ? "" : ", ", name, " '", before, "' became '", now, '\'');
  };
  compare("cpu", calibrated.cpu, found.cpu);
  if (calibrated.threads != found.threads)
    text += concat(text.empty() ? "" : ", ", "threads ", calibrated.threads, " became ", found.threads);
  compare("blas", calibrated.blas, found.blas);
  compare("gpu", calibrated.gpu, found.gpu);
  compare("driver", calibrated.driver, found.driver);
  compare("link", calibrated.link, found.link);
  return text;
}

double MatrixTimes::at(double m, double n, double k, double weightBytes) const {
  const double one = gemv.at(weightBytes);
  if (m <= 1 || gemm.empty())
    return one * std::max(m, 1.0);
  const double least = gemm.axes()[0].front();
  // More rows never take less time than one.
  const double several = std::max(one, gemm.at(std::max(m, least), n, k));
  if (m >= least)
    return several;
  return one * std::exp(std::log(several / one) * std::log(m) / std::log(least));
}

/// Returns the bits that a format takes for one weight.
static double bitsPerWeight(Format format) {
  const FormatInfo &info = formatInfo(format);
  return 8.0 * static_cast<double>(info.blockBytes) / static_cast<double>(info.blockElems);
}

const MatrixTimes *DeviceProfile::matrix(Format format) const {
  const MatrixTimes *best = nullptr;
  double least = 0;
  for (const MatrixTimes &times : matrices) {
    if (times.format == format)
      return &times;
    const double distance = std::abs(std::log(bitsPerWeight(times.format) / bitsPerWeight(format)));
    if (!best || distance < least)
      best = &times, least = distance;
  }
  return best;
}

} // namespace mcc::placement
