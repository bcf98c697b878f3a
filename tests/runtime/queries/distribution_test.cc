#include "runtime/queries/distribution.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/runtime/queries/tiny_session.h"

namespace kinglet::distribution_test {
namespace {

TEST(Distribution, QueriesInAnyOrderGiveTheSameNumbers) {
  const ModelDraft draft = TinyMicronet(SmallCacheOptions());
  const auto a = StartTiny(draft), b = StartTiny(draft);
  std::vector<double> all(40);
  for (uint32_t id : {3u, 30u, 3u, 15u, 3u}) {
    ASSERT_TRUE(a->StepToken(id).ok());
    ASSERT_TRUE(b->StepToken(id).ok());
    const double before = *a->LogProbability(30);
    const auto top_before = *a->TopK(4);
    ASSERT_TRUE(a->LogProbabilities(std::span<double>(all)).ok());
    ASSERT_TRUE(b->LogProbabilities(std::span<double>(all)).ok());
    EXPECT_EQ(before, all[30]);
    EXPECT_EQ(*b->LogProbability(30), before);
    const auto top_after = *b->TopK(4);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(top_before[i].id, top_after[i].id);
  }
}

}  // namespace
}  // namespace kinglet::distribution_test
