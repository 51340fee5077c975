// A machine's calibration: how long its devices take for the kinds of work that the kernels do, and for copies.
//
// In a file it is one JSON object, `mcc calibrate -o machine.json`. The file holds the raw samples; medians, fits and
// residuals in it are for the reader and made anew when it is read.
#pragma once

#include "kernels/Format.h"
#include "runtime-lib/placement/Curve.h"
#include "runtime-lib/placement/Graph.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mcc::placement {

/// What the numbers were measured on.
struct Fingerprint {
  std::string cpu;
  int64_t threads = 0;
  std::string blas, gpu, driver, link; ///< empty: none
  uint64_t gpuBytes = 0;               ///< memory of the GPU; 0: none, or not known
};

/// Says in words where two machines differ in more than memory ("cpu 'a' became 'b', threads 2 became 4"); empty where
/// they do not.
std::string difference(const Fingerprint &calibrated, const Fingerprint &found);

/// Products with weights of one storage format.
struct MatrixTimes {
  Format format = Format::F32;
  Curve gemv;     ///< one row, over bytes of the weight
  GemmTable gemm; ///< several rows
  /// Returns the time of y[m, n] = x[m, k] W[n, k]^T where W takes `weightBytes`.
  double at(double m, double n, double k, double weightBytes) const;
};

/// One device, without copies. Kernel times are those of a whole launch, with its share of waiting but without
/// `launch`, which every launch adds.
struct DeviceProfile {
  RawNs launch; ///< per launch: a barrier of the threads, a node of a graph
  RawNs sync;   ///< per step: the host waiting for the device; empty: none
  std::vector<MatrixTimes> matrices;
  Curve rows;          ///< element-wise kernels, over bytes read and written
  Curve attentionKeys; ///< one query token, over bytes of cache read
  Curve attentionMacs; ///< many query tokens, over multiply-adds
  /// Returns the times for a format, or for the one nearest in bits per weight; null where there is none.
  const MatrixTimes *matrix(Format format) const;
};

/// Copies between host and device, over bytes.
struct Link {
  struct Direction {
    Curve pinned, pageable;
  };
  Direction toGpu, toCpu;
};

/// A calibrated machine.
struct Profile {
  Fingerprint machine;
  DeviceProfile cpu;
  std::optional<DeviceProfile> gpu;
  std::optional<Link> link; ///< present exactly where `gpu` is
};

/// Reads a profile from the text of a file called `path`. Messages begin with path:line:column.
Result<Profile> readProfile(std::string path, std::string text);

/// Returns the profile as indented JSON, keys in a fixed order, with a final newline.
std::string writeProfile(const Profile &profile);

} // namespace mcc::placement
