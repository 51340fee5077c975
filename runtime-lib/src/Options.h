// The command line of a compiled model.
#pragma once

#include "runtime-lib/src/Gpu.h"
#include "runtime-lib/src/Result.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mcc::runtime {

/// What to do where a plan needs a GPU that cannot be used.
enum class GpuMissing : uint8_t { Fail, Warn, Cpu };

/// What the user asked for. Exactly one of text, tokens, prompts, check, bench, info, verify, version and help is set.
struct Options {
  std::optional<std::string> text; ///< the prompt; "-" is standard input
  std::optional<std::vector<int64_t>> tokens;
  std::optional<std::string> prompts;
  std::optional<std::string> check;
  bool bench = false, info = false, verify = false, version = false, help = false;

  int64_t newTokens = 256;
  int64_t threads = 0; ///< 0: the physical cores this process may use
  int64_t chunk = 0;   ///< 0: the model's own
  std::optional<std::string> logits;
  std::optional<std::string> weights;
  double tolerance = 2e-3;
  double marginTolerance = 1e-3;
  int64_t promptTokens = 512; ///< of --bench
  std::string placement = "built"; ///< or cpu, gpu, auto, random:SEED, a file of rules
  std::string machine;             ///< a calibration for placement by cost; empty: none
  std::optional<uint64_t> gpuMemory; ///< most bytes to take of the GPU's memory
  GpuMissing onGpuMissing = GpuMissing::Warn;
  Numerics numerics = Numerics::Accurate;
  bool json = false, ignoreEos = false, noSpecial = false, stats = false;
  bool profile = false; ///< print predicted and measured times of every launch
};

/// Parses the arguments after the program's name. The message is one line without "error:".
Result<Options> parseOptions(std::span<const char *const> arguments);

/// Returns the text of --help.
std::string helpText(const std::string &program);

} // namespace mcc::runtime
