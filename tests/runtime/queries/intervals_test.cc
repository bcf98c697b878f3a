// The order of intervals and the clusters that they need. tests/runtime/session_tokens_test.cc
// compares intervals with their definition.
#include "runtime/queries/intervals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/runtime/queries/tiny_session.h"

namespace kinglet::intervals_test {
namespace {

TEST(Intervals, AreInProportionToProbabilities) {
  for (const bool improbable : {false, true}) {
    const auto session =
        StartTiny(improbable ? WithImprobableTails() : TinyMicronet(SmallCacheOptions()));
    for (const uint32_t token : {0u, 39u, 3u, 39u}) {
      ASSERT_TRUE(session->StepToken(token).ok());
      std::vector<double> p(40);
      ASSERT_TRUE(session->Probabilities(std::span<double>(p)).ok());
      double sum = 0;
      for (const double of_token : p) sum += of_token;
      uint64_t end = 0;
      for (uint32_t id = 0; id < 40; ++id) {
        const auto interval = session->IntervalOf(id);
        ASSERT_TRUE(interval.ok());
        EXPECT_EQ(interval->low, end);
        EXPECT_GT(interval->high, interval->low);
        end = interval->high;
        const double width = static_cast<double>(interval->high - interval->low);
        EXPECT_NEAR(width, 1 + p[id] / sum * 0x1p32, 2 + 3e-4 * width);
      }
      EXPECT_EQ(end, uint64_t{1} << 32);
    }
  }
}

TEST(Intervals, NeedTheHeadAndTheClusterOfTheToken) {
  const auto session = StartTiny(TinyMicronet(SmallCacheOptions()));
  ASSERT_TRUE(session->StepToken(0).ok());
  ASSERT_TRUE(session->IntervalOf(1).ok());
  EXPECT_EQ(session->clusters_opened(), ClusterSet{0});
  const auto last = session->IntervalOf(39);
  ASSERT_TRUE(last.ok());
  EXPECT_EQ(session->clusters_opened(), (ClusterSet{0, 2}));
  EXPECT_EQ(*session->TokenAt(static_cast<uint32_t>(last->low)), 39u);
  EXPECT_EQ(session->clusters_opened(), (ClusterSet{0, 2}));
}

}  // namespace
}  // namespace kinglet::intervals_test
