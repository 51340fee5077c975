// Tables made by names, so that tests do not depend on the order of arguments.
#include "test/unit/placement/Programs.h"

#include "kernels/Format.h"
#include "kernels/KernelTable.h"

namespace mcc::placement::test {

uint32_t TableProgram::region(uint32_t space, uint64_t bytes, uint64_t rowBytes) {
  regions.push_back({space, 0, ends[space], bytes, rowBytes});
  ends[space] += (bytes + 63) / 64 * 64;
  return static_cast<uint32_t>(regions.size() - 1);
}

void TableProgram::launch(const std::string &name, const char *kernel, int format, Named buffers, Named ints) {
  const KernelInfo &info = *findKernel(kernel);
  std::vector<MccArgument> &arguments = buffersOf.emplace_back();
  for (const KernelBuffer &buffer : info.buffers) {
    arguments.push_back({MCC_NO_REGION, buffer.written, 0});
    for (const auto &[key, region] : buffers)
      if (buffer.name == key)
        arguments.back().region = static_cast<uint32_t>(region);
  }
  std::vector<int64_t> &numbers = intsOf.emplace_back(info.ints.size(), 0);
  for (const auto &[key, number] : ints)
    numbers.at(info.intIndex(key)) = number;
  MccLaunch made = {};
  made.name = names.emplace_back(name).c_str();
  made.kernel = static_cast<uint32_t>(kernelIndex(info));
  made.format = format;
  made.buffers = arguments.data();
  made.ints = numbers.data();
  launches.push_back(made);
}

const MccProgram &TableProgram::table() {
  program = {static_cast<uint32_t>(regions.size()), static_cast<uint32_t>(launches.size()), regions.data(),
             launches.data(), nullptr};
  return program;
}

TableProgram decoder(int layers, int64_t width) {
  constexpr int bf16 = static_cast<int>(Format::BF16);
  const uint64_t row = static_cast<uint64_t>(width) * 4, square = static_cast<uint64_t>(width * width) * 2;
  TableProgram program;
  const uint32_t table = program.weight(8 * square), frequencies = program.weight(64), x = program.arena(row * 64, row),
                 angles = program.arena(64 * 64, 64), normed = program.arena(row * 64);
  program.launch("embed", "embed", bf16, {{"table", table}, {"y", x}}, {{"rows", 8 * width}, {"cols", width}});
  program.launch("rotary", "rotary", -1, {{"frequencies", frequencies}, {"cos_sin", angles}}, {{"pairs", 8}});
  for (int i = 0; i < layers; ++i) {
    const std::string layer = "layers." + std::to_string(i) + ".";
    const uint32_t qkv = program.arena(3 * row * 64, 3 * row), mixed = program.arena(row * 64, row),
                   wide = program.arena(2 * row * 64, 2 * row), keys = program.cache(row * 64),
                   values = program.cache(row * 64);
    program.launch(layer + "qkv", "linear", bf16,
                   {{"x", x},
                    {"weight", program.weight(3 * square)},
                    {"norm_weight", program.weight(row)},
                    {"normed", normed},
                    {"y", qkv}},
                   {{"rows", 3 * width}, {"cols", width}, {"norm_kind", 0}});
    program.launch(layer + "rope", "rope_cache", -1,
                   {{"q", qkv}, {"k", qkv}, {"v", qkv}, {"cos_sin", angles}, {"k_cache", keys}, {"v_cache", values}},
                   {{"heads", 4}, {"kv_heads", 4}, {"head_dim", width / 4}});
    program.launch(layer + "attention", "attention", -1,
                   {{"q", qkv}, {"k_cache", keys}, {"v_cache", values}, {"y", mixed}},
                   {{"heads", 4}, {"kv_heads", 4}, {"head_dim", width / 4}});
    program.launch(layer + "o", "linear", bf16,
                   {{"x", mixed}, {"weight", program.weight(square)}, {"residual", x}, {"y", x}},
                   {{"rows", width}, {"cols", width}, {"norm_kind", -1}});
    program.launch(layer + "up", "linear", bf16,
                   {{"x", x},
                    {"weight", program.weight(4 * square)},
                    {"norm_weight", program.weight(row)},
                    {"normed", normed},
                    {"y", wide}},
                   {{"rows", 2 * width}, {"cols", width}, {"gated", 1}, {"norm_kind", 0}});
    program.launch(layer + "down", "linear", bf16,
                   {{"x", wide}, {"weight", program.weight(2 * square)}, {"residual", x}, {"y", x}},
                   {{"rows", width}, {"cols", 2 * width}, {"norm_kind", -1}});
  }
  const uint32_t partials = program.arena(4096), logits = program.arena(static_cast<uint64_t>(8 * width) * 4),
                 token = program.arena(64);
  program.launch("head", "logits", bf16, {{"x", x}, {"weight", table}, {"partials", partials}, {"logits", logits}},
                 {{"rows", 8 * width}, {"cols", width}, {"norm_kind", -1}});
  program.launch("head", "argmax", -1, {{"partials", partials}, {"token", token}}, {});
  return program;
}

TableProgram randomProgram(std::mt19937 &random, int count) {
  TableProgram program;
  std::vector<uint32_t> regions;
  for (uint64_t i = 1; i <= 5; ++i)
    regions.push_back(program.arena(4096 * i, i % 2 ? 64 * i : 0));
  const auto any = [&] { return regions[random() % regions.size()]; };
  for (int i = 0; i < count; ++i)
    program.launch("op" + std::to_string(i), "add", -1, {{"a", any()}, {"b", any()}, {"y", any()}}, {{"cols", 256}});
  return program;
}

} // namespace mcc::placement::test
