// This machine's calibration, read or measured when it is first asked for.
#pragma once

#include "mcc/Model.h"
#include "runtime-lib/placement/Profile.h"
#include "runtime-lib/src/Options.h"

#include <optional>

namespace mcc::runtime {

/// What launches cost on this machine: --machine's file, or a measurement of a moment with the model's own kernels.
class MachineCosts {
public:
  /// Both must outlive it.
  MachineCosts(const MccModel &model, const Options &options) : model(model), options(options) {}
  /// Returns whether there is a way to know.
  bool available() const;
  /// Returns the calibration, with a note on standard error where a GPU was wanted and cannot be used; fails where that
  /// is an error (--on-gpu-missing=fail), and where the file is none.
  Result<placement::Profile> get();

private:
  const MccModel &model;
  const Options &options;
  std::optional<placement::Profile> known;
};

} // namespace mcc::runtime
