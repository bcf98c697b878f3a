#include "kernels/numerics.h"

#include <gtest/gtest.h>

namespace kinglet {
namespace {

TEST(FitsInt32, IsExactAtTheBoundary) {
  EXPECT_TRUE(SumFitsInt32(1, 1, 2147483647));
  EXPECT_TRUE(SumFitsInt32(2147483647, 1, 1));
  EXPECT_FALSE(SumFitsInt32(2147483648, 1, 1));
  EXPECT_TRUE(SumFitsInt32(32767, 256, 256));   // 2^31 - 2^16
  EXPECT_FALSE(SumFitsInt32(32768, 256, 256));  // 2^31
  EXPECT_TRUE(SumFitsInt32(UINT64_MAX, 0, 5));
  EXPECT_FALSE(SumFitsInt32(UINT64_MAX, 1, 1));
}

TEST(SumTiles, CoverTheSum) {
  EXPECT_EQ(SumTiles(0), 0u);
  EXPECT_EQ(SumTiles(1), 1u);
  EXPECT_EQ(SumTiles(kSumTile), 1u);
  EXPECT_EQ(SumTiles(kSumTile + 1), 2u);
}

}  // namespace
}  // namespace kinglet
