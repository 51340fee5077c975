// What a decoder-only language model is, independent of who published it: the one form that every config,
// GGUF header and mcc spec file is normalised to, and the only thing compiler/Build reads.
//
// A model is an embedding, a list of layers, a final norm and a head. Layers of one shape share a `BlockSpec`;
// `layers` names the block of each layer. Weights are reached by *role* through `tensors`, so that a family is
// data: a table from config keys to these fields and from roles to tensor names.
// Every field's default is "the model has no such thing". Shapes follow PyTorch: a linear weight is [out, in].
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
  enum class Kind { Rms, Layer, None }; ///< None: the identity, no tensor
  Kind kind = Kind::Rms;
  double eps = 1e-6;
  double weightOffset = 0; ///< added to every weight element before use (1 for Gemma's Hugging Face form)
  bool hasWeight = true;
  bool hasBias = false;
  bool operator==(const NormSpec &) const = default;
};

/// Rotary position embedding (Su et al. 2021) and how its frequencies are scaled.
struct RopeSpec {
  enum class Pairing { Half, Adjacent }; ///< (i, i+d/2) as in Hugging Face Llama; (2i, 2i+1) as in GGUF llama and GPT-J
  enum class Scaling { None, Linear, Dynamic, Llama3, Yarn, LongRope }; ///< as transformers' `rope_type`
  double theta = 10000;
  int64_t dims = 0; ///< rotated dimensions of a head (the first ones), even, at most head_dim
  Pairing pairing = Pairing::Half;
  Scaling scaling = Scaling::None;
  double factor = 1;
  double lowFreqFactor = 1, highFreqFactor = 4;  ///< llama3
  double betaFast = 32, betaSlow = 1;            ///< yarn
  double mscale = 0, mscaleAllDim = 0;           ///< yarn; 0: not given
  bool truncate = true;                          ///< yarn: correction range rounded to whole dimensions
  std::optional<double> attentionFactor;         ///< yarn, longrope: multiplies cos and sin; unset: derived
  int64_t originalContext = 0;                   ///< dynamic, llama3, yarn, longrope
  std::vector<double> shortFactors, longFactors; ///< longrope, [dims/2]: up to / beyond originalContext positions
  std::vector<double> frequencyDivisors;         ///< [dims/2] from GGUF's rope_freqs.weight; empty: none
  bool operator==(const RopeSpec &) const = default;
};

/// Linear biases on attention scores (Press et al. 2022): slope of the head times the key's position. With p the
/// largest power of two up to the number of heads n, the slopes are 2^(-maxBias i/p) for i = 1..p, then, for the other
/// n - p heads, 2^(-maxBias (2j - 1)/(2p)) for j = 1..n-p.
struct AlibiSpec {
  double maxBias = 8;
  bool scaled = false;  ///< the bias is added before the attention scale, and so multiplied by it (Falcon)
  bool rounded = false; ///< slopes, positions and their products are rounded to bfloat16 (Falcon)
  bool operator==(const AlibiSpec &) const = default;
};

/// Multi-head latent attention (DeepSeek): keys and values rebuilt from one low-rank vector per position.
/// A head's query and key are [nope, rope]; the rope part of the key is shared by all heads.
struct LatentSpec {
  int64_t queryRank = 0; ///< 0: the query is projected directly
  int64_t kvRank = 0;
  int64_t nopeDim = 0, ropeDim = 0, valueDim = 0;
  double normEps = 1e-6; ///< RMS norms of the two low-rank vectors
  bool operator==(const LatentSpec &) const = default;
};

/// How q, k and v lie in the checkpoint.
enum class QkvLayout {
  Separate,     ///< roles q, k, v
  Concatenated, ///< role qkv: all rows of q, then k, then v
  PerKvHead,    ///< role qkv: for every key head its query heads, then its k, then its v
};

/// How the gate and up projections lie in the checkpoint.
enum class GateUpLayout {
  Separate,     ///< roles gate, up
  Concatenated, ///< role gate_up: rows of gate, then of up
  Interleaved,  ///< role gate_up: rows gate 0, up 0, gate 1, ...
};

