// One function a kernel, from the table's arguments (kernels/KernelTable.def gives their order) to the launcher's struct.
#include "runtime-lib/cuda/LaunchTable.h"

#include "kernels/KernelTable.h"
#include "kernels/cuda/Attention.h"
#include "kernels/cuda/Experts.h"
#include "kernels/cuda/Image.h"
#include "kernels/cuda/Linear.h"
#include "kernels/cuda/Rows.h"
#include "kernels/cuda/State.h"

#include <algorithm>
#include <string_view>

namespace mcc::runtime {
namespace {

/// A launch's arguments, read in order.
struct Arguments {
  const MccLaunch &launch;
  uint8_t *const *buffers;
  const LaunchContext &context;

  float *floats(size_t index) const { return reinterpret_cast<float *>(buffers[index]); }
  const uint8_t *bytes(size_t index) const { return buffers[index]; }
  int64_t number(size_t index) const { return launch.ints[index]; }
  float real(size_t index) const { return launch.floats[index]; }
  Format format() const { return static_cast<Format>(launch.format); }
};

cuda::Status startEmbed(const Arguments &a) {
  return cuda::launchEmbed(a.context.step, {a.format(), a.bytes(0), a.floats(1), a.number(0), a.number(1), a.number(2), a.real(0)},
                           a.context.stream);
}

cuda::Status startPositions(const Arguments &a) {
  return cuda::launchPositions(a.context.step, {a.format(), a.floats(0), a.bytes(1), a.floats(2), a.number(0), a.number(1), a.number(2), a.number(3), a.number(4)},
                               a.context.stream);
}

cuda::Status startNorm(const Arguments &a) {
  cuda::NormRows rows;
  rows.norm = {a.number(5), a.floats(1), a.floats(2), a.real(0)};
  rows.x = a.floats(0), rows.y = a.floats(3);
  rows.cols = a.number(0), rows.groups = a.number(1), rows.groupWeights = a.number(2) != 0;
  rows.xStride = a.number(3), rows.yStride = a.number(4);
  return cuda::launchNorm(a.context.step, rows, a.context.stream);
}

cuda::Status startLinear(const Arguments &a) {
  cuda::Linear linear;
  linear.format = a.format();
  linear.rows = a.number(0), linear.cols = a.number(1);
  linear.x = a.floats(0), linear.weight = a.bytes(1), linear.bias = a.floats(2), linear.residual = a.floats(3), linear.y = a.floats(7);
  linear.xStride = a.number(2), linear.yStride = a.number(3), linear.residualStride = a.number(4);
  linear.activation = a.number(5), linear.gated = a.number(6) != 0;
  linear.scale = a.real(1);
  linear.norm = {a.number(7), a.floats(4), a.floats(5), a.real(0)};
  linear.prefillParts = a.context.prefillParts;
  linear.workspace = a.context.workspace.linear;
  return cuda::launchLinear(a.context.step, linear, a.context.stream);
}

cuda::Status startLogits(const Arguments &a) {
  cuda::Logits logits;
  cuda::Linear &linear = logits.linear;
  linear.format = a.format();
  linear.rows = a.number(0), linear.cols = a.number(1), linear.xStride = a.number(2);
  linear.x = a.floats(0), linear.weight = a.bytes(1), linear.bias = a.floats(2), linear.y = a.floats(6);
  linear.norm = {a.number(3), a.floats(3), a.floats(4), a.real(0)};
  linear.workspace = a.context.workspace.linear;
  logits.partials = reinterpret_cast<cuda::Partial *>(a.context.workspace.partials);
  logits.scale = a.real(1), logits.softcap = a.real(2);
  return cuda::launchLogits(a.context.step, logits, a.context.stream);
}

cuda::Status startArgmax(const Arguments &a) {
  const TokenSink &sink = a.context.sink;
  return cuda::launchArgmax(a.context.step, {reinterpret_cast<cuda::Partial *>(a.context.workspace.partials), sink.token, sink.position, sink.ring, sink.ringMask},
                            a.context.stream);
}

cuda::Status startRotary(const Arguments &a) {
  return cuda::launchRotary(a.context.step, {a.floats(0), a.floats(1), a.number(0), a.real(0), a.number(1)}, a.context.stream);
}

cuda::Status startRopeCache(const Arguments &a) {
  cuda::RopeCache rope;
  rope.q = a.floats(0), rope.k = a.floats(1), rope.v = a.floats(2), rope.cosSin = a.floats(3);
  rope.qNorm = a.floats(4), rope.kNorm = a.floats(5), rope.kCache = a.floats(6), rope.vCache = a.floats(7);
  rope.heads = a.number(0), rope.kvHeads = a.number(1), rope.headDim = a.number(2), rope.pairs = a.number(3), rope.pairing = a.number(4);
  rope.qStride = a.number(5), rope.kStride = a.number(6), rope.vStride = a.number(7), rope.context = a.number(8);
  rope.normAfter = a.number(9) != 0;
  rope.eps = a.real(0);
  return cuda::launchRopeCache(a.context.step, rope, a.context.stream);
}

cuda::Status startAttention(const Arguments &a) {
  cuda::Attention attention;
  attention.q = a.floats(0), attention.kCache = a.floats(1), attention.vCache = a.floats(2);
  attention.slopes = a.floats(3), attention.sinks = a.floats(4), attention.y = a.floats(5);
  attention.heads = a.number(0), attention.kvHeads = a.number(1), attention.headDim = a.number(2);
  attention.qStride = a.number(3), attention.yStride = a.number(4), attention.window = a.number(5), attention.chunk = a.number(6);
  attention.alibiRounded = a.number(7) != 0, attention.context = a.number(8);
  attention.scale = a.real(0), attention.softcap = a.real(1);
  attention.prefillParts = a.context.prefillParts;
  attention.workspace = a.context.workspace.attention;
  return cuda::launchAttention(a.context.step, attention, a.context.stream);
}

cuda::Status startActivate(const Arguments &a) {
  return cuda::launchActivate(a.context.step, {a.floats(0), nullptr, a.floats(1), a.number(0), a.number(1), 0, a.number(2), a.number(3), 0.0f}, a.context.stream);
}

cuda::Status startGate(const Arguments &a) {
  return cuda::launchGate(a.context.step, {a.floats(0), a.floats(1), a.floats(2), a.number(0), a.number(1), a.number(2), a.number(3), a.number(4), 0.0f},
                          a.context.stream);
}

cuda::Status startAdd(const Arguments &a) {
  return cuda::launchAdd(a.context.step, {a.floats(0), a.floats(1), a.floats(2), a.number(0), a.number(1), a.number(2), a.number(3), 0, 0.0f}, a.context.stream);
}

cuda::Elementwise withNumber(const Arguments &a) {
  return {a.floats(0), nullptr, a.floats(1), a.number(0), a.number(1), 0, a.number(2), 0, a.real(0)};
}

cuda::Status startClamp(const Arguments &a) { return cuda::launchClamp(a.context.step, withNumber(a), a.context.stream); }
cuda::Status startScale(const Arguments &a) { return cuda::launchScale(a.context.step, withNumber(a), a.context.stream); }

cuda::Status startXielu(const Arguments &a) {
  return cuda::launchXielu(a.context.step, {a.floats(0), a.floats(1), a.floats(2), a.number(0), a.number(1), 0, a.number(2), 0, 0.0f}, a.context.stream);
}

cuda::Status startConv(const Arguments &a) {
  return cuda::launchConv(a.context.step, {a.floats(0), a.floats(1), a.floats(2), a.floats(3), a.floats(4), a.number(0), a.number(1), a.number(2), a.number(3), a.number(4)},
                          a.context.stream);
}

cuda::Status startSelectiveScan(const Arguments &a) {
  return cuda::launchSelectiveScan(a.context.step,
                                   {a.floats(0), a.floats(1), a.floats(2), a.floats(3), a.floats(4), a.floats(5), a.floats(6), a.floats(7), a.number(0), a.number(1),
                                    a.number(2), a.number(3), a.number(4), a.number(5), a.number(6)},
                                   a.context.stream);
}

cuda::Status startStateScan(const Arguments &a) {
  return cuda::launchStateScan(a.context.step,
                               {a.floats(0), a.floats(1), a.floats(2), a.floats(3), a.floats(4), a.floats(5), a.floats(6), a.floats(7), a.floats(8), a.number(0),
                                a.number(1), a.number(2), a.number(3), a.number(4), a.number(5), a.number(6), a.number(7), a.number(8), a.real(0), a.real(1)},
                               a.context.stream);
}

cuda::Status startDeltaScan(const Arguments &a) {
  return cuda::launchDeltaScan(a.context.step,
                               {a.floats(0), a.floats(1), a.floats(2), a.floats(3), a.floats(4), a.floats(5), a.floats(6), a.floats(7), a.floats(8), a.number(0),
                                a.number(1), a.number(2), a.number(3), a.number(4), a.number(5), a.number(6), a.number(7), a.number(8), a.number(9)},
                               a.context.stream);
}

cuda::Status startRoute(const Arguments &a) {
  return cuda::launchRoute(a.context.step,
                           {a.floats(0), a.floats(1), a.floats(2), a.number(0), a.number(1), a.number(2), a.number(3) != 0, a.number(4), a.number(5), a.number(6),
                            a.number(7), a.number(8), a.real(0)},
                           a.context.stream);
}

cuda::Status startExperts(const Arguments &a) {
  return cuda::launchExperts(a.context.step,
                             {a.format(), a.floats(0), a.floats(1), a.bytes(2), a.floats(3), a.floats(4), a.number(0), a.number(1), a.number(2), a.number(3),
                              a.number(4) != 0, a.number(5), a.number(6), a.number(7), a.number(8), a.number(9) != 0, a.real(0), a.real(1)},
                             a.context.stream);
}

cuda::Status startCombine(const Arguments &a) {
  return cuda::launchCombine(a.context.step, {a.floats(0), a.floats(1), a.floats(2), a.number(0), a.number(1), a.number(2), a.number(3), a.number(4)}, a.context.stream);
}

cuda::Status startAssemble(const Arguments &a) {
  return cuda::launchAssemble(a.context.step,
                              {a.floats(0), a.floats(1), a.floats(2), a.number(0), a.number(1), a.number(2), a.number(3), a.number(4), a.number(5), a.number(6),
                               a.number(7), a.number(8)},
                              a.context.stream);
}

cuda::Status startConv2d(const Arguments &a) {
  return cuda::launchConv2d({a.floats(0), a.floats(1), a.floats(2), a.floats(3), a.floats(4), a.floats(5), a.number(0), a.number(1), a.number(2), a.number(3), a.number(4), a.number(5),
                             a.number(6), a.number(7), a.number(8), a.number(9), a.number(10), a.number(11), a.number(12), a.number(13), a.number(14), a.number(15), a.number(16)},
                            a.context.stream);
}

cuda::Status startPool2d(const Arguments &a) {
  return cuda::launchPool2d({a.floats(0), a.floats(1), a.number(0), a.number(1), a.number(2), a.number(3), a.number(4), a.number(5), a.number(6), a.number(7), a.number(8),
                             a.number(9), a.number(10), a.number(11), a.number(12), a.number(13), a.number(14), a.number(15), a.number(16)},
                            a.context.stream);
}

struct Entry {
  std::string_view name;
  cuda::Status (*start)(const Arguments &arguments);
};

constexpr Entry entries[] = {
    {"embed", startEmbed},     {"positions", startPositions}, {"norm", startNorm},
    {"linear", startLinear},   {"logits", startLogits},       {"argmax", startArgmax},
    {"rotary", startRotary},   {"rope_cache", startRopeCache}, {"attention", startAttention},
    {"activate", startActivate}, {"gate", startGate},         {"add", startAdd},
    {"clamp", startClamp},     {"scale", startScale},         {"xielu", startXielu},
    {"conv", startConv},       {"selective_scan", startSelectiveScan}, {"state_scan", startStateScan},
    {"delta_scan", startDeltaScan}, {"route", startRoute},    {"experts", startExperts},
    {"combine", startCombine}, {"assemble", startAssemble},
    {"conv2d", startConv2d},   {"pool2d", startPool2d},
};

const Entry *entryOf(uint32_t kernel) {
  static const std::vector<const Entry *> byKernel = [] {
    std::vector<const Entry *> table;
    for (const KernelInfo &info : kernels()) {
      const Entry *entry = std::find_if(std::begin(entries), std::end(entries), [&](const Entry &e) { return e.name == info.name; });
      table.push_back(entry == std::end(entries) ? nullptr : entry);
    }
    return table;
  }();
  return byKernel[kernel];
}

} // namespace

bool hasLauncher(uint32_t kernel) { return entryOf(kernel) != nullptr; }

cuda::Status start(const MccLaunch &launch, uint8_t *const *buffers, const LaunchContext &context) {
  return entryOf(launch.kernel)->start({launch, buffers, context});
}

void WorkspaceBytes::add(const MccLaunch &launch, int64_t tokens, int prefillParts) {
  const std::string_view name = kernels()[launch.kernel].name;
  if (name == "linear" || name == "logits") {
    const int64_t cols = launch.ints[1];
    linear = std::max({linear, cuda::linearWorkspaceBytes(tokens, cols, prefillParts), cuda::linearWorkspaceBytes(1, cols, 0)});
  }
  if (name == "logits")
    partials = cuda::kLogitPartials * static_cast<int64_t>(sizeof(cuda::Partial));
  if (name == "attention")
    attention = std::max(attention, cuda::attentionWorkspaceBytes(tokens, launch.ints[0], launch.ints[1], launch.ints[2], launch.ints[8], prefillParts));
}

} // namespace mcc::runtime
