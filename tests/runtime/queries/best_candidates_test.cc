#include "runtime/queries/best_candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace kinglet::best_candidates_test {
namespace {

std::vector<uint32_t> Ids(BestCandidates best) {
  std::vector<uint32_t> ids;
  for (const Candidate& candidate : std::move(best).Sorted()) ids.push_back(candidate.id);
  return ids;
}

TEST(BestCandidates, AreTheFirstOfTheSortedListWhateverTheOrder) {
  std::vector<Candidate> words;
  for (uint32_t id = 0; id < 6; ++id) words.push_back({id, -0.5 * (id * 7 % 4)});  // some equal
  std::vector<Candidate> sorted = words;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Candidate& a, const Candidate& b) {
    return a.log_probability > b.log_probability;
  });
  const auto earlier = [](const Candidate& a, const Candidate& b) { return a.id < b.id; };
  do {
    for (size_t k = 0; k <= 7; ++k) {
      BestCandidates best(k);
      for (const Candidate& word : words) best.Offer(word);
      const std::vector<uint32_t> ids = Ids(best);
      ASSERT_EQ(ids.size(), std::min<size_t>(k, 6));
      for (size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i], sorted[i].id);
    }
  } while (std::next_permutation(words.begin(), words.end(), earlier));
}

TEST(BestCandidates, TakeAnythingUntilThereAreEnough) {
  BestCandidates best(2);
  EXPECT_EQ(best.Threshold(), -std::numeric_limits<double>::infinity());
  best.Offer({4, -1});
  EXPECT_TRUE(best.CouldTake(-1e300));
  best.Offer({5, -3});
  EXPECT_EQ(best.Threshold(), -3);
  EXPECT_TRUE(best.CouldTake(-3));  // a lower id would come first
  EXPECT_FALSE(best.CouldTake(-3.5));
}

}  // namespace
}  // namespace kinglet::best_candidates_test