/// Grouped-query attention. No attention where `heads` is 0.
struct AttentionSpec {
  /// Which elements the norm of q and k runs over, and its weights: one head with weights [head_dim] shared by
  /// all heads; one head with weights [heads, head_dim]; the same as one tensor per head; all heads together.
  enum class NormScope { Head, HeadOwnWeights, HeadOwnTensors, All };
  int64_t heads = 0, kvHeads = 0, headDim = 0;
  bool qkvBias = false, outBias = false;
  QkvLayout qkvLayout = QkvLayout::Separate;
  std::optional<NormSpec> qkNorm; ///< norm of q and k (Qwen3: RMS over every head)
  NormScope qkNormScope = NormScope::Head;
  bool qkNormAfterRope = false; ///< Hunyuan
  double qkvClip = 0;           ///< q, k and v are clamped to [-qkvClip, qkvClip]; 0: not
  double scale = 0;             ///< multiplies q k^T; importers always set it (1/sqrt(head_dim) by default)
  double softcap = 0;           ///< scores become softcap * tanh(score / softcap); 0: none
  int64_t window = 0;           ///< a token sees itself and window-1 before it; 0: all
  int64_t chunk = 0;            ///< a token sees its own chunk of that many positions only; 0: all
  bool sinks = false;           ///< role sinks [heads]: one more logit in every softmax, with no value
  bool outputGate = false; ///< the q projection gives [q, gate] per head; the result is multiplied by sigmoid(gate)
  double inputScale = 1, outputScale = 1; ///< multiply what the branch reads and what it adds
  std::optional<NormSpec> innerNorm;      ///< norm of the heads' result before the o projection (BitNet)
  std::optional<RopeSpec> rope;           ///< unset: no rotation
  std::optional<AlibiSpec> alibi;
  std::optional<LatentSpec> latent;
  bool operator==(const AttentionSpec &) const = default;
};

/// A feed-forward network. None where `width` is 0.
struct MlpSpec {
  int64_t width = 0;
  Activation activation = Activation::Silu;
  bool gated = true; ///< down(act(gate(x)) * up(x)); else down(act(up(x)))
  bool bias = false;
  GateUpLayout gateUpLayout = GateUpLayout::Separate;
  double clamp = 0;                      ///< gate is clamped to at most this, up to [-clamp, clamp]; 0: not
  double upOffset = 0;                   ///< added to up after the clamp (gpt-oss: 1)
  double gateScale = 1, outputScale = 1; ///< multiply the gate before its activation, and the result
  std::optional<NormSpec> innerNorm;     ///< norm before the down projection (BitNet)
  bool operator==(const MlpSpec &) const = default;
};

/// A mixture of experts: the router picks `expertsPerToken` of `experts`, and the results are added by weight.
struct MoeSpec {
  /// Scores of the router's logits: softmax over all experts, or over the selected only, or sigmoid of each.
  enum class Scoring { Softmax, SelectedSoftmax, Sigmoid };
  enum class GroupScore { Max, TopTwoSum }; ///< a group's rank: its best score, or the sum of its two best
  enum class Storage {
    Separate,         ///< one tensor per expert; `{expert}` in the name
    Stacked,          ///< one tensor [experts, out, in]
    StackedTransposed ///< one tensor [experts, in, out]
  };
  int64_t experts = 0, expertsPerToken = 0;
  MlpSpec expert;
  Scoring scoring = Scoring::Softmax;
  bool normalize = false;                 ///< selected weights are divided by their sum
  double scale = 1;                       ///< multiplies the selected weights, after normalisation
  int64_t groups = 1, groupsPerToken = 1; ///< experts outside the best groups cannot be selected
  GroupScore groupScore = GroupScore::Max;
  bool selectionBias = false; ///< role router_selection_bias [experts]: added for the selection, not to the weight
  bool routerBias = false;    ///< role router.bias [experts]
  Storage storage = Storage::Separate;
  MlpSpec shared;          ///< runs for every token beside the selected experts; width 0: none
  bool sharedGate = false; ///< role shared_router [1, hidden]: the shared result is multiplied by its sigmoid
  bool operator==(const MoeSpec &) const = default;
};

/// Selective state space (Gu, Dao 2023), Mamba's first form.
struct MambaSpec {
  int64_t inner = 0, state = 0, timeRank = 0, kernel = 0;
  bool convBias = true, bias = false;
  bool operator==(const MambaSpec &) const = default;
};

