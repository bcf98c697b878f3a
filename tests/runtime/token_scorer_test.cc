#include "runtime/token_scorer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numbers>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/beam.h"
#include "tests/runtime/ngrams/ngram_draft.h"
#include "tests/support/model_builder.h"

namespace kinglet::token_scorer_test {
namespace {

using Use = TokenScorer::Use;
constexpr uint32_t kWords = 23, kEnd = 1, kUnknown = 2;  // "the", "<eos>", "<unk>", "w3", ..

std::shared_ptr<const Model> WordModel() {
  return *Model::FromFile(
      *ModelFile::FromBytes(*SerialiseModel(TinyMicronet({.vocabulary_size = kWords}))), {});
}

std::shared_ptr<const NgramModel> Opened(const NgramDraft& draft, bool adds_unknown = false) {
  NgramTable table = draft.Table();
  table.adds_unknown = adds_unknown;
  return *NgramModel::FromBytes(*EncodeNgrams(table, 0));
}

// ln p of a token, by the definition of back-off models.
double LogOf(const NgramDraft& draft, const NgramWords& before, const std::string& word) {
  NgramWords text = before;
  text.push_back(draft.ngrams.contains({word}) ? word : "<unk>");
  return draft.Log10AtEnd(text) * std::numbers::ln10;
}

// A search whose scores are compared with the formula.
TEST(TokenScorer, IsItsFormulaInABeam) {
  const auto model = WordModel();
  const NgramDraft three = RandomNgrams(3, 20, 1), two = RandomNgrams(2, 12, 2),
                   other = RandomNgrams(3, 15, 3);
  TokenScorer scorer = *TokenScorer::Create(*model, 0.8, -1.5);
  ASSERT_TRUE(scorer.AddNgrams(*model, Opened(three), Use::kMixed, 0.3).ok());
  ASSERT_TRUE(scorer.AddNgrams(*model, Opened(two), Use::kAdded, -0.25).ok());
  ASSERT_TRUE(scorer.AddNgrams(*model, Opened(other), Use::kAdded, 0.5).ok());
  ASSERT_TRUE(scorer.AddPhrase(std::vector<uint32_t>{5, 6}, 2).ok());
  scorer.Link();

  const auto session = *Session::Create(model, {EmptyCache::kNormalised, 3, 1});
  const auto plain_session = *Session::Create(model, {EmptyCache::kNormalised, 3, 1});
  Beam beam(*session, 1, std::make_shared<const TokenScorer>(scorer)), plain(*plain_session, 1);
  std::mt19937 random(4);
  for (int round = 0; round < 5; ++round) {
    std::vector<Beam::Hypothesis> at = {*beam.Begin()}, same = {*plain.Begin()};
    NgramWords before = {"<s>"};
    double open = 0;  // of the phrase
    std::vector<uint32_t> ids = {kEnd};
    for (int i = 0; i < 8; ++i)
      ids.push_back(random() % 3 == 0 ? 5 : static_cast<uint32_t>(random() % kWords));
    ids.insert(ids.end(), {5, 6, 5, kEnd, 6, kUnknown});
    for (const uint32_t id : ids) {
      ASSERT_TRUE(beam.Step(at, std::span(&id, 1), at).ok());
      ASSERT_TRUE(plain.Step(same, std::span(&id, 1), same).ok());
      const std::string word = model->vocabulary()->Word(id);
      if (id == kEnd) {
        before = {"<s>"};
      } else {
        before.push_back(word);
      }
      open = id == 5 ? 2 : 0;
      std::vector<float> row(kWords), rounded(kWords);
      ASSERT_TRUE(beam.Distributions(at, rounded).ok());
      ASSERT_TRUE(plain.Distributions(same, row).ok());
      std::vector<Candidate> best;
      for (uint32_t next = 0; next < kWords; ++next) {
        const std::string text = next == kEnd ? "</s>" : model->vocabulary()->Word(next);
        // Each model has unknown words of its own before the next one.
        const auto log_of = [&](const NgramDraft& draft) {
          NgramWords known = before;
          for (std::string& one : known) one = draft.ngrams.contains({one}) ? one : "<unk>";
          return LogOf(draft, known, text);
        };
        double expected =
            0.8 * std::log(0.7 * std::exp(double{row[next]}) + 0.3 * std::exp(log_of(three)));
        expected += -0.25 * log_of(two) + 0.5 * log_of(other) + (next == kUnknown ? -1.5 : 0);
        expected += next == 5 ? 2 - open : next == 6 && open > 0 ? 4 - open : -open;
        double found = 0;
        ASSERT_TRUE(beam.LogProbabilities(at, std::span(&next, 1), std::span(&found, 1)).ok());
        EXPECT_NEAR(found, expected, 1e-9) << next;
        EXPECT_EQ(rounded[next], static_cast<float>(found));
        best.push_back({next, found});
      }
      std::sort(best.begin(), best.end(), MoreProbable);
      const std::vector<Candidate> found = (*beam.TopK(at, 5))[0];
      ASSERT_EQ(found.size(), 5U);
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].id, best[i].id);
        EXPECT_EQ(found[i].log_probability, best[i].log_probability);
      }
    }
  }
}

