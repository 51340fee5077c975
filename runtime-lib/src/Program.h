// What the main() of a compiled model does.
#pragma once

#include "mcc/Model.h"
#include "runtime-lib/src/Options.h"

#include <string>

namespace mcc::runtime {

/// Runs the command that `options` ask for and returns the exit status: 0 done, 1 diagnosed on standard error.
/// SIGPIPE must be ignored.
int runProgram(const MccModel &model, const Options &options, const std::string &program);

} // namespace mcc::runtime
