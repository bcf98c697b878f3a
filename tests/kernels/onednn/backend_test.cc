// Sessions of many lanes on the backend `onednn`: close to `cpu`, and each lane's bits do not
// depend on other lanes.
#include "kernels/onednn/backend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "tests/runtime/session_fixture.h"

namespace kinglet::onednn_backend_test {
namespace {

constexpr uint32_t kLanes = 64, kVocabulary = 90;

ModelDraft Wide(bool quantised = false) {
  return TinyMicronet({.quantised = quantised,
                       .cache_capacity = 6,
                       .bins = 1,
                       .vocabulary_size = kVocabulary,
                       .width = 128,
                       .heads = 4,
                       .key_size = 16,
                       .value_size = 16,
                       .inner = 150});
}

std::vector<uint32_t> AllLanes() {
  std::vector<uint32_t> lanes(kLanes);
  std::iota(lanes.begin(), lanes.end(), 0);
  return lanes;
}

void StepAll(Session& session, TestRandom& random) {
  std::vector<uint32_t> ids(session.lanes());
  for (uint32_t& id : ids) id = random.Below(kVocabulary);
  std::vector<uint32_t> lanes(session.lanes());
  std::iota(lanes.begin(), lanes.end(), 0);
  ASSERT_TRUE(session.StepLanes(lanes, ids).ok());
}

TEST(OnednnBackend, IsNearToTheReferenceAndUsesTheLibrary) {
  const auto ours = Start(Open(Wide(), "cpu"), {.lanes = kLanes});
  const auto session = Start(Open(Wide(), "onednn"), {.lanes = kLanes});
  TestRandom random(3), same(3);
  bool differs = false;
  for (int step = 0; step < 12; ++step) {
    StepAll(*ours, random);
    StepAll(*session, same);
    for (const uint32_t lane : {0u, 17u, 63u}) {
      const auto expected = Full(*ours, lane), found = Full(*session, lane);
      for (size_t i = 0; i < found.size(); ++i) {
        ASSERT_NEAR(found[i], expected[i], 1e-4);
        differs = differs || found[i] != expected[i];
      }
    }
  }
  EXPECT_TRUE(differs);
}

TEST(OnednnBackend, QuantisedModelsAndSingleLanesAreOurs) {
  for (const bool quantised : {false, true}) {
    const uint32_t count = quantised ? kLanes : 1;
    const auto ours = Start(Open(Wide(quantised), "cpu"), {.lanes = count});
    const auto session = Start(Open(Wide(quantised), "onednn"), {.lanes = count});
    TestRandom random(5), same(5);
    for (int step = 0; step < 8; ++step) {
      StepAll(*ours, random);
      StepAll(*session, same);
      ASSERT_EQ(Full(*ours, count - 1), Full(*session, count - 1));
    }
  }
}

// One lane of 64, stepped or asked alone, has the bits that it has among all; so has a state that
// is restored in another lane, with any number of threads.
TEST(OnednnBackend, ALanesBitsAreItsOwn) {
  const auto model = Open(Wide(), "onednn");
  const auto batched = Start(model, {.lanes = kLanes});
  const auto single = Start(model, {.lanes = kLanes, .threads = 2});
  TestRandom random(9);
  for (int step = 0; step < 10; ++step) {
    std::vector<uint32_t> ids(kLanes);
    for (uint32_t& id : ids) id = random.Below(kVocabulary);
    ASSERT_TRUE(batched->StepLanes(AllLanes(), ids).ok());
    ASSERT_TRUE(single->StepToken(ids[37], 5).ok());
    const auto all = Full(*single, 5);
    ASSERT_EQ(Full(*batched, 37), all);
    const uint32_t id = random.Below(kVocabulary);
    const auto one = batched->LogProbability(id, 37);
    ASSERT_TRUE(one.ok());
    ASSERT_EQ(*one, all[id]);
    const auto state = batched->Save(37);
    ASSERT_TRUE(state.ok());
    ASSERT_TRUE(single->Restore(*state, step % 2 == 0 ? 5 : 61).ok());
    ASSERT_EQ(Full(*single, step % 2 == 0 ? 5 : 61), all);
  }
}

TEST(OnednnBackend, ItsMemoryIsLimited) {
  const auto bytes = SerialiseModel(Wide());
  ASSERT_TRUE(bytes.ok());
  const auto least = [&](const std::string& backend) {
    uint64_t limit = 16384;
    for (;; limit += 4096) {
      ModelOptions options;
      options.backend = backend;
      options.memory_limit = limit;
      const auto model = Model::FromBytes(*bytes, options);
      if (model.ok()) return limit;
      EXPECT_EQ(model.status().code(), KINGLET_OUT_OF_MEMORY);
    }
  };
  // The weights are in memory twice.
  EXPECT_GT(least("onednn"), least("cpu") + 40000);
}

TEST(OnednnBackend, CancelledStepsLeaveTheLanesAsTheyWere) {
  const auto session = Start(Open(Wide(), "onednn"), {.lanes = kLanes});
  TestRandom random(2);
  StepAll(*session, random);
  const auto before = Full(*session, 40);
  session->Cancel();
  std::vector<uint32_t> ids(kLanes, 1);
  EXPECT_EQ(session->StepLanes(AllLanes(), ids).code(), KINGLET_CANCELLED);
  EXPECT_EQ(Full(*session, 40), before);
}

}  // namespace
}  // namespace kinglet::onednn_backend_test