// LODR must not prefer tokens that a bigram without <unk> lacks.
TEST(TokenScorer, SubtractsNothingOfTokensThatNgramsLack) {
  const auto model = WordModel();
  NgramDraft draft = RandomNgrams(2, 4, 1);
  draft.ngrams[{"<unk>"}] = {kMissingUnknown, 0};
  const auto ngrams = Opened(draft, true);
  NgramState state = ngrams->SentenceBegin();
  const double never = ngrams->Score(state, ngrams->unknown_word(), state).log10;
  EXPECT_LT(never, -90);
  for (const auto& [weight, expected] : {std::pair(-0.5, 0.0), {0.5, 0.5 * never}}) {
    TokenScorer scorer = *TokenScorer::Create(*model, 0, 0);
    ASSERT_TRUE(scorer.AddNgrams(*model, ngrams, Use::kAdded, weight).ok());
    const auto at = scorer.After(scorer.Begin(), kEnd);
    EXPECT_NEAR(scorer.Score(at, 20, -3), expected * std::numbers::ln10, 1e-9) << weight;
  }
}

TEST(TokenScorer, RefusesWhatMakesNoScore) {
  const auto model = WordModel();
  EXPECT_EQ(TokenScorer::Create(*model, INFINITY, 0).status().code(), KINGLET_INVALID_ARGUMENT);
  TokenScorer scorer = *TokenScorer::Create(*model, 1, 0);
  const auto ngrams = Opened(RandomNgrams(2, 4, 1));
  ASSERT_TRUE(scorer.AddNgrams(*model, ngrams, Use::kMixed, 0.75).ok());
  EXPECT_EQ(scorer.AddNgrams(*model, ngrams, Use::kMixed, 0.5).message(),
            "scorer: share of the n-grams: expected 0 to 0.250000, which the others leave, "
            "found 0.500000");
  EXPECT_FALSE(scorer.AddNgrams(*model, ngrams, Use::kMixed, -0.1).ok());
  EXPECT_FALSE(scorer.AddNgrams(*model, ngrams, Use::kAdded, NAN).ok());
  EXPECT_EQ(scorer.AddPhrase({}, 1).code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(scorer.AddPhrase(std::vector<uint32_t>{kWords}, 1).code(), KINGLET_ID_OUT_OF_RANGE);
  const auto ids_only = *Model::FromFile(
      *ModelFile::FromBytes(*SerialiseModel(TinyMicronet({.vocabulary = false}))), {});
  TokenScorer of_ids = *TokenScorer::Create(*ids_only, 1, 0);
  EXPECT_EQ(of_ids.AddNgrams(*ids_only, ngrams, Use::kAdded, 1).code(), KINGLET_UNSUPPORTED);
}

TEST(LogOfMixture, IsTheLogarithmOfTheSum) {
  const double never = -std::numeric_limits<double>::infinity();
  EXPECT_NEAR(LogOfMixture(std::vector<double>{-1, -2}, std::vector<double>{0.25, 0.75}),
              std::log(0.25 * std::exp(-1) + 0.75 * std::exp(-2)), 1e-15);
  EXPECT_NEAR(LogOfMixture(std::vector<double>{never, -2000}, std::vector<double>{0.5, 0.5}),
              std::log(0.5) - 2000, 1e-12);
  EXPECT_EQ(LogOfMixture(std::vector<double>{never, -1}, std::vector<double>{1, 0}), never);
}

}  // namespace
}  // namespace kinglet::token_scorer_test
