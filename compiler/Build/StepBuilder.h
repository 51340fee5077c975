// The builder of the step: what BuildStep.cpp and RecurrentMixers.cpp share. Private to this folder.
#pragma once

#include "compiler/Import/Checkpoint.h"
#include "compiler/Import/ModelSpec.h"
#include "dialects/Mcc/IR/MccOps.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mcc {

/// Builds one step; see BuildStep.h.
class StepBuilder {
public:
  StepBuilder(mlir::MLIRContext &mlirContext, const ModelSpec &spec, const Checkpoint &checkpoint, int64_t context)
      : spec(spec), checkpoint(checkpoint), context(context), builder(&mlirContext) {}

  mlir::OwningOpRef<mlir::ModuleOp> build();

private:
  mlir::Value buildInput();
  mlir::Value buildLayer(mlir::Value x, int64_t layer);
  // Returns what the block's mixers, normed by `n`, add to the stream.
  mlir::Value buildMixers(mlir::Value n, const BlockSpec &block, int64_t layer);
  mlir::Value buildMamba(mlir::Value n, const MambaSpec &mamba, int64_t layer);
  mlir::Value buildMamba2(mlir::Value n, const Mamba2Spec &mamba, int64_t layer);
  mlir::Value buildShortConv(mlir::Value n, const ShortConvSpec &conv, int64_t layer);
  mlir::Value buildDeltaNet(mlir::Value n, const DeltaNetSpec &delta, int64_t layer);
  mlir::Value buildAttention(mlir::Value n, const BlockSpec &block, int64_t layer);
  mlir::Value buildLatentAttention(mlir::Value n, const AttentionSpec &attention, int64_t layer);
  // Some features of every head: `first` from every `distance` of `x` on.
  struct HeadPart {
    mlir::Value x;
    int64_t distance = 0, count = 0;
  };
  // Returns heads of `headDim` features made of parts and zeros; see mcc.assemble.
  mlir::Value assemble(HeadPart first, HeadPart second, int64_t heads, int64_t headDim);
  mlir::Value attend(mlir::Value q, mlir::Value k, mlir::Value v, const AttentionSpec &attention, int64_t layer);
  mlir::Value buildMlp(mlir::Value n, const BlockSpec &block, int64_t layer);
  mlir::Value buildFeedForward(mlir::Value n, const MlpSpec &mlp, const std::string &prefix, const std::string &place, int64_t layer);
  // Returns what a mixture of experts, and its shared one, make of `n`.
  mlir::Value buildExperts(mlir::Value n, const MoeSpec &moe, int64_t layer);
  mlir::Value route(mlir::Value n, const MoeSpec &moe, int64_t layer);
  // Returns the linear of every chosen expert whose rows are those of `roles` (two: gate and up, interleaved), `rows` each.
  mlir::Value expertLinear(mlir::Value x, mlir::Value picks, llvm::ArrayRef<const char *> roles, const MoeSpec &moe, int64_t layer, int64_t rows);
  mlir::Value buildHead(mlir::Value x);

  mlir::Value norm(mlir::Value x, const NormSpec &norm, const std::string &role, int64_t layer);
  mlir::Value headNorm(mlir::Value x, const AttentionSpec &attention, const std::string &role, int64_t layer, int64_t heads);
  mlir::Value projection(mlir::Value n, const AttentionSpec &attention, const std::string &role, int64_t layer, int64_t heads);
  mlir::Value linear(mlir::Value x, const std::string &role, int64_t layer, int64_t rows, bool bias);
  mlir::Value add(mlir::Value x, mlir::Value y) { return ir::AddOp::create(builder, location, x.getType(), x, y, ir::DeviceAttr()); }
  mlir::Value scale(mlir::Value x, double factor);
  mlir::Value xielu(mlir::Value x, int64_t layer);
  mlir::Value slice(mlir::Value x, int64_t column, int64_t size);
  // Returns activation(gate) * x.
  mlir::Value gate(Activation activation, mlir::Value gate, mlir::Value x);
  // Returns what convolves `x` by itself: rows [first, first + features of x) of the role's weight and bias, with a state called `name`.
  mlir::Value conv(mlir::Value x, const std::string &role, const std::string &name, int64_t layer, int64_t first, int64_t taps, bool bias,
                   Activation activation);
  mlir::Value gatedNorm(mlir::Value y, mlir::Value z, const Mamba2Spec &mamba, int64_t layer);
  // Returns the linear whose rows are those of `roles`, one after the other.
  mlir::Value joinedLinear(mlir::Value x, llvm::ArrayRef<const char *> roles, int64_t layer, int64_t rows);
  // Makes the state `name` of a layer.
  mlir::Value state(int64_t layer, const std::string &name, llvm::ArrayRef<int64_t> shape);
  // Returns a weight in f32; `negatedExp`: -exp of every element.
  mlir::Value floats(const std::string &role, int64_t layer, llvm::ArrayRef<int64_t> shape, bool negatedExp = false) {
    return weight({builder.getStringAttr(spec.tensorName(role, layer))}, ir::WeightType::get(builder.getContext(), shape, Format::F32), 0, negatedExp);
  }
  mlir::Value matrix(const std::string &tensor, int64_t rows, int64_t cols) {
    return weight({builder.getStringAttr(tensor)}, ir::WeightType::get(builder.getContext(), {rows, cols}, checkpoint.find(tensor)->format), 0);
  }
  mlir::Value vector(const std::string &tensor, int64_t size, double offset = 0) {
    return weight({builder.getStringAttr(tensor)}, ir::WeightType::get(builder.getContext(), {size}, Format::F32), offset);
  }
  // Returns a linear's weight or bias, which may be some rows of a stored tensor.
  mlir::Value roleWeight(const std::string &role, int64_t layer, llvm::ArrayRef<int64_t> shape);
  // Returns the attribute that names the rows of `source`, `rows` in all.
  mlir::Attribute sourceOf(const WeightSource &source, int64_t rows);
  mlir::Value weight(llvm::ArrayRef<mlir::Attribute> sources, ir::WeightType type, double offset, bool negatedExp = false, bool interleaved = false);
  mlir::Value rotary(const RopeSpec &rope);
  // Names the place of the ops built next: "layers.3.attention.q".
  void at(int64_t layer, const std::string &part);
  mlir::RankedTensorType type(int64_t features) { return ir::activationsType(builder.getContext(), features); }

  const ModelSpec &spec;
  const Checkpoint &checkpoint;
  const int64_t context;
  mlir::OpBuilder builder;
  mlir::Location location = builder.getUnknownLoc();
  mlir::Value tokens;
  std::vector<std::pair<RopeSpec, mlir::Value>> rotaries; // one per distinct rope, made at the start
  llvm::DenseMap<mlir::Attribute, mlir::Value> weights;   // a tensor used twice is one op
};

} // namespace mcc
