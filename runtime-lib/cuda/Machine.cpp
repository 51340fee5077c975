// The GPU's side of a session. See Machine.h.
//
// Order within a step is the stream's; the host waits only before it reads what the GPU wrote. Every buffer that changes
// from step to step (token ids, position) lies on the device, so that a captured graph serves all steps of one shape.
#include "runtime-lib/cuda/Machine.h"

#include "kernels/KernelTable.h"
#include "runtime-lib/cuda/ContextLoss.h"
#include "runtime-lib/cuda/Upload.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace mcc::runtime {

// What a slot of the ring holds until the device has published a token there.
static constexpr int32_t notYet = INT32_MIN;
static constexpr int64_t mostGraphTokens = 16;

Machine::Machine(GpuRequest wanted)
    : request(std::move(wanted)), model(*request.model), prefillParts(prefillPartsOf(request.numerics)) {
  const MccProgram &program = *model.program;
  layout = layOut(model, request.onGpu, prefillParts);
  segments = scheduleOf(program, request.onGpu);
  for (uint32_t i = 0; i < program.launchCount; ++i) {
    const std::string &kernel = kernels()[program.launches[i].kernel].name;
    gpuLaunches += request.onGpu[i];
    argmaxOnGpu |= request.onGpu[i] && kernel == "argmax";
    logitsOnGpu |= request.onGpu[i] && kernel == "logits";
  }
}

Result<std::unique_ptr<GpuMachine>> Machine::create(GpuRequest request) {
  if (!keepsStatesTogether(*request.model->program, request.onGpu))
    return Failure{"the plan puts ops that share a cache on different devices"};
  Result<GpuInfo> info = openGpu();
  if (!info.ok())
    return info.failure();
  std::unique_ptr<Machine> machine(new Machine(std::move(request)));
  RETURN_IF_FAILED(machine->takeMemory(info.value()));
  RETURN_IF_FAILED(machine->uploadWeights());
  RETURN_IF_FAILED(machine->reset());
  return std::unique_ptr<GpuMachine>(std::move(machine));
}

Machine::~Machine() {
  for (auto &entry : graphs)
    cudaGraphExecDestroy(entry.second);
  if (arenaLocked)
    cudaHostUnregister(request.host->arenaMemory().data());
}

Status Machine::takeMemory(const GpuInfo &info) {
  const WorkspaceBytes &workspace = layout.workspace;
  const uint64_t inputBytes = (uint64_t(model.chunk) + 64) * sizeof(int32_t);
  GpuMemory memory{layout.weightBytes, layout.cacheBytes,
                   layout.arenaBytes + workspace.linear + workspace.attention + workspace.partials + inputBytes, info.freeBytes};
  if (request.beforeTaking)
    request.beforeTaking(info.name, memory);
  if (request.mostMemory && memory.total() > *request.mostMemory)
    return Failure{"the plan takes " + std::to_string(memory.total()) + " bytes of GPU memory; --gpu-memory permits " + std::to_string(*request.mostMemory)};
  const auto take = [](DeviceMemory &block, uint64_t bytes) -> Status {
    Result<DeviceMemory> taken = DeviceMemory::create(bytes);
    if (!taken.ok())
      return taken.failure();
    block = std::move(taken.value());
    return {};
  };
  RETURN_IF_FAILED(take(weights, layout.weightBytes));
  RETURN_IF_FAILED(take(cache, layout.cacheBytes));
  RETURN_IF_FAILED(take(arena, layout.arenaBytes));
  RETURN_IF_FAILED(take(linearWorkspace, workspace.linear));
  RETURN_IF_FAILED(take(attentionWorkspace, workspace.attention));
  RETURN_IF_FAILED(take(partials, workspace.partials));
  RETURN_IF_FAILED(take(inputs, inputBytes));
  devicePosition = reinterpret_cast<int32_t *>(inputs.data());
  deviceIds = devicePosition + 64;
  Result<Stream> created = Stream::create();
  if (!created.ok())
    return created.failure();
  stream = std::move(created.value());
  Result<PinnedMemory> pinned = PinnedMemory::create(ringSize * sizeof(int32_t) + inputBytes);
  if (!pinned.ok())
    return pinned.failure();
  shared = std::move(pinned.value());
  ring = reinterpret_cast<int32_t *>(shared.data());
  staged = ring + ringSize;
  if (segments.size() > 1) { // copies between the devices' arenas are several times faster from locked pages
    Memory &host = request.host->arenaMemory();
    RETURN_IF_FAILED(call("cudaHostRegister", [&] { return cudaHostRegister(host.data(), host.size(), cudaHostRegisterDefault); }));
    arenaLocked = true;
  }
  return call("cudaMemsetAsync", [&] { return cudaMemsetAsync(attentionWorkspace.data(), 0, std::max<int64_t>(workspace.attention, 1), stream.get()); });
}