/// State-space duality (Dao, Gu 2024), Mamba 2: one decay per head; B and C are shared by the heads of a group.
struct Mamba2Spec {
  int64_t inner = 0, heads = 0, headDim = 0, groups = 1, state = 0, kernel = 0;
  bool convBias = true, inBias = false, outBias = false;
  double timeMin = 0;            ///< the time step is clamped to [timeMin, timeMax]
  std::optional<double> timeMax; ///< unset: no upper bound
  std::optional<NormSpec> norm;  ///< RMS norm of the gated result; unset: the gate alone
  bool normBeforeGate = false;   ///< the norm is taken before the gate is multiplied in
  int64_t normGroups = 1;        ///< the norm runs over inner/normGroups elements at a time
  double inputScale = 1, outputScale = 1;
  std::vector<double> partScales; ///< multiply the parts z, x, B, C, dt of the input projection; empty: none
  bool operator==(const Mamba2Spec &) const = default;
};

/// Gated short convolution (LFM2): out(C * conv(B * x)), with B, C, x from one projection.
struct ShortConvSpec {
  int64_t kernel = 0;
  bool bias = false;
  bool operator==(const ShortConvSpec &) const = default;
};

/// Gated delta rule (Yang et al. 2024), Qwen3-Next's linear attention.
struct DeltaNetSpec {
  int64_t keyHeads = 0, valueHeads = 0, keyDim = 0, valueDim = 0, kernel = 0;
  NormSpec norm; ///< of each value head's result, before the gate
  bool operator==(const DeltaNetSpec &) const = default;
};

/// How a published checkpoint packs its linear weights. `requiredTensors` and sizes speak of the weights unpacked.
struct QuantizationSpec {
  enum class Method {
    Fp8,   ///< E4M3 with a scale per tensor, or per block of blockRows x blockCols
    Mxfp4, ///< blocks of 32 E2M1 with a shared E8M0 scale (gpt-oss's experts)
    Gptq,  ///< qweight, qzeros, scales, g_idx
    Awq,   ///< qweight, qzeros, scales
  };
  Method method = Method::Fp8;
  int64_t bits = 0;                     ///< gptq, awq
  int64_t groupSize = 0;                ///< gptq, awq: inputs that share a scale; -1: all
  int64_t blockRows = 0, blockCols = 0; ///< fp8; 0: one scale per tensor
  bool ordered = false;                 ///< gptq: groups in the order of activations (`desc_act`)
  bool zerosLessOne = false;            ///< gptq: zeros are stored less one (the first version of the format)
  std::vector<std::string> excluded;    ///< modules that are stored plainly, as the config names them
  bool operator==(const QuantizationSpec &) const = default;
};

/// How the two halves of a block meet the residual stream.
enum class Residual {
  Serial,          ///< x += mixer(norm(x)); x += mlp(norm(x))
  Parallel,        ///< x += mixer(norm(x)) + mlp(norm'(x))
  ParallelOneNorm, ///< as Parallel, the MLP reading the mixer's normed input
};

/// One layer: a mixer (attention, or one of the others; where several are set their results are added) and an MLP.
struct BlockSpec {
  std::string name; ///< unique in the model, e.g. "block", "sliding"
  Residual residual = Residual::Serial;
  double residualScale = 1; ///< multiplies what each half adds to the stream
  bool normAfterResidual =
      false; ///< attention_norm and mlp_norm are applied to the sums instead of the inputs (OPT-350m)
  bool residualFromNorm = false;   ///< the stream that each half adds to is its normed input (a Bloom option)
  NormSpec attentionNorm, mlpNorm; ///< of each half's input
  std::optional<NormSpec> attentionPostNorm, mlpPostNorm; ///< of each half's result, before it is added
  AttentionSpec attention;
  std::optional<MambaSpec> mamba;
  std::optional<Mamba2Spec> mamba2;
  std::optional<ShortConvSpec> shortConv;
  std::optional<DeltaNetSpec> deltaNet;
  MlpSpec mlp; ///< width 0 where `moe` is set
  std::optional<MoeSpec> moe;
  bool operator==(const BlockSpec &) const = default;
};

