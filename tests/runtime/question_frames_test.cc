// A few places for the lanes that are asked.
#include "runtime/question_frames.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/runtime/session_fixture.h"

namespace kinglet {
namespace {

using States = QuestionFrames::States;

TEST(QuestionFrames, ALaneKeepsItsPlaceUntilAsManyOthersHaveTakenOne) {
  BufferLayout layout;
  layout.scratch_bytes = layout.state_bytes = 64;
  QuestionFrames frames(layout, 3, States::kInPlaces);
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

TEST(QuestionFrames, StatesStayWhereTheyAreOrHavePlacesToo) {
  BufferLayout layout;
  layout.scratch_bytes = 64;
  layout.state_bytes = 128;
  QuestionFrames frames(layout, 1, States::kInFrames);
  std::vector<std::byte> state(128);
  Frame frame{};
  frame.state = state.data();
  frames.Take(frame);
  EXPECT_EQ(frame.state, state.data());
  EXPECT_NE(frame.scratch, nullptr);
  EXPECT_EQ(QuestionFrames::BytesPerPlace(layout, States::kInPlaces) -
                QuestionFrames::BytesPerPlace(layout, States::kInFrames),
            128u);
}

TEST(QuestionFrames, TheHiddenStateIsCopiedIfItIsNoState) {
  for (const std::string backend : {"cpu", "ref64"}) {
    // Without a neural cache nothing keeps the hidden state for the next token.
    TinyOptions options;
    options.cache_capacity = 0;
    const auto model = Open(TinyMicronet(options), backend);
    const BufferLayout& layout = model->layout();
    const Slot& hidden = layout[model->plan().hidden];
    std::vector<uint64_t> from(layout.scratch_bytes / 8, 0x0123456789abcdef);
    std::vector<uint64_t> to(layout.scratch_bytes / 8, 0), state(layout.state_bytes / 8, 7);
    const std::vector<uint64_t> state_before = state;
    const Frame source{reinterpret_cast<std::byte*>(from.data()),
                       reinterpret_cast<std::byte*>(state.data()), 0, 0};
    const Frame target{reinterpret_cast<std::byte*>(to.data()),
                       reinterpret_cast<std::byte*>(state.data()), 0, 0};
    const size_t real_bytes = model->backend().real_bytes;
    CopyHidden(model->plan(), layout, real_bytes, source, target);
    EXPECT_EQ(state, state_before);
    const size_t bytes =
        hidden.count * ElementBytes(model->plan().buffer(model->plan().hidden).element, real_bytes);
    size_t copied = 0;
    for (const uint64_t word : to) copied += word == 0 ? 0 : sizeof word;
    if (hidden.state) {
      EXPECT_EQ(copied, 0u);
    } else {
      EXPECT_EQ(copied, bytes);
      EXPECT_EQ(std::memcmp(hidden.At<std::byte>(source), hidden.At<std::byte>(target), bytes), 0);
    }
  }
}

}  // namespace
}  // namespace kinglet
