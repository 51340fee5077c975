// mcc's command line.
#pragma once

namespace mcc {

/// Runs the command that the arguments name; returns the exit code.
int mccMain(int argc, char **argv);

} // namespace mcc
