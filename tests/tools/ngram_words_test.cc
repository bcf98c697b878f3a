// Interpolated Kneser-Ney probabilities against the definition, computed word by word.
#include "tools/ngram_words.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

namespace kinglet::ngram_words_test {
namespace {

using Ids = std::vector<uint32_t>;

constexpr uint32_t kVocabulary = 12;

Ids Text() {
  std::mt19937_64 random(5);
  Ids text;
  for (int i = 0; i < 400; ++i) text.push_back(static_cast<uint32_t>(random() % (1 + i % 11)));
  return text;
}

template <class Counts>
double Discount(const Counts& counts) {
  double once = 0, twice = 0;
  for (const auto& [ids, count] : counts) {
    once += count == 1 ? 1 : 0;
    twice += count == 2 ? 1 : 0;
  }
  return once == 0 ? 0.5 : once / (once + 2 * twice);
}

TEST(NgramWords, TrigramsFollowTheDefinition) {
  const Ids text = Text();
  std::map<Ids, int> threes, twos, ones;
  for (size_t i = 2; i < text.size(); ++i) ++threes[{text[i - 2], text[i - 1], text[i]}];
  for (const auto& [ids, count] : threes) ++twos[{ids[1], ids[2]}];
  for (const auto& [ids, count] : twos) ++ones[{ids[1]}];
  double all_ones = 0;
  for (const auto& [ids, count] : ones) all_ones += count;
  const auto one = [&](uint32_t w) {
    const auto found = ones.find({w});
    const double count = found == ones.end() ? 0 : found->second;
    return (std::max(count - Discount(ones), 0.0) +
            Discount(ones) * static_cast<double>(ones.size()) / kVocabulary) /
           all_ones;
  };
  const auto mixed = [](const std::map<Ids, int>& counts, const Ids& before, uint32_t w,
                        double lower) {
    double all = 0, distinct = 0, own = 0;
    for (const auto& [ids, count] : counts) {
      if (!std::equal(before.begin(), before.end(), ids.begin())) continue;
      all += count;
      distinct += 1;
      if (ids.back() == w) own = count;
    }
    if (all == 0) return lower;
    const double discount = Discount(counts);
    return std::max(own - discount, 0.0) / all + discount * distinct / all * lower;
  };
  const NgramCounts counts(text, kVocabulary);
  std::vector<float> p(kVocabulary);
  for (uint32_t u = 0; u < kVocabulary; ++u) {
    for (uint32_t v = 0; v < kVocabulary; ++v) {
      counts.Trigram(u, v, p);
      double sum = 0;
      for (uint32_t w = 0; w < kVocabulary; ++w) {
        const double expected = mixed(threes, {u, v}, w, mixed(twos, {v}, w, one(w)));
        EXPECT_NEAR(p[w], std::log(expected), 1e-5);
        sum += std::exp(p[w]);
      }
      EXPECT_NEAR(sum, 1, 1e-5);
    }
  }
}

TEST(NgramWords, UnigramsAreCountsAndOne) {
  const NgramCounts counts(Ids{1, 1, 2}, 4);
  std::vector<float> p(4);
  counts.Unigram(p);
  EXPECT_NEAR(p[1], std::log(3 / 7.0), 1e-6);
  EXPECT_NEAR(p[0], std::log(1 / 7.0), 1e-6);
  const NgramCounts none(Ids{}, 4);
  none.Trigram(0, 1, p);
  for (const float one : p) EXPECT_FALSE(std::isnan(one));
}

}  // namespace
}  // namespace kinglet::ngram_words_test
