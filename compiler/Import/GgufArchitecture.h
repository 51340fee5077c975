// A GGUF architecture as data: what its files do not say about a model, because its readers know it by name.
#pragma once

#include "compiler/Import/Families/Family.h"
#include "compiler/Import/GgufKeys.h"

namespace mcc {

/// What the name of an architecture means. What a file itself says (sizes, which biases and norms there are, whether q,
/// k and v are one tensor) is read from it alike for all.
struct GgufArchitecture {
  llvm::StringRef name;

  /// Which dimensions rotate together *as the file stores q and k*: writers permute the rows of some.
  RopeSpec::Pairing pairing = RopeSpec::Pairing::Half;
  bool hasAttention = true, hasRope = true;
  bool normsAfterRope = false; ///< the norms of q and k
  NormSpec::Kind norm = NormSpec::Kind::Rms;
  bool inputNorms = true; ///< of each half
  bool postNorms = false; ///< of each half's result
  bool plainNorms = false; ///< norms without weights
  Residual residual = Residual::Serial;

  Activation activation = Activation::Silu;
  bool gated = true;
  bool joinsGateUp = false; ///< `ffn_up` holds the rows of the gate, then those of up
  bool normalizesExperts = false;
  MoeSpec::Scoring scoring = MoeSpec::Scoring::Softmax;

  /// Where the file has a window: every so-many-th layer sees all positions, the others slide; 0: all slide. A file's
  /// own pattern comes first.
  int64_t windowPeriod = 0;
  bool fullLayersRotate = true;  ///< where other layers slide
  bool slidingUnscaled = false;  ///< sliding layers rotate by unscaled frequencies of base `rope.freq_base_swa`...
  double slidingTheta = 0;       ///< ...or this where it is absent; 0: the other layers' base
  int64_t noRopePeriod = 0;      ///< every so-many-th layer does not rotate

  /// Names of a layer's tensors that differ from the usual, without `blk.L.`; "" for one that there is not.
  std::vector<std::pair<llvm::StringRef, llvm::StringRef>> tensors = {};

  /// Sets what the fields above do not say; may return a rule that runs after theirs.
  std::function<LayerRule(GgufKeys &keys, ModelSpec &spec, BlockSpec &block)> adjust = nullptr;
};

/// Returns every architecture that is understood, in no particular order.
const std::vector<GgufArchitecture> &ggufArchitectures();

} // namespace mcc