/// A decoder.
struct ModelSpec {
  std::string family; ///< "llama", "qwen3", ...: for messages and --info
  int64_t vocabulary = 0, hidden = 0;
  int64_t context = 0; ///< positions the model was made for
  double embeddingScale = 1;
  int64_t embeddingWidth =
      0; ///< columns of the embedding where not `hidden`: roles embedding_projection, head_projection
  std::optional<NormSpec> embeddingNorm; ///< of the embedding, before the first layer (Bloom)
  int64_t learnedPositions = 0; ///< rows of the table of position embeddings (role position_embedding); 0: none
  int64_t positionOffset = 0;   ///< position p reads row p + positionOffset (OPT: 2)
  std::vector<BlockSpec> blocks;
  std::vector<int32_t> layers; ///< index into `blocks`, one per layer
  NormSpec finalNorm;
  bool tiedHead = false; ///< the head uses the embedding's weight
  bool headBias = false;
  double logitScale = 1, logitSoftcap = 0; ///< the scale comes first
  bool transposedLinears = false;          ///< weights of the blocks' linears are stored [in, out] (GPT-2)
  Format dtype = Format::F32;              ///< what the checkpoint says it stores; used for random:SEED and for sizes
  std::optional<QuantizationSpec> quantization; ///< unset: weights are stored plainly
  int32_t bosToken = -1;                        ///< -1: none
  std::vector<int32_t> eosTokens;
  /// Role -> tensor name; `{layer}` stands for the layer's number, `{expert}` and `{head}` for an index. Roles:
  /// embedding, final_norm, head, and per layer attention_norm, q, k, v, o, q_norm, k_norm, mlp_norm, gate, up,
  /// down, and those named with the fields above; `ROLE.bias` for biases. compiler/Import/README.md lists all.
  std::map<std::string, std::string> tensors;
  bool operator==(const ModelSpec &) const = default;

  const BlockSpec &block(int64_t layer) const { return blocks[layers[layer]]; }
  /// Returns the checkpoint's name of `role` in `layer` (-1 for model-level roles), with `index` in place of
  /// `{expert}` or `{head}`. A `ROLE.bias` that `tensors` does not name is ROLE's name with `.bias` for `.weight`.
  /// Empty where there is no name.
  std::string tensorName(const std::string &role, int64_t layer = -1, int64_t index = -1) const;
};

/// One weight a model needs. Shape is PyTorch's as stored: [rows, cols], [elems], [experts, rows, cols].
struct RequiredTensor {
  std::string name, role;
  int64_t layer = -1;
  std::vector<int64_t> shape;
  int64_t index = -1; ///< the expert or head it belongs to, where there is one tensor each
};

/// Returns every tensor that `spec` reads, in program order (embedding, the layers, final norm, head), each name once.
std::vector<RequiredTensor> requiredTensors(const ModelSpec &spec);

/// The rows of a stored tensor that make up one role: `groups` runs of `rows` rows, the first run at row `first`,
/// the others `stride` rows apart. Rows of a transposed tensor are its columns.
struct WeightSource {
  std::string tensor;
  int64_t first = 0, rows = 0, stride = 0, groups = 1;
  bool transposed = false; ///< the tensor is stored [in, out]
  int64_t slab = -1;       ///< index into the first axis of a stacked tensor; -1: not stacked
  bool whole = true;       ///< the role is the whole tensor (or slab), in order
};

/// Returns where the weight (or bias, `ROLE.bias`) of a linear role lies: q, k, v, o, gate, up, down and the experts'
/// and shared expert's; q_gate, the gates beside the queries of an `outputGate`; and the parts delta_q, delta_k, delta_v,
/// delta_z, delta_b, delta_a of a delta net's projections. `index` is the expert's number.
WeightSource weightSource(const ModelSpec &spec, const std::string &role, int64_t layer, int64_t index = -1);

/// A field of a spec that contradicts another, or is out of range.
struct SpecProblem {
  std::string field; ///< e.g. "blocks[0].attention.kv_heads", as the spec's JSON names it
  std::string what;
};

/// Returns the first contradiction in `spec`, or nothing. What passes can be built and sized without overflow.
std::optional<SpecProblem> findProblem(const ModelSpec &spec);

/// What a model takes, exactly, from its shapes alone.
struct ModelSize {
  int64_t parameters = 0;         ///< elements of all required tensors
  int64_t activeParameters = 0;   ///< those that one token reads: without the experts it does not select
  int64_t cacheElems = 0;         ///< per position, all attention layers
  int64_t windowedCacheElems = 0; ///< the part of cacheElems that only the last `window` positions need
  int64_t stateElems = 0;         ///< of recurrent layers, for the whole sequence
};

/// Counts `spec`, which must have no problem.
ModelSize modelSize(const ModelSpec &spec);

/// Returns the bytes of all weights with every matrix stored as `format` (rows that are no whole number of its
/// blocks as f16) and every vector as f32 where `format` has blocks, else as `format`.
int64_t weightBytes(const ModelSpec &spec, Format format);

} // namespace mcc
