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
  const auto sorted = std::move(best).Sorted([] { return Status(); });
  for (const Candidate& candidate : *sorted) ids.push_back(candidate.id);
  return ids;
}

TEST(BestCandidates, AreTheFirstOfTheSortedListWhateverTheOrder) {
  std::vector<Candidate> tokens;
  for (uint32_t id = 0; id < 6; ++id) tokens.push_back({id, -0.5 * (id * 7 % 4)});  // some equal
  std::vector<Candidate> sorted = tokens;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Candidate& a, const Candidate& b) {
    return a.log_probability > b.log_probability;
  });
  const auto earlier = [](const Candidate& a, const Candidate& b) { return a.id < b.id; };
  do {
    for (size_t k = 0; k <= 7; ++k) {
      BestCandidates best(k);
      for (const Candidate& token : tokens) best.Offer(token);
      const std::vector<uint32_t> ids = Ids(best);
      ASSERT_EQ(ids.size(), std::min<size_t>(k, 6));
      for (size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i], sorted[i].id);
    }
  } while (std::next_permutation(tokens.begin(), tokens.end(), earlier));
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

TEST(SortByProbability, SortsManyTokensAndStopsBetweenParts) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{65536}, size_t{65537}, size_t{300000}}) {
    std::vector<Candidate> tokens(count);
    for (uint32_t id = 0; id < count; ++id) tokens[id] = {id, -0.25 * (id * 2654435761U % 1000)};
    std::vector<Candidate> expected = tokens;
    std::sort(expected.begin(), expected.end(), MoreProbable);
    int asked = 0;
    ASSERT_TRUE(SortByProbability(tokens, [&asked] {
                  ++asked;
                  return Status();
                }).ok());
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(tokens[i].id, expected[i].id) << count;
    EXPECT_EQ(asked > 0, count > 65536);
    const auto stop = [] { return Status(KINGLET_CANCELLED, "stopped"); };
    EXPECT_EQ(SortByProbability(tokens, stop).ok(), count <= 65536);
  }
}

}  // namespace
}  // namespace kinglet::best_candidates_test
