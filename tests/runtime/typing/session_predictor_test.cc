#include "runtime/typing/session_predictor.h"

#include <gtest/gtest.h>

#include "tests/runtime/session_fixture.h"

namespace kinglet::typing {
namespace {

TEST(SessionPredictor, ReadsAheadWithoutChangingTheLane) {
  const auto model = Open(TinyMicronet(WholeOptions(true)), "cpu");
  const auto session = Start(model, {.lanes = 2}), other = Start(model);
  SessionPredictor predictor;
  for (const uint32_t id : {3U, 7U, 3U}) {
    ASSERT_TRUE(session->StepToken(id, 1).ok());
    ASSERT_TRUE(other->StepToken(id).ok());
  }
  predictor.Use(*session, 1);
  std::vector<float> found(model->vocabulary_size()), expected(model->vocabulary_size());
  ASSERT_TRUE(predictor.Next(found).ok());
  ASSERT_TRUE(other->LogProbabilities(std::span<float>(expected)).ok());
  EXPECT_EQ(found, expected);
  const State before = *session->Save(1), state = *other->Save();
  const uint64_t version = predictor.version();
  for (const uint32_t id : {1U, 5U, 1U}) {
    ASSERT_TRUE(predictor.After({&id, 1}, found).ok());
    ASSERT_TRUE(other->Restore(state).ok());
    ASSERT_TRUE(other->StepToken(id).ok());
    ASSERT_TRUE(other->LogProbabilities(std::span<float>(expected)).ok());
    EXPECT_EQ(found, expected) << id;
  }
  const uint32_t several[] = {1, 5, 2};
  ASSERT_TRUE(predictor.After(several, found).ok());
  ASSERT_TRUE(other->Restore(state).ok());
  for (const uint32_t id : several) ASSERT_TRUE(other->StepToken(id).ok());
  ASSERT_TRUE(other->LogProbabilities(std::span<float>(expected)).ok());
  EXPECT_EQ(found, expected);
  EXPECT_TRUE(*session->Save(1) == before);
  const uint32_t one[] = {1}, beyond[] = {2, model->vocabulary_size()};
  EXPECT_EQ(predictor.version(), version);
  EXPECT_EQ(predictor.After(beyond, found).code(), KINGLET_ID_OUT_OF_RANGE);
  session->Cancel();
  EXPECT_EQ(predictor.After(one, found).code(), KINGLET_CANCELLED);
  EXPECT_TRUE(predictor.After(one, found).ok());
  // A stream that changed is another context.
  ASSERT_TRUE(session->Restore(before, 1).ok());
  EXPECT_NE(predictor.version(), version);
}

}  // namespace
}  // namespace kinglet::typing
