// The cutting of text into pieces that the model sees one by one.
#pragma once

#include "runtime-lib/tokenizer/Image.h"
#include "runtime-lib/tokenizer/Regex.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mcc::tokenizer {

/// A sequence of cutting steps. Immutable, thread-safe; a Run holds what one thread needs.
class PreTokenizer {
public:
  /// Reads the steps. Returns false, with the reason in `error`, where they are damaged.
  bool read(SettingsReader &settings, std::string &error);
  /// Whether pieces are bytes still to be mapped to the byte alphabet: the last step would do it, and is left to the
  /// model, which maps bytes to ids directly.
  bool leavesBytes() const { return bytesLeft; }
  /// Whether there is nothing to do.
  bool empty() const { return steps.empty(); }

  /// The cutting of one text.
  class Run {
  public:
    using Sink = std::function<void(std::string_view piece)>;
    /// `owner` must outlive the run.
    Run(const PreTokenizer &owner, Sink sink);
    ~Run();
    /// Cuts `text` (UTF-8, not empty) and hands each piece, not empty, to the sink. `atStart`: it is the beginning of
    /// the user's text. Returns false where a pattern reached its limit of work.
    bool cut(std::string_view text, bool atStart);

  private:
    struct Workspace;
    bool apply(size_t index, std::string_view text, bool atStart);
    bool split(size_t index, std::string_view text, bool atStart);
    bool forward(size_t index, std::string_view text, size_t begin, size_t end, bool atStart);
    const PreTokenizer &owner;
    Sink sink;
    std::vector<Workspace> spaces;
  };

private:
  struct Step {
    PreTokenizerKind kind;
    SplitBehavior behavior = SplitBehavior::Isolated;
    bool flag = false; ///< invert, one by one, or split
    PrependScheme scheme = PrependScheme::Never;
    uint32_t length = 0;
    std::string text;
    std::shared_ptr<const Regex> regex;
  };
  bool readStep(SettingsReader &settings, std::string &error);
  /// Calls `visit(begin, end, isMatch)` over `text` as the step's pattern divides it.
  template <typename Visit>
  static bool divide(const Step &step, Matcher *matcher, std::string_view text, Visit visit);

  std::vector<Step> steps;
  bool bytesLeft = false;
};

} // namespace mcc::tokenizer