Status Machine::uploadWeights() {
  const auto start = std::chrono::steady_clock::now();
  std::vector<UploadPiece> pieces;
  for (uint32_t i = 0; i < model.program->regionCount; ++i) {
    const MccRegion &region = model.program->regions[i];
    if (region.space == MCC_WEIGHTS && layout.offsets[i] != DeviceLayout::absent)
      pieces.push_back({request.host->weights() + region.offset, weights.data() + layout.offsets[i], region.bytes});
  }
  RETURN_IF_FAILED(upload(pieces, request.progress));
  secondsOfUpload = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return {};
}

Status Machine::reset() {
  // Steps that ran ahead of a sequence that ended early are still on their way.
  RETURN_IF_FAILED(stream.wait());
  RETURN_IF_FAILED(call("cudaMemsetAsync", [&] { return cudaMemsetAsync(cache.data(), 0, std::max<uint64_t>(layout.cacheBytes, 1), stream.get()); }));
  issued = 0;
  chosen = -1;
  return {};
}

std::vector<uint8_t *> Machine::pointersOf(const MccLaunch &launch) const {
  uint8_t *const bases[] = {arena.data(), weights.data(), cache.data()};
  std::vector<uint8_t *> pointers;
  for (size_t b = 0; b < kernels()[launch.kernel].buffers.size(); ++b) {
    const MccArgument &argument = launch.buffers[b];
    const bool absent = argument.region == MCC_NO_REGION;
    pointers.push_back(absent ? nullptr : bases[model.program->regions[argument.region].space] + layout.offsets[argument.region] + argument.offset);
  }
  return pointers;
}

LaunchContext Machine::contextOf(int64_t tokens) const {
  LaunchContext context;
  context.step = {tokens, deviceIds, devicePosition, devicePosition + 1};
  context.workspace = {linearWorkspace.data(), attentionWorkspace.data(), partials.data()};
  // The chosen token becomes the next step's input where it is.
  context.sink = {deviceIds, allOnGpu() ? devicePosition : nullptr, ring, static_cast<int32_t>(ringMask)};
  context.prefillParts = prefillParts;
  context.stream = stream.get();
  return context;
}

Status Machine::startLaunches(const Segment &segment, int64_t tokens) {
  const LaunchContext context = contextOf(tokens);
  for (uint32_t index : segment.launches) {
    const MccLaunch &launch = model.program->launches[index];
    if (request.times)
      RETURN_IF_FAILED(clock.mark(stream.get(), index));
    cudaError_t error = injectedFault("kernel");
    if (error == cudaSuccess)
      error = static_cast<cudaError_t>(start(launch, pointersOf(launch).data(), context));
    if (error != cudaSuccess)
      return Failure{std::string(launch.name) + " (kernel " + kernels()[launch.kernel].name + "): " + statusOf("launch", error).message()};
  }
  return request.times ? clock.mark(stream.get(), LaunchClock::noLaunch) : Status();
}

Status Machine::capture(size_t segment, int64_t tokens, cudaGraphExec_t &graph) {
  cudaGraph_t captured = nullptr;
  RETURN_IF_FAILED(call(CUDA_NAME(cudaStreamBeginCapture), stream.get(), cudaStreamCaptureModeThreadLocal));
  const Status launched = startLaunches(segments[segment], tokens);
  const Status ended = call(CUDA_NAME(cudaStreamEndCapture), stream.get(), &captured);
  RETURN_IF_FAILED(launched);
  RETURN_IF_FAILED(ended);
  const Status made = call("cudaGraphInstantiate", [&] { return cudaGraphInstantiate(&graph, captured, 0); });
  cudaGraphDestroy(captured);
  return made;
}

Status Machine::runOnGpu(size_t segment, int64_t tokens) {
  if (tokens > mostGraphTokens || request.times)
    return startLaunches(segments[segment], tokens);
  const auto key = std::pair(segment, tokens);
  auto found = graphs.find(key);
  if (found == graphs.end()) {
    cudaGraphExec_t graph = nullptr;
    RETURN_IF_FAILED(capture(segment, tokens, graph));
    found = graphs.emplace(key, graph).first;
  }
  return call(CUDA_NAME(cudaGraphLaunch), found->second, stream.get());
}

Status Machine::copyRegions(const Segment &segment, int64_t tokens) {
  uint8_t *const host = request.host->arenaMemory().data();
  for (uint32_t index : segment.copies) {
    const MccRegion &region = model.program->regions[index];
    const uint64_t bytes = region.rowBytes ? std::min(region.bytes, region.rowBytes * uint64_t(tokens)) : region.bytes;
    uint8_t *const onHost = host + region.offset, *const onGpu = arena.data() + region.offset;
    RETURN_IF_FAILED(call("cudaMemcpyAsync", [&] {
      return segment.onGpu ? cudaMemcpyAsync(onGpu, onHost, bytes, cudaMemcpyHostToDevice, stream.get())
                           : cudaMemcpyAsync(onHost, onGpu, bytes, cudaMemcpyDeviceToHost, stream.get());
    }));
  }
  return {};
}

