#include "kernels/ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <vector>

namespace kinglet {
namespace {

// Compared with a list of the last tokens and an array of slots.
TEST(RingWindow, IsWhereTheTokensAreStored) {
  for (const bool restarts : {false, true}) {
    for (uint32_t size = 1; size <= 5; ++size) {
      std::deque<uint64_t> last;
      std::vector<std::optional<uint64_t>> slots(size);
      for (uint64_t position = 0; position < 17; ++position) {
        if (restarts && position % size == 0) last.clear();
        last.push_back(position);
        if (last.size() > size) last.pop_front();
        slots[position % size] = position;
        const RingWindow window(position, size, restarts);
        EXPECT_EQ(slots[window.newest], position);
        EXPECT_EQ(window.filled, last.size());
        EXPECT_EQ(window.FirstFilled(), size - last.size());
        EXPECT_EQ(window.Slot(0), window.Oldest());
        EXPECT_EQ(window.Slot(size - 1), window.newest);
        for (uint32_t s = window.FirstFilled(); s < size; ++s) {
          EXPECT_EQ(slots[window.Slot(s)], last[s - window.FirstFilled()]);
        }
      }
    }
  }
}

// A ring that streams share has the rows of one after those of another.
TEST(RingWindow, InALongerRingBeginsAtAnyRow) {
  constexpr uint32_t kSize = 3, kRing = 8;
  std::vector<std::optional<uint64_t>> slots(kRing);
  for (const uint64_t first : {0, 5, 23}) {
    for (uint64_t position = 0; position < 17; ++position) {
      const uint64_t row = first + position;
      slots[row % kRing] = row;
      const RingWindow window(position, kSize, false, kRing, row);
      EXPECT_EQ(slots[window.newest], row);
      EXPECT_EQ(window.filled, std::min<uint64_t>(position + 1, kSize));
      for (uint32_t s = window.FirstFilled(); s < kSize; ++s) {
        EXPECT_EQ(slots[window.Slot(s)], row - (kSize - 1 - s));
      }
    }
  }
}

TEST(Ring, SaysWhichSlotATokenWrites) {
  const Ring ring{.slots = 3, .lag = 1};
  EXPECT_EQ(ring.Slot(1), 0u);
  EXPECT_EQ(ring.Slot(3), 2u);
  EXPECT_EQ(ring.Slot(4), 0u);
  EXPECT_EQ(ring.SlotsWritten(0), 0u);
  EXPECT_EQ(ring.SlotsWritten(1), 0u);  // the token at position 0 writes no slot
  EXPECT_EQ(ring.SlotsWritten(3), 2u);
  EXPECT_EQ(ring.SlotsWritten(9), 3u);
}

TEST(CachePairs, CountsWhatIsStored) {
  EXPECT_EQ(CachePairs(0, 4, 1), 0u);
  EXPECT_EQ(CachePairs(1, 4, 1), 1u);
  EXPECT_EQ(CachePairs(9, 4, 1), 4u);
  EXPECT_EQ(CachePairs(5, 8, 6), 0u);
  EXPECT_EQ(CachePairs(6, 8, 6), 6u);
}

}  // namespace
}  // namespace kinglet
