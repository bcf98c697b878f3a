#include "runtime/scored_stream.h"

#include <gtest/gtest.h>

namespace kinglet::scored_stream_test {
namespace {

TEST(ScoredStream, IsTheTextBehindTheStartToken) {
  const std::vector<uint32_t> text = {5, 2, 5};
  ModelDescription description;
  EXPECT_EQ(ScoredStream(description, text), text);
  EXPECT_EQ(FirstPredicted(description), 1u);
  description.start_token = 2;
  EXPECT_EQ(ScoredStream(description, text), (std::vector<uint32_t>{2, 5, 2, 5}));
  EXPECT_EQ(FirstPredicted(description), 0u);
}

TEST(ScoredStream, OfNoText) {
  ModelDescription description;
  EXPECT_TRUE(ScoredStream(description, {}).empty());
  description.start_token = 0;
  EXPECT_EQ(ScoredStream(description, {}), std::vector<uint32_t>{0});
}

}  // namespace
}  // namespace kinglet::scored_stream_test
