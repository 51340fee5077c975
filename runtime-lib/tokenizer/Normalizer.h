// The rewriting of text before it is cut into pieces.
#pragma once

#include "runtime-lib/tokenizer/Image.h"
#include "runtime-lib/tokenizer/Regex.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mcc::tokenizer {

/// A sequence of rewriting steps. Immutable, thread-safe.
class Normalizer {
public:
  /// Reads the steps; `image` is copied (a view). Returns false, with the reason in `error`, where they are damaged.
  bool read(SettingsReader &settings, const Image &image, std::string &error);
  /// Returns whether there are no steps.
  bool empty() const { return steps.empty(); }
  /// Rewrites `text` (UTF-8). Returns false where a pattern reached its limit of work.
  bool run(std::string &text) const;
  /// The same; clears `keepsStart` where the first character of the text was removed.
  bool run(std::string &text, bool &keepsStart) const;

private:
  struct Step {
    NormalizerKind kind;
    std::string pattern, content;
    bool options[4] = {};
    std::shared_ptr<const Regex> regex;
  };
  bool apply(const Step &step, std::string &text) const;
  /// Returns whether `step` removes the first character of `text`, seen by itself.
  bool removesFirst(const Step &step, std::string_view text) const;
  void applyBert(const Step &step, std::string &text) const;
  void applyCharsmap(std::string &text) const;
  /// Returns the text that the shortest mapped prefix of `part` becomes; null data where none is mapped.
  std::string_view mapPrefix(std::string_view part) const;

  std::vector<Step> steps;
  std::span<const uint32_t> units;
  std::string_view mapped;
};

/// Replaces every occurrence of `pattern` (not empty) in `text`.
void replaceText(std::string &text, std::string_view pattern, std::string_view content);
/// Replaces every match in `text`; returns false where the limit of work was reached.
bool replaceMatches(std::string &text, const Regex &regex, std::string_view content);

} // namespace mcc::tokenizer
