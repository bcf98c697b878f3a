#include "tools/list_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace kinglet::list_weights_test {
namespace {

using Lists = std::vector<std::vector<ScoreParts>>;

TEST(WordErrors, LeastEdits) {
  EXPECT_EQ(WordErrors("", ""), 0u);
  EXPECT_EQ(WordErrors("a b", ""), 2u);
  EXPECT_EQ(WordErrors(" ", "a b c"), 3u);
  EXPECT_EQ(WordErrors("a b c", " a  b c "), 0u);
  EXPECT_EQ(WordErrors("a x c", "a b c"), 1u);
  EXPECT_EQ(WordErrors("b c d", "a b c"), 2u);
  EXPECT_EQ(WordErrors("a a a b", "b a a a"), 2u);
  EXPECT_EQ(WordErrors("caf\xC3\xA9\xC2\xA0noir", "caf\xC3\xA9 noir"), 0u);
  EXPECT_EQ(CountWords(" a\tb \n"), 2u);
}

TEST(BestHypothesis, TheFirstOfEqualOnes) {
  const std::vector<ScoreParts> list = {{-2, -3, 1, 0}, {-1, -4, 1, 0}, {0, -5, 1, 0}};
  EXPECT_EQ(BestHypothesis({1, 1, 0}, list), 0u);
  EXPECT_EQ(BestHypothesis({1, 0.5, 0}, list), 2u);
  EXPECT_EQ(BestHypothesis({0, 0, 1}, list), 0u);
  const double never = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(BestHypothesis({1, 1, 0}, {{0, never, 1, 0}, {-9, -9, 1, 0}}), 1u);
  EXPECT_EQ(BestHypothesis({1, 0, 0}, {{0, never, 1, 0}, {-9, -9, 1, 0}}), 0u);
}

// The model's weight has a range of its own where each list is right.
TEST(MixWords, SumsTheLogarithmsOfMixtures) {
  ScoreParts parts = {0, -9, 2, 0};
  parts.words = {-1, -2, -3, -0.5};
  MixWords({}, parts);
  EXPECT_EQ(parts.logprob, -9);
  MixWords(std::vector<double>{0.25}, parts);
  EXPECT_NEAR(parts.logprob,
              std::log(0.75 * std::exp(-1) + 0.25 * std::exp(-2)) +
                  std::log(0.75 * std::exp(-3) + 0.25 * std::exp(-0.5)),
              1e-12);
  MixWords(std::vector<double>{1}, parts);
  EXPECT_NEAR(parts.logprob, -2.5, 1e-12);
}

// Of the words of the best hypotheses, the n-grams know one in four better. The maximum by a search
// over all shares.
TEST(TuneListWeights, FindsTheLikeliestShare) {
  std::mt19937 random(5);
  Lists lists;
  std::vector<std::pair<double, double>> of_best;
  for (int i = 0; i < 30; ++i) {
    lists.emplace_back();
    for (uint64_t errors = 0; errors < 3; ++errors) {
      ScoreParts parts = {0, 0, 5, errors};
      for (int word = 0; word < 5; ++word) {
        const double network = -0.1 * static_cast<double>(random() % 40);
        const double ngrams = -0.1 * static_cast<double>(random() % 60);
        parts.words.insert(parts.words.end(), {network, ngrams});
        if (errors == 0) of_best.emplace_back(network, ngrams);
      }
      lists.back().push_back(parts);
    }
  }
  double best = 0, most = -INFINITY;
  for (double share = 0; share <= 1; share += 1e-4) {
    double sum = 0;
    for (const auto& [network, ngrams] : of_best) {
      sum += std::log((1 - share) * std::exp(network) + share * std::exp(ngrams));
    }
    if (sum > most) {
      most = sum;
      best = share;
    }
  }
  const ListWeights weights = TuneListWeights(lists, {.mixed = 1});
  ASSERT_EQ(weights.shares.size(), 1U);
  EXPECT_GT(best, 0.05);
  EXPECT_LT(best, 0.95);
  EXPECT_NEAR(weights.shares[0], best, 1e-3);
}

TEST(TuneListWeights, FindsTheWeightOfPhrases) {
  Lists lists(4);
  for (size_t i = 0; i < lists.size(); ++i) {
    for (const uint64_t errors : {2, 1, 0}) {
      ScoreParts parts = {0, -10 + 1.0 * static_cast<double>(errors), 5, errors};
      parts.context = errors == 0 ? 2 : 0;
      lists[i].push_back(parts);
    }
  }
  EXPECT_GT(ErrorsOfBest(TuneListWeights(lists, {}), lists), 0U);
  const ListWeights weights = TuneListWeights(lists, {.context = true});
  EXPECT_EQ(ErrorsOfBest(weights, lists), 0U);
  EXPECT_GT(weights.context, 0);
}

TEST(TuneListWeights, FindsANarrowRange) {
  Lists lists;
  for (const auto& [from, to] : {std::pair(0.0, 0.52), {0.5, 3.0}, {0.1, 9.0}}) {
    // Lines of slope 0, 1 and 2 in the model's weight, which cross at `from` and `to`.
    lists.push_back({{0, 0, 4, 3}, {-from, 1, 4, 1}, {-from - to, 2, 4, 5}});
  }
  const ListWeights weights = TuneListWeights(lists, {true});
  EXPECT_EQ(weights.given, 1);
  EXPECT_GT(weights.model, 0.5);
  EXPECT_LT(weights.model, 0.52);
  EXPECT_EQ(ErrorsOfBest(weights, lists), 3u);
  EXPECT_GT(ErrorsOfBest({1, 1, 0}, lists), 3u);
}

TEST(TuneListWeights, LengthAndTheModelAlone) {
  // The model is right except that it prefers one word too few; the given scores are noise.
  Lists lists;
  for (int i = 0; i < 6; ++i) {
    const double noise = i % 2 == 0 ? 100 : -100;
    lists.push_back({{noise, -9, 4, 2}, {-noise, -10, 5, 0}, {0, -20, 6, 1}});
  }
  const ListWeights alone = TuneListWeights(lists, {true});
  EXPECT_EQ(ErrorsOfBest(alone, lists), 0u);
  EXPECT_EQ(alone.given, 0);
  EXPECT_EQ(alone.model, 1);
  EXPECT_GT(alone.length, 1);
  EXPECT_LT(alone.length, 10);
  for (auto& list : lists) {
    for (ScoreParts& parts : list) parts.given = 0;
  }
  EXPECT_EQ(ErrorsOfBest(TuneListWeights(lists, {}), lists), 0u);
  EXPECT_EQ(TuneListWeights({}, {true}), (ListWeights{1, 1, 0}));
}

// No weights on a fine grid are much better, and no start is better than the result.
TEST(TuneListWeights, AsGoodAsAGrid) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> noise(-4, 4);
  Lists lists(30);
  for (auto& list : lists) {
    for (int j = 0; j < 12; ++j) {
      const auto errors = static_cast<uint64_t>(random() % 5);
      const double truth = -2.0 * static_cast<double>(errors);
      list.push_back({truth + noise(random), 0.5 * truth + noise(random),
                      static_cast<double>(8 + random() % 4), errors});
    }
  }
  const uint64_t tuned = ErrorsOfBest(TuneListWeights(lists, {true}), lists);
  EXPECT_EQ(TuneListWeights(lists, {true}), TuneListWeights(lists, {true}));
  uint64_t grid = tuned;
  for (double model = 0; model < 4; model += 0.05) {
    for (double length = -3; length < 3; length += 0.05) {
      grid = std::min(grid, ErrorsOfBest({1, model, length}, lists));
    }
  }
  EXPECT_LE(tuned, grid + 1);
  EXPECT_LE(tuned, ErrorsOfBest({1, 1, 0}, lists));
  EXPECT_LE(tuned, ErrorsOfBest({0, 1, 0}, lists));
}

