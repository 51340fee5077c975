// Steps over a sequence. A prompt goes through the step in chunks of at most MccModel::chunk tokens; only the last
// row of a step has logits, so only the last chunk's are looked at.
//
// Invariant: position + tokens <= context for every step, and every token is within the vocabulary; generated code
// and kernels rely on it and check nothing.
//
// The tokens so far are kept: after an error of the GPU its caches may be gone with it, and the CPU makes its own from
// them. A token goes through a step exactly once otherwise; states that are no caches (SSM) rely on it.
#include "runtime-lib/src/Session.h"

#include "runtime-lib/src/Text.h"

#include <algorithm>
#include <cstring>

namespace mcc::runtime {

Result<std::unique_ptr<Session>> Session::create(const MccModel &model, const uint8_t *weights, int64_t threads) {
  Result<std::unique_ptr<HostMachine>> host = HostMachine::create(model, weights, threads);
  if (!host.ok())
    return host.failure();
  return std::unique_ptr<Session>(new Session(model, std::move(host.value())));
}

Status Session::useGpu(GpuRequest request) {
  request.model = &description;
  request.host = host.get();
  request.times = measured;
  Result<std::unique_ptr<GpuMachine>> machine = description.gpu->create(std::move(request));
  if (!machine.ok()) {
    devices.lastError = machine.message();
    return machine.failure();
  }
  gpu = std::move(machine.value());
  return {};
}

void Session::reset() {
  if (!history.empty())
    host->clear();
  history.clear();
  lengths.clear();
  if (gpu)
    if (Status status = gpu->reset(); !status.ok())
      abandonGpu(status.message());
}

void Session::limitChunk(int64_t most) { chunk = std::clamp<int64_t>(most, 1, description.chunk); }

Status Session::checkTokens(std::span<const int32_t> tokens) const {
  if (tokens.empty())
    return Failure{"error: the prompt has no tokens; at least one is needed"};
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= description.vocabulary)
      return Failure{concat("error: token ", i, " of the prompt is ", tokens[i], "; the vocabulary has ",
                            description.vocabulary, " ids, 0 to ", description.vocabulary - 1)};
  const int64_t count = static_cast<int64_t>(tokens.size());
  if (count > description.context - position())
    return Failure{position() == 0 ? concat("error: the prompt has ", count, " tokens; the context has ",
                                            description.context, "; compile with a larger --ctx")
                                   : concat("error: ", count, " tokens after ", position(),
                                            " do not fit the context of ", description.context)};
  return {};
}

Status Session::prefill(std::span<const int32_t> tokens, int64_t ahead) {
  if (Status status = checkTokens(tokens); !status.ok())
    return status;
  const int64_t length = position() + static_cast<int64_t>(tokens.size());
  while (!tokens.empty()) {
    const std::span<const int32_t> part = tokens.first(std::min<size_t>(tokens.size(), chunk));
    tokens = tokens.subspan(part.size());
    runStep(part, length, tokens.empty() ? ahead : 0);
    history.insert(history.end(), part.begin(), part.end());
    lengths.resize(history.size(), length);
  }
  return checkChoice();
}

void Session::runStep(std::span<const int32_t> tokens, int64_t length, int64_t ahead) {
  if (measured)
    measured->begin(static_cast<int64_t>(tokens.size()), position());
  if (gpu) {
    const Status status = gpu->step(tokens, position(), length, std::min(ahead, description.context - position() - 1));
    if (status.ok()) {
      devices.gpuLaunches += gpu->launchesOnGpu();
      return;
    }
    abandonGpu(status.message());
  }
  host->run(tokens, position(), length);
}

// Goes on without the GPU: the CPU catches up with the sequence.
void Session::abandonGpu(const std::string &error) {
  gpu.reset();
  devices.lastError = error;
  host->clear();
  std::span<const int32_t> rest(history);
  devices.replayed += static_cast<int64_t>(rest.size());
  for (size_t at = 0; !rest.empty();) {
    // Tokens of one prompt together, as they were run.
    size_t count = 1;
    while (count < rest.size() && count < static_cast<size_t>(chunk) && lengths[at + count] == lengths[at])
      ++count;
    host->run(rest.first(count), static_cast<int64_t>(at), lengths[at]);
    at += count;
    rest = rest.subspan(count);
  }
}

Status Session::checkChoice() const {
  const int32_t chosen = token();
  if (chosen >= 0 && chosen < description.vocabulary)
    return {};
  if (chosen < 0)
    return Failure{concat("error: logits are NaN at position ", position() - 1,
                          "; the weights or the activations overflow, --verify tells whether the file is intact")};
  return Failure{concat("error: the step at position ", position() - 1, " chose token ", chosen,
                        "; the vocabulary has ", description.vocabulary, " ids")};
}

std::span<const float> Session::logits() {
  if (gpu)
    if (Status status = gpu->fetchLogits(); !status.ok())
      abandonGpu(status.message());
  return std::span(reinterpret_cast<const float *>(host->arenaMemory().data() + description.logitsOffset),
                   static_cast<size_t>(description.vocabulary));
}

int32_t Session::token() const {
  if (gpu)
    return gpu->token();
  int32_t chosen;
  std::memcpy(&chosen, host->arenaMemory().data() + description.tokenOffset, sizeof chosen);
  return chosen;
}

} // namespace mcc::runtime
