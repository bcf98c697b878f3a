#include "tools/bench/roofline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <vector>

namespace kinglet::roofline_test {
namespace {

uint64_t Total(const std::vector<MemoryRange>& ranges) {
  uint64_t bytes = 0;
  for (const MemoryRange& range : ranges) bytes += range.size();
  return bytes;
}

TEST(DivideRanges, CoversEveryByteOnceInOrderAndEvenly) {
  const std::vector<std::byte> memory(10000);
  const MemoryRange all(memory);
  const std::vector<std::vector<MemoryRange>> cases = {
      {},
      {all.first(1)},
      {all.first(64)},
      {all.first(10000)},
      {all.subspan(0, 100), all.subspan(200, 1), all.subspan(300, 5000), all.subspan(6000, 777)}};
  for (const auto& ranges : cases) {
    std::vector<int> wanted(memory.size());
    for (const MemoryRange& range : ranges) {
      for (const std::byte& byte : range) ++wanted[static_cast<size_t>(&byte - memory.data())];
    }
    for (const size_t shares : {1u, 2u, 3u, 7u, 200u}) {
      const auto divided = DivideRanges(ranges, shares);
      ASSERT_EQ(divided.size(), shares);
      std::vector<int> covered(memory.size());
      const std::byte* last = nullptr;
      for (const auto& share : divided) {
        for (const MemoryRange& range : share) {
          EXPECT_FALSE(range.empty());
          EXPECT_GT(range.data(), last);
          last = range.data() + range.size() - 1;
          for (const std::byte& byte : range) ++covered[static_cast<size_t>(&byte - memory.data())];
        }
        // No part exceeds an even one by more than a cache line.
        EXPECT_LE(Total(share), Total(ranges) / shares + 64);
      }
      EXPECT_EQ(covered, wanted) << shares;
    }
  }
}

TEST(FastestRead, IsATimeHoweverManyReadersAndBytes) {
  const std::vector<std::byte> memory(1 << 20);
  for (const size_t threads : {1u, 2u}) {
    const auto team = *ThreadTeam::Create(threads);
    const double seconds = FastestRead({{MemoryRange(memory)}}, *team, 3);
    EXPECT_GT(seconds, 0);
    EXPECT_TRUE(std::isfinite(seconds));
    EXPECT_TRUE(std::isfinite(FastestRead({}, *team, 1)));  // nothing to read
  }
}

}  // namespace
}  // namespace kinglet::roofline_test
