// Models with an encoder: a source is encoded, then target tokens are stepped.
#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "runtime/session.h"
#include "tests/runtime/session_fixture.h"
#include "tests/support/translation_builder.h"

namespace kinglet::session_source_test {
namespace {

const std::vector<uint32_t> kSource = {1, 12, 0, 7};

// log p of every token after each token of a target.
std::vector<std::vector<double>> Answers(Session& session, const std::vector<uint32_t>& source,
                                         const std::vector<uint32_t>& target, uint32_t lane = 0) {
  EXPECT_TRUE(session.Encode(source, lane).ok());
  std::vector<std::vector<double>> answers;
  for (const uint32_t id : target) {
    EXPECT_TRUE(session.StepToken(id, lane).ok());
    answers.push_back(Full(session, lane));
  }
  return answers;
}

TEST(SessionSource, BackendsAgreeAndTheSourceMatters) {
  const std::vector<uint32_t> target = {2, 5, 16, 5};
  const auto sharp = Start(Open(TinyTranslation(), "ref64"));
  const auto expected = Answers(*sharp, kSource, target);
  for (const char* backend : {"ref", "cpu"}) {
    const auto found = Answers(*Start(Open(TinyTranslation(), backend)), kSource, target);
    for (size_t t = 0; t < target.size(); ++t) {
      for (size_t id = 0; id < 17; ++id) EXPECT_NEAR(found[t][id], expected[t][id], 1e-4);
    }
  }
  // Every token of the source matters, the first and the last too, and so does their order.
  for (const std::vector<uint32_t>& other :
       {std::vector<uint32_t>{2, 12, 0, 7}, {1, 12, 0, 8}, {1, 0, 12, 7}, {1, 12, 0}}) {
    EXPECT_GT(std::fabs(Answers(*sharp, other, target)[0][4] - expected[0][4]), 1e-6);
  }
}

TEST(SessionSource, QuantisedModelsGiveTheSameBitsEverywhere) {
  const ModelDraft draft = TinyTranslation({.bits = 9, .quantised = true});
  const std::vector<uint32_t> target = {2, 5, 16, 5};
  const auto reference = Start(Open(draft, "ref")), fast = Start(Open(draft, "cpu"));
  const auto expected = Answers(*reference, kSource, target);
  EXPECT_EQ(Answers(*fast, kSource, target), expected);
  // An encoded source is state, whether codes or floats: forks and other backends continue from it.
  const auto lanes = Start(Open(draft, "cpu"), {.lanes = 2});
  ASSERT_TRUE(lanes->Encode(kSource, 1).ok());
  const State encoded = *lanes->Save(1);
  Answers(*lanes, {3, 4, 5, 6, 7, 8, 9}, target, 1);
  ASSERT_TRUE(lanes->Restore(encoded, 0).ok());
  for (size_t t = 0; t < target.size(); ++t) {
    ASSERT_TRUE(lanes->StepToken(target[t], 0).ok());
    EXPECT_EQ(Full(*lanes, 0), expected[t]);
  }
}

TEST(SessionSource, ALongSourceLeavesNothingForTheNext) {
  const auto session = Start(Open(TinyTranslation(), "cpu"));
  const std::vector<uint32_t> target = {2, 5, 16, 5};
  const auto expected = Answers(*session, kSource, target);
  Answers(*session, {3, 4, 5, 6, 7, 8, 9}, target);  // the longest source
  EXPECT_EQ(Answers(*session, kSource, target), expected);
  EXPECT_EQ(Answers(*session, {6}, target).size(), 4u);  // the shortest source
}

TEST(SessionSource, RefusalsLeaveTheLaneAsItWas) {
  const auto session = Start(Open(TinyTranslation(), "ref"), {.lanes = 2});
  const std::vector<uint32_t> lanes = {0, 1}, both = {2, 2};
  EXPECT_EQ(session->StepToken(2).code(), KINGLET_NO_SOURCE_YET);
  ASSERT_TRUE(session->Encode(kSource).ok());
  EXPECT_EQ(session->StepLanes(lanes, both).code(), KINGLET_NO_SOURCE_YET);  // of lane 1
  EXPECT_EQ(session->LogProbability(3).status().code(), KINGLET_NO_TOKEN_YET);
  ASSERT_TRUE(session->StepToken(2).ok());
  const State before = *session->Save();
  const std::vector<double> answers = Full(*session);

  EXPECT_EQ(session->Encode({}).code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(session->Encode(std::vector<uint32_t>(8, 1)).code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(session->Encode(std::vector<uint32_t>{1, 13}).code(), KINGLET_ID_OUT_OF_RANGE);
  EXPECT_EQ(session->Encode(kSource, 2).code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_TRUE(*session->Save() == before);
  EXPECT_EQ(Full(*session), answers);

  ASSERT_TRUE(session->Reset().ok());
  EXPECT_EQ(session->StepToken(2).code(), KINGLET_NO_SOURCE_YET);

  const auto language_model = Start(Open(TinyMicronet(), "ref"));
  EXPECT_EQ(language_model->Encode(kSource).code(), KINGLET_UNSUPPORTED);
}

TEST(SessionSource, CancelledAnywhereNothingHasHappened) {
  const auto model = Open(TinyTranslation(), "cpu");
  const auto session = Start(model);
  ASSERT_TRUE(session->Encode(kSource).ok());
  for (const uint32_t id : {2u, 5u, 9u}) ASSERT_TRUE(session->StepToken(id).ok());
  const State before = *session->Save();
  const std::vector<double> answers = Full(*session);
  size_t nodes = 0;
  session->set_observer([&](const Node&, std::span<const StreamFrame>) { ++nodes; });
  const std::vector<uint32_t> other = {4, 4, 11};
  ASSERT_TRUE(session->Encode(other).ok());
  ASSERT_TRUE(session->Restore(before).ok());
  for (size_t stop = 0; stop + 1 < nodes; stop += 3) {
    size_t done = 0;
    session->set_observer([&](const Node&, std::span<const StreamFrame>) {
      if (done++ == stop) session->Cancel();
    });
    ASSERT_EQ(session->Encode(other).code(), KINGLET_CANCELLED) << stop;
    session->set_observer({});
    ASSERT_TRUE(*session->Save() == before) << stop;
    ASSERT_EQ(session->position(), 3u);
    ASSERT_EQ(Full(*session), answers);
  }
}

TEST(SessionSource, ForksAndSavedStatesHaveTheSource) {
  const auto model = Open(TinyTranslation(), "cpu");
  const auto session = Start(model, {.lanes = 3});
  const auto expected = Answers(*session, kSource, {2, 5, 16, 5});
  ASSERT_TRUE(session->Encode(kSource, 1).ok());
  ASSERT_TRUE(session->StepToken(2, 1).ok());
  ASSERT_TRUE(session->Fork(1, 2).ok());
  const State state = *session->Save(1);
  EXPECT_EQ(state.source_length(), 4u);
  ASSERT_TRUE(session->Encode(std::vector<uint32_t>{9}, 1).ok());  // the fork keeps its own
  std::vector<std::byte> blob(state.BlobBytes());
  state.WriteBlob(blob);
  EXPECT_LE(blob.size(), State::LargestBlobBytes(*model));
  const auto read = State::ReadBlob(model, blob);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(*read == state);
  EXPECT_EQ(read->Hash(), state.Hash());
  ASSERT_TRUE(session->Restore(*read, 0).ok());
  size_t t = 0;
  for (const uint32_t id : {5u, 16u, 5u}) {
    ++t;
    for (const uint32_t lane : {0u, 2u}) {
      ASSERT_TRUE(session->StepToken(id, lane).ok());
      EXPECT_EQ(Full(*session, lane), expected[t]);
    }
  }
}

// States with the same bytes of memory and sources of different lengths differ.
TEST(SessionSource, StatesDifferByTheSourcesLength) {
  const auto model = Open(TinyTranslation(), "ref");
  const auto session = Start(model);
  ASSERT_TRUE(session->Encode(std::vector<uint32_t>{1, 2}).ok());
  const State two = *session->Save();
  const auto same = *MakePageTable(*model);
  same->pages.assign(two.pages().begin(), two.pages().end());
  const State one(model, 0, 0, 1, same);
  EXPECT_FALSE(one == two);
  EXPECT_NE(one.Hash(), two.Hash());
}

TEST(SessionSource, QuantisedWeights) {
  const ModelDraft draft = TinyTranslation({.bits = 9});
  const auto sharp = Answers(*Start(Open(draft, "ref64")), kSource, {2, 5, 16});
  const auto fast = Answers(*Start(Open(draft, "cpu")), kSource, {2, 5, 16});
  const auto plain = Answers(*Start(Open(draft, "ref")), kSource, {2, 5, 16});
  EXPECT_EQ(fast, plain);  // to the last bit
  for (size_t t = 0; t < 3; ++t) {
    for (size_t id = 0; id < 17; ++id) EXPECT_NEAR(fast[t][id], sharp[t][id], 1e-4);
  }
}

}  // namespace
}  // namespace kinglet::session_source_test
