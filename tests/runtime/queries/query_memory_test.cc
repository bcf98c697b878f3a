#include "runtime/queries/query_memory.h"

#include <gtest/gtest.h>

#include "tests/runtime/queries/tiny_session.h"

namespace kinglet::query_memory_test {
namespace {

TEST(QueryMemory, IsReservedForTheLargestQueryOfAtMostEightStreams) {
  const auto session = StartTiny(TinyMicronet(SmallCacheOptions()));
  const Model& model = session->model();
  const QueryMemory<float> few(model, 3), many(model, 100);
  EXPECT_EQ(few.tables.size(), 3u);
  EXPECT_EQ(many.tables.size(), kLanesTogether);
  for (const ClusterPlan& cluster : model.plan().clusters) {
    EXPECT_GE(few.tokens.capacity(), cluster.size);
    EXPECT_GE(few.places.capacity(), cluster.size + kPlacesMargin);  // fewer than a tile has
  }
  EXPECT_EQ(few.held_ids.size(), 6u);
  EXPECT_EQ(few.held_weights.size(), 6u);
  EXPECT_EQ(few.held_mixed.size(), 6u);
  EXPECT_GE(QueryMemory<double>::BytesPerStream(model), QueryMemory<float>::BytesPerStream(model));
}

}  // namespace
}  // namespace kinglet::query_memory_test
