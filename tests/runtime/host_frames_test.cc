// A few places on the host for the lanes of a device.
#include "runtime/host_frames.h"

#include <gtest/gtest.h>

namespace kinglet {
namespace {

TEST(HostFrames, ALaneKeepsItsPlaceUntilAsManyOthersHaveTakenOne) {
  BufferLayout layout;
  layout.scratch_bytes = layout.state_bytes = 64;
  HostFrames frames(layout, 3);
  const auto take = [&](uint32_t lane) {
    Frame frame{};
    frame.lane = lane;
    const bool had = frames.Take(frame);
    EXPECT_NE(frame.scratch, nullptr);
    EXPECT_NE(frame.state, nullptr);
    // Who comes later finds what was there.
    if (!had) frame.scratch[0] = static_cast<std::byte>(lane);
    EXPECT_EQ(frame.scratch[0], static_cast<std::byte>(lane));
    return had;
  };
  EXPECT_FALSE(take(0));  // though a place starts as lane 0's number
  EXPECT_TRUE(take(0));
  EXPECT_FALSE(take(7));
  EXPECT_FALSE(take(5));
  EXPECT_TRUE(take(0));   // three lanes, three places
  EXPECT_FALSE(take(2));  // that of 7, which is longest ago
  EXPECT_TRUE(take(5));
  EXPECT_TRUE(take(0));
  EXPECT_FALSE(take(7));
  EXPECT_TRUE(take(0));
}

}  // namespace
}  // namespace kinglet
