// A session over the fake model inside the test's own process.
#pragma once

#include "runtime-lib/src/Session.h"
#include "test/unit/runtime/FakeModel.h"

#include <array>
#include <doctest/doctest.h>
#include <vector>

namespace mcc::test {

inline const int32_t fakeEndTokens[] = {fakeEnd};

/// Returns the fake model's description, without a blob.
inline MccModel fakeModel() {
  MccModel model{};
  model.abi = MCC_ABI_VERSION;
  model.info = "{}";
  model.cpuFeatures = "";
  model.arenaBytes = fakeArenaBytes;
  model.scratchBytes = fakeScratchBytes;
  model.cacheBytes = fakeCacheBytes;
  model.context = fakeContext;
  model.chunk = fakeChunk;
  model.vocabulary = fakeVocabulary;
  model.logitsOffset = fakeLogitsOffset;
  model.tokenOffset = fakeTokenOffset;
  model.eosCount = 1;
  model.eosTokens = fakeEndTokens;
  model.step = fakeStep;
  return model;
}

/// A session with its weights.
struct FakeSession {
  explicit FakeSession(int64_t threads) : model(fakeModel()) {
    for (int64_t v = 0; v < fakeVocabulary; ++v)
      weights[v] = fakeWeight(v);
    auto created = runtime::Session::create(model, weights.data(), threads);
    REQUIRE(created.ok());
    session = std::move(created.value());
  }
  MccModel model;
  std::array<uint8_t, fakeVocabulary> weights;
  std::unique_ptr<runtime::Session> session;
};

} // namespace mcc::test
