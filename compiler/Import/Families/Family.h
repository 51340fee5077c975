// A family of models as data: which config keys give which fields, what transformers takes where they are absent, and
// what the tensors are called. A family that differs from another in a few points starts as a copy of it.
#pragma once

#include "compiler/Import/Families/ConfigReader.h"
#include "compiler/Import/ModelSpec.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace mcc {

/// A config key (or alternatives, "a|b"; empty: no key, always `absent`) and its value where it is absent.
template <typename T>
struct Key {
  llvm::StringRef keys;
  T absent = {};
};

/// What turns the template block of a model into the block of one layer; may set its `name`.
using LayerRule = std::function<void(int64_t layer, BlockSpec &block)>;

struct Family {
  llvm::StringRef modelType;
  std::vector<llvm::StringRef> aliases; ///< other spellings of `model_type`

  Key<int64_t> vocabulary{"vocab_size", 32000}, hidden{"hidden_size", 4096}, layers{"num_hidden_layers", 32},
      heads{"num_attention_heads", 32}, context{"max_position_embeddings", 2048};
  Key<int64_t> kvHeads{"num_key_value_heads", 0}; ///< 0 and null: as many as heads
  Key<int64_t> headDim{"head_dim", 0};            ///< 0 and null: hidden / heads
  Key<int64_t> width{"intermediate_size", 11008}; ///< 0 and null: four times hidden

  NormSpec norm; ///< of every block's inputs and of the final state; its eps comes from `normEps`
  Key<double> normEps{"rms_norm_eps", 1e-6};

  Key<llvm::StringRef> activation{"hidden_act", "silu"};
  bool gated = true;
  Key<bool> qkvBias, outBias, mlpBias;

  bool hasRope = true;
  double ropeTheta = 10000;
  double rotaryFactor = 1; ///< rotated part of head_dim, where its key is absent
  llvm::StringRef thetaKeys = "rope_theta", rotaryKeys = "partial_rotary_factor";
  RopeSpec::Pairing ropePairing = RopeSpec::Pairing::Half;
  bool ropeHasAlpha = false;   ///< "dynamic" with `alpha` is a fixed base, theta alpha^(d/(d-2)) (HunYuan)
  int64_t originalContext = 0; ///< where `original_max_position_embeddings` is absent; 0: the context

  Key<bool> tiedHead{"tie_word_embeddings", false};
  int64_t bosToken = -1; ///< where `bos_token_id` is absent
  std::vector<int64_t> eosTokens;

  /// Keys of other families that published configs carry and this family's code does not read.
  std::vector<llvm::StringRef> ignored;

  /// Sets what the fields above do not say: reads further keys, changes the spec and the template block, and returns
  /// the rule of the layers, or null where they are all alike.
  std::function<LayerRule(ConfigReader &config, ModelSpec &spec, BlockSpec &block)> adjust;

  std::vector<std::pair<std::string, std::string>> tensors; ///< role -> name; a later entry replaces an earlier one

  /// Sets the names of some roles.
  void name(std::initializer_list<std::pair<std::string, std::string>> names) { tensors.insert(tensors.end(), names); }
  /// Sets the names of roles of a layer: "model.layers.{layer}." goes before each.
  void nameInLayers(std::initializer_list<std::pair<std::string, std::string>> names,
                    const std::string &prefix = "model.layers.{layer}.");
  /// Removes roles that a family this one was copied from names.
  void unname(std::initializer_list<std::string> roles);
};

/// Returns every family; built on the first call.
const std::vector<Family> &allFamilies();

/// Returns the family of a `model_type`, or null.
const Family *findFamily(llvm::StringRef modelType);

/// Builds the spec of a config by a family's table. Errors are left in `config`.
ModelSpec buildFromConfig(ConfigReader &config, const Family &family);

/// Reads the rotary embedding of heads of `headDim` dimensions from the keys of `config`: `rope_parameters`,
/// `rope_scaling`, `rope_theta`, `partial_rotary_factor`, as transformers resolves them.
RopeSpec readRope(ConfigReader &config, const Family &family, int64_t headDim);
/// As above for models with parameters per layer type: those of `type`, or, where there are none, frequencies of base
/// `theta` with the scaling of `rope_scaling` (`takesScaling`) or none.
RopeSpec readLayerRope(ConfigReader &config, const Family &family, int64_t headDim, llvm::StringRef type, double theta,
                       bool takesScaling);

/// Reads `quantization_config`; nothing where absent or null. Methods and settings that are not understood are errors.
std::optional<QuantizationSpec> readQuantization(ConfigReader &config);

/// Reads an activation's name.
Activation readActivation(ConfigReader &config, const Key<llvm::StringRef> &key);

/// Reads `layer_types`, or makes it by `fallback` where it is absent; one entry per layer, each one of `known`.
std::vector<std::string> readLayerTypes(ConfigReader &config, const ModelSpec &spec,
                                        llvm::ArrayRef<llvm::StringRef> known,
                                        llvm::function_ref<llvm::StringRef(int64_t layer)> fallback);

/// Gives every layer its block as `rule` makes it of the template, sharing equal ones; all alike where it is null.
void expandLayers(ModelSpec &spec, const BlockSpec &block, const LayerRule &rule);

/// The rule of models whose layers of type "sliding_attention" see `window` positions and the others all.
LayerRule slidingLayers(std::vector<std::string> types, int64_t window);

/// Whether an unread key is known to change nothing, or to name a feature.
enum class KeyMeaning { Unknown, Harmless, Feature };
KeyMeaning keyMeaning(llvm::StringRef key);

/// The rule of models whose experts stand in some layers only: the template has both `mlp` and `moe`, and each layer
/// keeps one of them. `inner`, where not null, runs first.
LayerRule sparseLayers(std::function<bool(int64_t layer)> isSparse, LayerRule inner = nullptr);

/// Each adds its families to the list.
void addLlamaFamilies(std::vector<Family> &families);
void addQwenFamilies(std::vector<Family> &families);
void addGemmaFamilies(std::vector<Family> &families);
void addOlmoFamilies(std::vector<Family> &families);
void addMixtureFamilies(std::vector<Family> &families);
void addDeepseekFamilies(std::vector<Family> &families);
void addGptFamilies(std::vector<Family> &families);
void addAlibiFamilies(std::vector<Family> &families);
void addPhiFamilies(std::vector<Family> &families);
void addRecurrentFamilies(std::vector<Family> &families);

/// Granite's multipliers of the embedding, scores, residuals and logits.
LayerRule readGraniteMultipliers(ConfigReader &config, ModelSpec &spec, BlockSpec &block);

/// Llama's table, which many others start from.
Family llamaFamily();

} // namespace mcc