// The truth is the model's score less half of the first n-gram's, and 3 for each unknown word.
TEST(TuneListWeights, NgramsAndUnknownWords) {
  std::mt19937 random(4);
  std::uniform_real_distribution<double> noise(-4, 4);
  Lists lists(40);
  for (auto& list : lists) {
    for (int j = 0; j < 12; ++j) {
      const double first = noise(random), second = noise(random);
      const auto unknown = static_cast<double>(random() % 3);
      const auto errors = static_cast<uint64_t>(random() % 7);
      const double truth = -0.2 * static_cast<double>(errors);
      list.push_back({0, truth + 0.5 * first - 3 * unknown, 5, errors, unknown, {first, second}});
    }
  }
  const ListWeights weights = TuneListWeights(lists, {false, true, 2});
  EXPECT_EQ(weights.model, 1);
  EXPECT_NEAR(weights.ngrams[0], -0.5, 0.1);
  EXPECT_NEAR(weights.ngrams[1], 0, 0.1);
  EXPECT_NEAR(weights.unknown, 3, 0.2);
  EXPECT_LT(ErrorsOfBest(weights, lists) * 4, ErrorsOfBest({0, 1, 0, 0, {0, 0}}, lists));
  const ListWeights without = TuneListWeights(lists, {false, false, 2});
  EXPECT_EQ(without.unknown, 0);
}

}  // namespace
}  // namespace kinglet::list_weights_test
