#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "runtime/session.h"
#include "tests/support/masked_builder.h"
#include "tests/support/transformer_builder.h"
#include "tests/support/translation_builder.h"

namespace kinglet::session_reading_test {
namespace {

using Ids = std::vector<uint32_t>;

std::shared_ptr<const Model> Open(const ModelDraft& draft, const char* backend) {
  ModelOptions options;
  options.backend = backend;
  return *Model::FromFile(*ModelFile::FromBytes(*SerialiseModel(draft)), options);
}
std::unique_ptr<Session> OpenMasked(const TinyMaskedOptions& options, const char* backend = "cpu",
                                    uint32_t lanes = 1, uint32_t threads = 1) {
  return *Session::Create(Open(TinyMasked(options), backend), {.lanes = lanes, .threads = threads});
}

const Ids kText = {2, 9, 4, 13, 3, 6, 3}, kSegments = {0, 0, 0, 0, 0, 1, 1};

std::vector<double> AllAt(Session& session, uint64_t position, uint32_t lane = 0) {
  std::vector<double> out(17);
  EXPECT_TRUE(session.LookAt(position, lane).ok());
  EXPECT_TRUE(session.LogProbabilities(std::span(out), lane).ok());
  return out;
}

TEST(ReadText, EveryPositionHasADistribution) {
  for (const char* backend : {"ref64", "ref", "cpu"}) {
    const auto session = OpenMasked({}, backend);
    ASSERT_TRUE(session->Encode(kText, kSegments, 0).ok());
    for (uint64_t position = 0; position < kText.size(); ++position) {
      double sum = 0;
      for (const double value : AllAt(*session, position)) sum += std::exp(value);
      EXPECT_NEAR(sum, 1, 1e-5);
    }
  }
}

// Each token sees those before and after it, and its segment.
TEST(ReadText, LooksInBothDirections) {
  const auto session = OpenMasked({}, "ref64");
  ASSERT_TRUE(session->Encode(kText, kSegments, 0).ok());
  const auto first = AllAt(*session, 1), middle = AllAt(*session, 3);
  Ids other = kText;
  other[5] = 7;
  ASSERT_TRUE(session->Encode(other, kSegments, 0).ok());
  EXPECT_NE(AllAt(*session, 1), first);
  ASSERT_TRUE(session->Encode(kText).ok());
  EXPECT_NE(AllAt(*session, 3), middle);
  ASSERT_TRUE(session->Encode(kText, Ids(kText.size(), 0), 0).ok());
  const auto zeros = AllAt(*session, 3);
  ASSERT_TRUE(session->Encode(kText).ok());
  EXPECT_EQ(AllAt(*session, 3), zeros);
}

// What is asked about the text changes no answer about a token.
TEST(ReadText, ScoresLeaveTheTokenAlone) {
  for (const char* backend : {"ref64", "ref", "cpu"}) {
    const auto session = OpenMasked({.scores = 3}, backend, 2);
    ASSERT_TRUE(session->Encode(kText, kSegments, 1).ok());
    const std::vector<double> expected = AllAt(*session, 3, 1);
    for (const bool asked_before : {true, false}) {
      ASSERT_TRUE(session->LookAt(3, 1).ok());
      if (asked_before) {
        ASSERT_TRUE(session->TopK(4, 1).ok());
      }
      std::vector<double> pooled(8), scores(3), found(17);
      ASSERT_TRUE(session->Pooled(pooled, 1).ok());
      ASSERT_TRUE(session->Scores(scores, 0, 1).ok());
      ASSERT_TRUE(session->LogProbabilities(std::span(found), 1).ok());
      EXPECT_EQ(found, expected) << backend << (asked_before ? ", asked before" : "");
    }
  }
}

// In any order, on any lane, with any number of threads, and after save and restore: the same bits.
TEST(ReadText, AnswersDependOnTheTextAlone) {
  for (const int bits : {0, 9}) {
    const auto alone = OpenMasked({.bits = bits, .scores = 3}, "cpu");
    ASSERT_TRUE(alone->Encode(kText, kSegments, 0).ok());
    std::vector<std::vector<double>> expected;
    for (uint64_t i = 0; i < kText.size(); ++i) expected.push_back(AllAt(*alone, i));
    std::vector<double> pooled(8), scores(3);
    ASSERT_TRUE(alone->Pooled(pooled).ok());
    ASSERT_TRUE(alone->Scores(scores).ok());

    const auto lanes = OpenMasked({.bits = bits, .scores = 3}, "cpu", 3, 2);
    ASSERT_TRUE(lanes->Encode(Ids{2, 3}, {}, 0).ok());
    ASSERT_TRUE(lanes->Encode(kText, kSegments, 1).ok());
    ASSERT_TRUE(lanes->Fork(1, 2).ok());
    const auto state = lanes->Save(1);
    ASSERT_TRUE(state.ok()) << state.status().message();
    ASSERT_TRUE(lanes->Restore(*state, 0).ok());
    for (const uint32_t lane : {2u, 0u, 1u}) {
      for (uint64_t i = kText.size(); i-- > 0;) {
        EXPECT_EQ(AllAt(*lanes, i, lane), expected[i]) << lane << " " << i;
      }
      std::vector<double> vector(8), logits(3);
      ASSERT_TRUE(lanes->Pooled(vector, lane).ok());
      ASSERT_TRUE(lanes->Scores(logits, 0, lane).ok());
      EXPECT_EQ(vector, pooled);
      EXPECT_EQ(logits, scores);
    }
    // The state of a position that was looked at answers about that position.
    ASSERT_TRUE(lanes->LookAt(4, 1).ok());
    ASSERT_TRUE(lanes->Fork(1, 0).ok());
    std::vector<double> out(17);
    ASSERT_TRUE(lanes->LogProbabilities(std::span(out), 0).ok());
    EXPECT_EQ(out, expected[4]);
  }
}

TEST(ReadText, SpansHaveTwoScoresAToken) {
  const auto session = OpenMasked(
      {.words = false, .pooler = false, .scores = 2, .scored = ScoredPart::kSpans}, "ref64");
  EXPECT_EQ(session->scores(), 2u);
  EXPECT_EQ(session->pooled_width(), 0u);
  ASSERT_TRUE(session->Encode(kText).ok());
  std::vector<double> first(2), second(2);
  ASSERT_TRUE(session->Scores(first, 1).ok());
  ASSERT_TRUE(session->Scores(second, 2).ok());
  EXPECT_NE(first, second);
  const Status status = session->LookAt(1);
  EXPECT_EQ(status.code(), KINGLET_UNSUPPORTED);
  EXPECT_EQ(status.message(),
            "session: model: expected one that predicts masked words, found one without");
}

TEST(ReadText, Refusals) {
  const auto session = OpenMasked({.scores = 3});
  std::vector<double> scores(3), pooled(8);
  EXPECT_EQ(session->LookAt(0).code(), KINGLET_NO_SOURCE_YET);
  EXPECT_EQ(session->Pooled(pooled).code(), KINGLET_NO_SOURCE_YET);
  EXPECT_EQ(session->Encode({}).code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(session->Encode(Ids(10, 5)).message(),
            "session: source: expected 1 to 9 tokens, found 10");
  EXPECT_EQ(session->Encode(Ids{2, 17}).code(), KINGLET_ID_OUT_OF_RANGE);
  EXPECT_EQ(session->Encode(Ids{2, 3}, Ids{0, 2}, 0).message(),
            "session: segment: expected a number below 2, found 2");
  EXPECT_EQ(session->Encode(Ids{2, 3}, Ids{0}, 0).message(),
            "session: segments: expected 2 elements, found 1");
  ASSERT_TRUE(session->Encode(kText).ok());
  EXPECT_EQ(session->LookAt(7).message(), "session: position: expected a number below 7, found 7");
  EXPECT_EQ(session->LookAt(0, 1).code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(session->Scores(scores, 1).message(),
            "session: position: expected 0, as texts are scored, found 1");
  EXPECT_EQ(session->Scores(pooled).code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(session->Pooled(scores).code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(session->LogProbability(3).status().code(), KINGLET_NO_TOKEN_YET);
  EXPECT_EQ(session->StepToken(3).message(),
            "session: token: expected a language model, found a masked model, which reads whole "
            "texts (`fill`, `embed`)");
  // The text is still there.
  EXPECT_TRUE(session->LookAt(6).ok());

  const auto translation = *Session::Create(Open(TinyTranslation(), "cpu"));
  EXPECT_EQ(translation->Encode(Ids{1}, Ids{0}, 0).code(), KINGLET_UNSUPPORTED);
  EXPECT_EQ(translation->LookAt(0).code(), KINGLET_UNSUPPORTED);
  const auto language = *Session::Create(Open(TinyTransformer(), "cpu"));
  EXPECT_EQ(language->LookAt(0).message(),
            "session: model: expected a masked model, found one without");
  EXPECT_EQ(language->Pooled(pooled).code(), KINGLET_UNSUPPORTED);
}

TEST(ReadText, CancelledTextsLeaveTheOneBefore) {
  const auto session = OpenMasked({});
  ASSERT_TRUE(session->Encode(kText).ok());
  const auto before = AllAt(*session, 2);
  session->Cancel();
  EXPECT_EQ(session->Encode(Ids{2, 3}).code(), KINGLET_CANCELLED);
  EXPECT_EQ(AllAt(*session, 2), before);
  session->Cancel();
  EXPECT_EQ(session->LookAt(1).code(), KINGLET_CANCELLED);
  EXPECT_EQ(AllAt(*session, 2), before);
}

}  // namespace
}  // namespace kinglet::session_reading_test
