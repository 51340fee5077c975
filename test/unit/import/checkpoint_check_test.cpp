// checkTensors(): each difference makes its own error, leftovers make none. And the table of `mcc inspect`.
#include "checkpoint_files.h"

#include "compiler/Import/MappedCheckpoint.h"
#include "compiler/Import/ModelSpec.h"

#include "llvm/Support/raw_ostream.h"

#include "doctest/doctest.h"

using namespace mcc;
using namespace mcc::test;

namespace {

TensorInfo stored(const std::string &name, std::vector<int64_t> shape) {
  TensorInfo info;
  info.name = name;
  info.shape = std::move(shape);
  info.bytes = static_cast<uint64_t>(info.elems()) * 4;
  info.file = "m.safetensors";
  return info;
}

RequiredTensor needed(const std::string &name, std::vector<int64_t> shape) {
  RequiredTensor required;
  required.name = name;
  required.shape = std::move(shape);
  return required;
}

const std::vector<RequiredTensor> kNeeded = {needed("model.embed.weight", {10, 4}), needed("model.norm.weight", {4})};

std::string check(std::vector<TensorInfo> tensors, bool tiedHead = false) {
  MappedCheckpoint checkpoint("dir", std::move(tensors), {});
  return messageOf(checkTensors(checkpoint, kNeeded, tiedHead));
}

} // namespace

TEST_CASE("check: all there") {
  CHECK(check({stored("model.embed.weight", {10, 4}), stored("model.norm.weight", {4})}) == "");
}

TEST_CASE("check: missing tensors, with a hint where a name is near") {
  CHECK(check({stored("model.embed.weight", {10, 4}), stored("unlike", {4})}) ==
        "dir: tensor 'model.norm.weight': error: is missing; the model needs it with shape [4]");
  CHECK(check({stored("model.embed.weight", {10, 4}), stored("model.norn.weight", {4})}) ==
        "dir: tensor 'model.norm.weight': error: is missing; the model needs it with shape [4]; did you mean "
        "'model.norn.weight'?");
  CHECK(check({stored("transformer.model.embed.weight", {10, 4}), stored("transformer.model.norm.weight", {4})}) ==
        "dir: tensor 'model.embed.weight': error: is missing; the model needs it with shape [10, 4] (2 of 2 tensors "
        "are missing); did you mean 'transformer.model.embed.weight'?");
  // A needed tensor is never the hint for another.
  CHECK(!holds(check({stored("model.norm.weight", {4})}), "did you mean"));
}

TEST_CASE("check: shapes and types") {
  CHECK(check({stored("model.embed.weight", {4, 10}), stored("model.norm.weight", {4})}) ==
        "m.safetensors: tensor 'model.embed.weight': error: has shape [4, 10]; the model needs [10, 4]");
  TensorInfo integers = stored("model.norm.weight", {4});
  integers.otherType = "I64";
  CHECK(holds(check({stored("model.embed.weight", {10, 4}), integers}),
              "m.safetensors: tensor 'model.norm.weight': error: has type I64; weights are one of f32, f16, bf16"));
  TensorInfo absent = stored("model.norm.weight", {4});
  absent.absent = true;
  CHECK(check({stored("model.embed.weight", {10, 4}), absent}) ==
        "m.safetensors: tensor 'model.norm.weight': error: has 16 bytes by the header; the file ends where the data "
        "would begin");
}

TEST_CASE("check: surplus tensors") {
  std::vector<TensorInfo> good = {stored("model.embed.weight", {10, 4}), stored("model.norm.weight", {4})};
  auto with = [&](std::vector<TensorInfo> more, bool tiedHead = false) {
    more.insert(more.end(), good.begin(), good.end());
    return check(std::move(more), tiedHead);
  };
  CHECK(with({stored("model.layers.0.self_attn.rotary_emb.inv_freq", {2}), stored("h.0.attn.bias", {1, 1, 8, 8}),
              stored("h.0.attn.masked_bias", {}), stored("gpt_neox.layers.0.attention.bias", {1, 1, 8, 8}),
              stored("rope_freqs.weight", {2})}) == "");
  CHECK(with({stored("lm_head.weight", {10, 4})}, true) == "");
  CHECK(with({stored("lm_head.weight", {10, 4})}, false) ==
        "m.safetensors: tensor 'lm_head.weight': error: has shape [10, 4]; the model reads no such tensor");
  CHECK(with({stored("h.0.attn.bias", {8})}) ==
        "m.safetensors: tensor 'h.0.attn.bias': error: has shape [8]; the model reads no such tensor");
  CHECK(with({stored("x.weight", {1}), stored("y.weight", {1})}) ==
        "m.safetensors: tensor 'x.weight': error: has shape [1]; the model reads no such tensor (nor 1 other)");
  CHECK(with({stored("x", {1}), stored("y", {1}), stored("z", {1})}) ==
        "m.safetensors: tensor 'x': error: has shape [1]; the model reads no such tensor (nor 2 others)");
}

TEST_CASE("table: columns and totals") {
  TensorInfo other = stored("ids\n", {});
  other.otherType = "I64";
  other.bytes = 8;
  MappedCheckpoint checkpoint("dir", {stored("model.embed.weight", {10, 4}), stored("b", {4}), other}, {});
  std::string text;
  llvm::raw_string_ostream os(text);
  printTensorTable(checkpoint, os);
  CHECK(text == "tensor              type  shape    bytes\n"
                "b                   f32   [4]         16\n"
                "'ids\\x0a'           I64   []           8\n"
                "model.embed.weight  f32   [10, 4]    160\n"
                "I64: 1 tensors, 1 elements, 8 bytes\n"
                "f32: 2 tensors, 44 elements, 176 bytes\n"
                "total: 3 tensors, 45 elements, 184 bytes\n");
}
