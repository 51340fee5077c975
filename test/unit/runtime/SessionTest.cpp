// Sessions and generation over the fake model: chunking, threads, limits, resets.
#include "runtime-lib/src/Generate.h"
#include "test/unit/runtime/FakeSession.h"

#include <algorithm>
#include <cstring>

using namespace mcc::runtime;
using namespace mcc::test;

static std::vector<int32_t> somePrompt(size_t count) {
  std::vector<int32_t> prompt(count);
  for (size_t i = 0; i < count; ++i)
    prompt[i] = static_cast<int32_t>((i * 11 + 3) % 60);
  return prompt;
}

TEST_CASE("every chunking and thread count gives the same logits") {
  const std::vector<int32_t> prompt = somePrompt(29);
  FakeSession reference(1);
  for (int32_t token : prompt)
    REQUIRE(reference.session->decode(token).ok());
  const std::vector<float> expected(reference.session->logits().begin(), reference.session->logits().end());
  for (int64_t threads = 1; threads <= 4; ++threads) {
    FakeSession fake(threads);
    for (int64_t chunk : {1, 2, 3, 7, 8, 9, 1000}) {
      CAPTURE(chunk);
      fake.session->reset();
      fake.session->limitChunk(chunk);
      REQUIRE(fake.session->prefill(prompt).ok());
      CHECK(fake.session->position() == 29);
      CHECK(std::equal(expected.begin(), expected.end(), fake.session->logits().begin()));
      CHECK(fake.session->token() == reference.session->token());
    }
  }
}

TEST_CASE("reset zeroes the cache") {
  static bool dirty;
  FakeSession fake(1);
  fake.model.step = [](const MccStep *step) {
    dirty |= step->position == 0 && step->cache[fakeCacheBytes - 1] != 0;
    step->cache[fakeCacheBytes - 1] = 1;
    std::memset(step->arena, 0, fakeArenaBytes);
  };
  auto session = Session::create(fake.model, fake.weights.data(), 1);
  REQUIRE(session.ok());
  for (int i = 0; i < 3; ++i) {
    CHECK(session.value()->decode(1).ok());
    session.value()->reset();
  }
  CHECK(!dirty);
}

TEST_CASE("refusals run nothing and name both numbers") {
  FakeSession fake(2);
  const auto message = [&](std::vector<int32_t> tokens) { return fake.session->prefill(tokens).message(); };
  CHECK(message({}).find("no tokens") != std::string::npos);
  CHECK(message({1, 64}) == "error: token 1 of the prompt is 64; the vocabulary has 64 ids, 0 to 63");
  CHECK(message({-1}).find("is -1") != std::string::npos);
  CHECK(message(somePrompt(41)).find("41 tokens; the context has 40") != std::string::npos);
  CHECK(fake.session->position() == 0);
  REQUIRE(fake.session->prefill(somePrompt(40)).ok());
  CHECK(fake.session->decode(1).message().find("do not fit the context of 40") != std::string::npos);
}

TEST_CASE("NaN logits are an error, and the session is usable after it") {
  FakeSession fake(2);
  CHECK(fake.session->prefill(std::vector<int32_t>{1, fakePoison}).message().find("NaN at position 1") !=
        std::string::npos);
  fake.session->reset();
  CHECK(fake.session->prefill(std::vector<int32_t>{1, 2}).ok());
}

TEST_CASE("generation: rows of logits and tokens go together") {
  FakeSession fake(2);
  const std::vector<int32_t> prompt = {1, 2};
  size_t rows = 0;
  const Hooks hooks{[&](std::span<const float>) { return ++rows, true; }, {}};
  for (int64_t wanted : {0, 1, 5}) {
    rows = 0;
    auto generated = generate(*fake.session, {prompt, wanted, true}, hooks);
    REQUIRE(generated.ok());
    CHECK(generated.value().tokens.size() == size_t(wanted));
    CHECK(rows == size_t(std::max<int64_t>(wanted, 1)));
    CHECK(generated.value().stop == Stop::Length);
    CHECK(fake.session->position() == 2 + std::max<int64_t>(wanted - 1, 0));
  }
}

TEST_CASE("generation: hooks end it, and so does the context") {
  FakeSession fake(1);
  const std::vector<int32_t> prompt = {1, 2};
  int calls = 0;
  auto stopped = generate(*fake.session, {prompt, 10, true}, {{}, [&](int32_t) { return ++calls < 3; }});
  CHECK(stopped.value().stop == Stop::Consumer);
  CHECK(stopped.value().tokens.size() == 3);
  auto full = generate(*fake.session, {prompt, 1000, true}, {});
  CHECK(full.value().stop == Stop::Context);
  CHECK(full.value().tokens.size() == 39);
}

TEST_CASE("generation: a NaN later on names the step") {
  static int steps;
  steps = 0;
  FakeSession fake(1);
  fake.model.step = [](const MccStep *step) {
    const int32_t token = ++steps < 3 ? 5 : -1;
    std::memcpy(step->arena + fakeTokenOffset, &token, sizeof token);
  };
  auto session = Session::create(fake.model, fake.weights.data(), 1);
  auto generated = generate(*session.value(), {std::vector<int32_t>{1, 2, 3}, 10, true}, {});
  REQUIRE(!generated.ok());
  CHECK(generated.message().find("NaN at position 4") != std::string::npos);
  CHECK(generated.message().find("(decode step 2 after a prompt of 3 tokens)") != std::string::npos);
}

TEST_CASE("a cache that no machine has is an error") {
  FakeSession fake(1);
  fake.model.cacheBytes = uint64_t(1) << 62;
  auto session = Session::create(fake.model, fake.weights.data(), 1);
  REQUIRE(!session.ok());
  CHECK(session.message().find("the cache needs 4611686018427387904 bytes") != std::string::npos);
}
