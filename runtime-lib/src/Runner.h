// The commands that run steps: continuing one prompt, many prompts, and the golden check.
#pragma once

#include "mcc/Model.h"
#include "runtime-lib/src/Files.h"
#include "runtime-lib/src/Generate.h"
#include "runtime-lib/src/Json.h"
#include "runtime-lib/src/LaunchProfile.h"
#include "runtime-lib/src/LogitsFile.h"
#include "runtime-lib/src/Options.h"
#include "runtime-lib/src/Output.h"
#include "runtime-lib/src/Session.h"
#include "runtime-lib/src/WeightsFile.h"
#include "runtime-lib/tokenizer/Tokenizer.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mcc::runtime {

/// Opens the weights that `options` name, or those beside the executable.
Result<WeightsFile> openWeights(const MccModel &model, const Options &options);

/// A model ready to run: weights, tokenizer and session. The commands print their results and errors, and return the
/// exit status.
class Runner {
public:
  /// Checks the processor, then loads. `model` and `options` must outlive the runner.
  static Result<std::unique_ptr<Runner>> create(const MccModel &model, const Options &options);

  /// Continues one prompt: streams text or ids, or prints one object.
  int generateOne();
  /// Continues every line of a --prompts file; a line that cannot be continued does not stop the others.
  int generateLines();
  /// Judges the model by a golden file.
  int check();
  /// Measures the model.
  int bench();

private:
  Runner(const Options &options, WeightsFile weights) : options(options), weights(std::move(weights)) {}
  Status loadTokenizer();
  Result<std::vector<int32_t>> encode(const std::string &text) const;
  Result<std::vector<int32_t>> readPrompt() const;
  Result<Generation> streamTo(Output &out, std::span<const int32_t> prompt, LogitsFile *logits);
  Result<nlohmann::ordered_json> generateLine(const LineReader &reader, const std::string &line);
  nlohmann::ordered_json describe(const Generation &result, std::span<const int32_t> prompt) const;
  void printDevices() const;
  void printProfile(int64_t prompt, int64_t newTokens) const;
  void printNotes(const Generation &result, std::span<const int32_t> prompt) const;

  const Options &options;
  WeightsFile weights;
  std::unique_ptr<Tokenizer> tokenizer; ///< null: a model compiled without one takes and gives ids only
  std::unique_ptr<LaunchProfile> profile; ///< null: not asked for
  std::unique_ptr<Session> session;
};

} // namespace mcc::runtime
