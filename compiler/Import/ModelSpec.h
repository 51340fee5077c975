// What a decoder-only transformer is, independent of who published it: the one form that every config,
// GGUF header and mcc spec file is normalised to, and the only thing compiler/Build reads.
//
// A model is an embedding, a list of layers, a final norm and a head. Layers of one shape share a `BlockSpec`;
// `layers` names the block of each layer. Weights are reached by *role* through `tensors`, so that a family is
// data: a table from config keys to these fields and from roles to tensor names.
// Shapes follow PyTorch: a linear weight is [out, in].
#pragma once

#include "kernels/Activation.h"
#include "kernels/Format.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mcc {

/// A normalisation over the last axis.
struct NormSpec {
  enum class Kind { Rms, Layer };
  Kind kind = Kind::Rms;
  double eps = 1e-6;
  double weightOffset = 0; ///< added to every weight element before use (1 for Gemma's Hugging Face form)
  bool hasWeight = true;
  bool hasBias = false;
  bool operator==(const NormSpec &) const = default;
};

/// Rotary position embedding (Su et al. 2021) and how its frequencies are scaled.
struct RopeSpec {
  enum class Pairing { Half, Adjacent };            ///< (i, i+d/2) as in Hugging Face Llama; (2i, 2i+1) as in GGUF llama and GPT-J
  enum class Scaling { None, Linear, Llama3, Yarn }; ///< as transformers' `rope_type`
  double theta = 10000;
  int64_t dims = 0; ///< rotated dimensions of a head, even, at most head_dim
  Pairing pairing = Pairing::Half;
  Scaling scaling = Scaling::None;
  double factor = 1;
  double lowFreqFactor = 1, highFreqFactor = 4;   ///< llama3
  double betaFast = 32, betaSlow = 1;             ///< yarn
  double mscale = 0, mscaleAllDim = 0;            ///< yarn; 0: not given
  bool truncate = true;                           ///< yarn: correction range rounded to whole dimensions
  std::optional<double> attentionFactor;          ///< yarn; unset: derived
  int64_t originalContext = 0;                    ///< llama3, yarn
  std::vector<double> frequencyDivisors;          ///< [dims/2] from GGUF's rope_freqs.weight; empty: none
  bool operator==(const RopeSpec &) const = default;
};

/// Grouped-query attention.
struct AttentionSpec {
  int64_t heads = 0, kvHeads = 0, headDim = 0;
  bool qkvBias = false, outBias = false;
  std::optional<NormSpec> qkNorm; ///< RMS norm of every q and k head over head_dim (Qwen3)
  double scale = 0;               ///< multiplies q k^T; importers always set it (1/sqrt(head_dim) by default)
  double softcap = 0;             ///< 0: none
  int64_t window = 0;             ///< a token sees itself and window-1 before it; 0: all
  std::optional<RopeSpec> rope;   ///< unset: no rotation
  bool operator==(const AttentionSpec &) const = default;
};

/// The feed-forward half of a block.
struct MlpSpec {
  int64_t width = 0;
  Activation activation = Activation::Silu;
  bool gated = true; ///< down(act(gate(x)) * up(x)); else down(act(up(x)))
  bool bias = false;
  bool operator==(const MlpSpec &) const = default;
};

/// One layer: x += attention(norm(x)); x += mlp(norm(x)).
struct BlockSpec {
  std::string name; ///< unique in the model, e.g. "block", "sliding"
  NormSpec attentionNorm, mlpNorm;
  AttentionSpec attention;
  MlpSpec mlp;
  bool operator==(const BlockSpec &) const = default;
};

/// A decoder.
struct ModelSpec {
  std::string family;    ///< "llama", "qwen3", ...: for messages and --info
  int64_t vocabulary = 0, hidden = 0;
  int64_t context = 0;   ///< positions the model was made for
  double embeddingScale = 1;
  std::vector<BlockSpec> blocks;
  std::vector<int32_t> layers; ///< index into `blocks`, one per layer
  NormSpec finalNorm;
  bool tiedHead = false; ///< the head uses the embedding's weight
  bool headBias = false;
  double logitScale = 1, logitSoftcap = 0;
  Format dtype = Format::F32; ///< what the checkpoint says it stores; used for random:SEED and for sizes
  int32_t bosToken = -1;      ///< -1: none
  std::vector<int32_t> eosTokens;
  /// Role -> tensor name; `{layer}` stands for the layer's number. Roles: embedding, final_norm, head,
  /// and per layer attention_norm, q, k, v, o, q_norm, k_norm, mlp_norm, gate, up, down; `ROLE.bias` for biases.
  std::map<std::string, std::string> tensors;
  bool operator==(const ModelSpec &) const = default;

  const BlockSpec &block(int64_t layer) const { return blocks[layers[layer]]; }
  /// Returns the checkpoint's name of `role` in `layer` (-1 for model-level roles).
  std::string tensorName(const std::string &role, int64_t layer = -1) const;
};

/// One weight a model needs. Shape is PyTorch's, [rows, cols] or [elems].
struct RequiredTensor {
  std::string name, role;
  int64_t layer = -1;
  std::vector<int64_t> shape;
};

/// Returns every tensor that `spec` reads, in program order, each name once.
std::vector<RequiredTensor> requiredTensors(const ModelSpec &spec);

} // namespace mcc
