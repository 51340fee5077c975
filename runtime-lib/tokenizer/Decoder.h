// From tokens to text, token by token.
#pragma once

#include "runtime-lib/tokenizer/Image.h"
#include "runtime-lib/tokenizer/Regex.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mcc::tokenizer {

/// One step of a decoding in progress. Tokens arrive in fragments (whole UTF-8 characters, save into the last step);
/// a step passes on what is certain.
class DecoderStage {
public:
  virtual ~DecoderStage() = default;
  /// Takes a fragment of a token; `ends`: it is the token's last. `flags`: the token's, into the first step.
  virtual void push(std::string_view fragment, bool ends, uint8_t flags) = 0;
  /// Takes the end of the tokens.
  virtual void finish() = 0;
};

/// The steps of a decoder. Immutable, thread-safe.
class Decoder {
public:
  /// Reads the steps. Returns false, with the reason in `error`, where they are damaged.
  bool read(SettingsReader &settings, std::string &error);

  /// A decoding in progress.
  class Run {
  public:
    /// `decoder` must outlive the run.
    explicit Run(const Decoder &decoder);
    ~Run();
    /// Takes a token; returns the text that is certain now.
    std::string push(std::string_view text, uint8_t flags);
    /// Takes the end; returns the rest.
    std::string finish();

  private:
    std::string take();
    std::string out;
    std::vector<std::unique_ptr<DecoderStage>> stages;
  };

private:
  friend class Run;
  struct Step {
    DecoderKind kind;
    std::string pattern, content;
    bool flag = false;
    uint32_t start = 0, stop = 0;
    std::shared_ptr<const Regex> regex;
  };
  std::vector<Step> steps;
};

} // namespace mcc::tokenizer
