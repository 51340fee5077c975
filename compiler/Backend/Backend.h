// The ways to run a model, behind one interface: the same golden file judges them all.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mcc {

/// A model and where its artefacts go.
struct BackendModel {
  std::vector<std::string> inputs; ///< [spec] checkpoint, as openSource takes them
  int64_t context = 0;             ///< positions of the cache; 0: the model's own, at most a quarter of memory
  std::string output;              ///< folder
};

/// One prompt, and how many tokens are to follow it.
struct BackendSequence {
  std::vector<int32_t> prompt; ///< token ids, at least one
  int64_t newTokens = 0;
};

/// What bringing a model up left behind.
struct Brought {
  std::string artefact; ///< path of what `run` runs
};

/// What was generated for one sequence.
struct Generated {
  std::vector<int32_t> tokens; ///< `newTokens` of them
  std::vector<double> margins; ///< largest less second largest logit behind every token; empty where not asked for
};

/// One way to run a model. A refusal is a diagnosed error that begins with the back end's name and says what is
/// missing: a device of this machine, or an op that it has no code for. Errors in the user's files are as everywhere.
class Backend {
public:
  virtual ~Backend() = default;
  virtual llvm::StringRef name() const = 0;
  /// What it is, in a few words.
  virtual llvm::StringRef summary() const = 0;
  /// Returns why it cannot run on this machine; nothing where it can.
  virtual std::optional<std::string> missing() const = 0;
  /// Writes the model's artefacts under `model.output`.
  virtual llvm::Expected<Brought> bringUp(const BackendModel &model) const = 0;
  /// Brings the model up and runs every sequence greedily from an empty state, past end tokens; returns what each gave,
  /// in order, with margins where `margins` is set.
  virtual llvm::Expected<std::vector<Generated>> run(const BackendModel &model,
                                                     llvm::ArrayRef<BackendSequence> sequences, bool margins) const = 0;
};

/// Returns every back end, in the order they are listed to users. The storage is static.
llvm::ArrayRef<const Backend *> backends();

} // namespace mcc
