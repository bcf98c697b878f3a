#include "kernels/plan.h"

#include <gtest/gtest.h>

namespace kinglet::plan_test {
namespace {

TEST(LargestCode, IsTheRoundedQuotient) {
  EXPECT_EQ(LargestCode({255.0f, 1.0f}), 255);
  EXPECT_EQ(LargestCode({1.0f, 0.4f}), 2);  // 2.5 rounds to even
  EXPECT_EQ(LargestCode({0.1f, 1.0f}), 0);
  EXPECT_EQ(LargestCode({1.01f, 1.0f / 32768.0f}), 33096);  // does not fit 16 bits
}

}  // namespace
}  // namespace kinglet::plan_test
