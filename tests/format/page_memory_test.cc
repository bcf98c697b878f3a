#include "format/page_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "format/system.h"

namespace kinglet::page_memory_test {
namespace {

const uint64_t kPage = system::PageBytes();

// Resident bytes of this process, as the system reports them.
uint64_t ResidentBytes() {
  std::ifstream status("/proc/self/statm");
  uint64_t total = 0, resident = 0;
  status >> total >> resident;
  return resident * kPage;
}

TEST(PageMemory, IsZerosAndWritable) {
  PageMemory memory(3 * kPage + 5);
  ASSERT_TRUE(memory.valid());
  ASSERT_EQ(memory.bytes().size(), 3 * kPage + 5);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.bytes().data()) % kPage, 0u);
  for (const std::byte byte : memory.bytes()) ASSERT_EQ(byte, std::byte{0});
  memory.bytes().back() = std::byte{7};
  const PageMemory moved = std::move(memory);
  EXPECT_EQ(moved.bytes().back(), std::byte{7});
}

TEST(PageMemory, HoldsNothingOfSizeZeroOrMoreThanThereIs) {
  EXPECT_FALSE(PageMemory().valid());
  EXPECT_FALSE(PageMemory(0).valid());
  EXPECT_FALSE(PageMemory(uint64_t{1} << 62).valid());
}

TEST(PageMemory, ReleasesWholePagesOnly) {
  PageMemory memory(4 * kPage + 10);
  std::fill(memory.bytes().begin(), memory.bytes().end(), std::byte{1});
  EXPECT_EQ(memory.Release(memory.bytes().subspan(1, kPage)), 0u);
  EXPECT_EQ(memory.Release(memory.bytes().subspan(1, 2 * kPage)), kPage);
  for (uint64_t i = 0; i < memory.bytes().size(); ++i) {
    ASSERT_EQ(memory.bytes()[i], std::byte{i < kPage || i >= 2 * kPage}) << i;
  }
  EXPECT_EQ(memory.Release(memory.bytes().last(11)), kPage);  // all of the last page is released
  EXPECT_EQ(memory.Release(memory.bytes()), 5 * kPage);
  EXPECT_EQ(memory.Release({}), 0u);
}

TEST(PageMemory, ReleasedPagesLeaveTheProcess) {
  constexpr uint64_t kBytes = uint64_t{64} << 20;
  PageMemory memory(kBytes);
  std::fill(memory.bytes().begin(), memory.bytes().end(), std::byte{1});
  const uint64_t before = ResidentBytes();
  if (before == 0) GTEST_SKIP() << "needs /proc";
  EXPECT_EQ(memory.Release(memory.bytes().first(kBytes / 2)), kBytes / 2);
  EXPECT_LT(ResidentBytes(), before - kBytes / 4);
  EXPECT_EQ(memory.bytes()[kBytes / 2], std::byte{1});
}

}  // namespace
}  // namespace kinglet::page_memory_test