Status Machine::setInputs(std::span<const int32_t> tokens, int64_t position, int64_t length) {
  // `staged` may still be read by the copy of the step before.
  if (issued != 0)
    RETURN_IF_FAILED(stream.wait());
  staged[0] = static_cast<int32_t>(position);
  staged[1] = static_cast<int32_t>(length);
  std::copy(tokens.begin(), tokens.end(), staged + 64);
  const size_t bytes = (64 + tokens.size()) * sizeof(int32_t);
  return call("cudaMemcpyAsync", [&] { return cudaMemcpyAsync(devicePosition, staged, bytes, cudaMemcpyHostToDevice, stream.get()); });
}

Status Machine::runSegments(std::span<const int32_t> tokens, int64_t position, int64_t length) {
  const int64_t count = static_cast<int64_t>(tokens.size());
  const int64_t last = position + count - 1;
  slotOf(last) = notYet;
  for (size_t i = 0; i < segments.size(); ++i) {
    RETURN_IF_FAILED(copyRegions(segments[i], count));
    if (segments[i].onGpu) {
      RETURN_IF_FAILED(runOnGpu(i, count));
      continue;
    }
    RETURN_IF_FAILED(stream.wait());
    request.host->runLaunches(segments[i].launches, tokens, position, length);
  }
  issued = last + 1;
  if (request.times) {
    RETURN_IF_FAILED(stream.wait());
    RETURN_IF_FAILED(clock.collect(*request.times, count));
  }
  if (argmaxOnGpu)
    return waitForToken(last);
  std::memcpy(&chosen, request.host->arenaMemory().data() + model.tokenOffset, sizeof chosen);
  return {};
}

// Starts the step for `position` unless it is on its way, and further ones after it.
Status Machine::runAhead(int32_t token, int64_t position, int64_t length, int64_t ahead) {
  if (position >= issued) {
    // A length above position + 1 is that of a prompt taken token by token.
    if (position != issued || token != chosen || length != position + 1)
      RETURN_IF_FAILED(setInputs(std::span(&token, 1), position, length));
    issued = position;
  }
  const int64_t wanted = position + 1 + std::min(ahead, mostAhead);
  // Topped up when half of what runs ahead is used, so that the host starts several at a time.
  if (issued <= position + std::min(ahead, mostAhead / 2))
    for (; issued < wanted; ++issued) {
      slotOf(issued) = notYet;
      RETURN_IF_FAILED(runOnGpu(0, 1));
    }
  return waitForToken(position);
}

Status Machine::waitForToken(int64_t position) {
  volatile int32_t &slot = slotOf(position);
  for (int64_t spins = 1; slot == notYet; ++spins) {
    if (spins % 4096 != 0)
      continue;
    const cudaError_t error = cudaStreamQuery(stream.get());
    if (error == cudaErrorNotReady)
      continue;
    RETURN_IF_FAILED(statusOf("cudaStreamQuery", error));
    if (slot == notYet) // the stream is empty, yet nothing was published
      return statusOf("step", cudaErrorUnknown);
  }
  chosen = slot;
  return {};
}

Status Machine::loseContextIfAsked() {
  if (injectedFault("context") == cudaSuccess)
    return {};
  loseContext(stream.get());
  return {};
}

Status Machine::step(std::span<const int32_t> tokens, int64_t position, int64_t length, int64_t ahead) {
  RETURN_IF_FAILED(loseContextIfAsked());
  // Steps that are measured do not run ahead: their launches are waited for.
  if (allOnGpu() && tokens.size() == 1 && !request.times)
    return runAhead(tokens[0], position, length, ahead);
  RETURN_IF_FAILED(setInputs(tokens, position, length));
  return runSegments(tokens, position, length);
}

Status Machine::fetchLogits() {
  if (!logitsOnGpu)
    return {};
  uint8_t *const host = request.host->arenaMemory().data();
  RETURN_IF_FAILED(call("cudaMemcpyAsync", [&] {
    return cudaMemcpyAsync(host + model.logitsOffset, arena.data() + model.logitsOffset, uint64_t(model.vocabulary) * sizeof(float), cudaMemcpyDeviceToHost,
                           stream.get());
  }));
  return stream.wait();
}

} // namespace mcc::runtime

extern "C" const MccGpuRuntime mccrt_gpu_runtime = {mcc::runtime::Machine::create};
