// A few places for the lanes that are queried.
#include "runtime/queries/query_frames.h"

#include <gtest/gtest.h>

#include <vector>

namespace kinglet::query_frames_test {
namespace {

using States = QueryFrames::States;

TEST(QueryFrames, ALaneKeepsItsPlaceUntilAsManyOthersHaveTakenOne) {
  BufferLayout layout;
  layout.scratch_bytes = layout.state_bytes = 64;
  QueryFrames frames(layout, 3, States::kInPlaces);
  const auto take = [&](uint32_t lane) {
    StreamFrame frame{};
    frame.lane = lane;
    const bool had = frames.Take(frame);
    EXPECT_NE(frame.scratch, nullptr);
    EXPECT_NE(frame.state, nullptr);
    // The lane finds its own results.
    if (!had) frame.scratch[0] = static_cast<std::byte>(lane);
    EXPECT_EQ(frame.scratch[0], static_cast<std::byte>(lane));
    return had;
  };
  EXPECT_FALSE(take(0));  // though a place starts as lane 0's number
  EXPECT_TRUE(take(0));
  EXPECT_FALSE(take(7));
  EXPECT_FALSE(take(5));
  EXPECT_TRUE(take(0));   // three lanes, three places
  EXPECT_FALSE(take(2));  // takes the place of 7, which was taken the longest ago
  EXPECT_TRUE(take(5));
  EXPECT_TRUE(take(0));
  EXPECT_FALSE(take(7));
  EXPECT_TRUE(take(0));
}

TEST(QueryFrames, StatesStayWhereTheyAreOrHavePlacesToo) {
  BufferLayout layout;
  layout.scratch_bytes = 64;
  layout.state_bytes = 128;
  QueryFrames frames(layout, 1, States::kInFrames);
  std::vector<std::byte> state(128);
  StreamFrame frame{};
  frame.state = state.data();
  frames.Take(frame);
  EXPECT_EQ(frame.state, state.data());
  EXPECT_NE(frame.scratch, nullptr);
  EXPECT_EQ(QueryFrames::BytesPerPlace(layout, States::kInPlaces) -
                QueryFrames::BytesPerPlace(layout, States::kInFrames),
            128u);
}

}  // namespace
}  // namespace kinglet::query_frames_test
