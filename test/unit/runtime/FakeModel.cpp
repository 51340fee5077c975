// The generated object of the fake model: what mcc's code generator emits for a real one.
#include "test/unit/runtime/FakeModel.h"

#include "mcc/Model.h"

// MCC_FAKE_BLOB_ID, MCC_FAKE_BLOB_BYTES: written by fake-model-weights beside the weights.
#include "FakeBlob.inc"

#ifndef MCC_FAKE_FEATURES
#define MCC_FAKE_FEATURES ""
#endif

using namespace mcc::test;

static const int32_t endTokens[] = {fakeEnd};

extern "C" const MccModel mcc_model = {
    .abi = MCC_ABI_VERSION,
    .reserved = 0,
    .info = R"({"compiler": "mcc 0.1.0", "family": "fake", "targetCpu": "cooperlake"})",
    .cpuFeatures = MCC_FAKE_FEATURES,
    .blobId = MCC_FAKE_BLOB_ID,
    .blobBytes = MCC_FAKE_BLOB_BYTES,
    .arenaBytes = fakeArenaBytes,
    .scratchBytes = fakeScratchBytes,
    .cacheBytes = fakeCacheBytes,
    .context = fakeContext,
    .chunk = fakeChunk,
    .vocabulary = fakeVocabulary,
    .logitsOffset = fakeLogitsOffset,
    .tokenOffset = fakeTokenOffset,
    .bosToken = -1,
    .eosCount = 1,
    .eosTokens = endTokens,
    .step = fakeStep,
    .program = nullptr,
    .gpu = nullptr,
};
